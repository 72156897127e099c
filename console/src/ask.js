// Ask: a question, its answer as a table and a chart with intervals, how it is answered, and how to come back to it.
import { SHOWN_ROWS, answerView } from "./answer.js";
import { download, empty, fill, h, labelled, problem, say } from "./dom.js";
import { editor } from "./editor.js";
import { count } from "./numbers.js";
import { goTo, here } from "./places.js";
import { rememberedQuestions } from "./remembered.js";
import { asked } from "./server.js";

const LEVELS = ["0.8", "0.9", "0.95", "0.99"];
const CHARTS = [["auto", "chosen for me"], ["bars", "bars with whiskers"], ["points", "points with bars"], ["line", "line with a band"]];

export async function askPage(main) {
  const place = here();
  const choice = (list, value) => h("select", {}, list.map(([each, words]) => h("option", { value: each, selected: each === value }, words)));
  const told = h("div", { "aria-live": "polite" }), explained = h("div");
  const confidence = choice(LEVELS.map((level) => [level, `${Math.round(level * 100)} %`]), place.get("confidence") ?? "0.95");
  const together = h("input", { type: "checkbox", id: "together", checked: place.get("together") === "1" });
  const kind = choice(CHARTS, place.get("chart") ?? "auto"), column = h("select");
  const columnField = labelled("Column of the chart", column);
  const text = editor({ text: place.get("sql") ?? "", label: "Question in SQL", run: ask });
  const name = h("input", { type: "text", maxlength: "60", required: true });
  const remembered = rememberedQuestions((sql) => { text.set(sql); text.focus(); ask(); });
  const keeping = h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); remembered.keep(name.value.trim(), last.body.sql); name.value = ""; } },
    labelled("Name for this question", name), h("button", { type: "submit", class: "quiet" }, "Keep"), h("button", { type: "button", class: "quiet", onclick: copyLink }, "Copy link"));
  let last = null, running = null;

  columnField.hidden = keeping.hidden = true;
  fill(main, h("h1", {}, "Ask"),
    h("section", { "aria-label": "Question" }, text.element,
      h("div", { class: "row" },
        h("button", { type: "button", onclick: ask }, "Ask"), h("button", { type: "button", class: "quiet", onclick: explain }, "Explain"),
        h("span", { class: "hint" }, "Ctrl+Enter asks, Ctrl+Space completes")),
      h("div", { class: "row" },
        labelled("Confidence", confidence), labelled("Chart", kind), columnField,
        h("div", { class: "field inline" }, h("label", { for: together.id }, together, " All intervals hold at once")))),
    h("div", { class: "beside" }, h("div", {}, told, keeping), explained), remembered.element);
  for (const control of [confidence, together]) control.addEventListener("change", () => last && ask());
  for (const control of [kind, column]) control.addEventListener("change", () => { if (last) { inAddress(last.body.sql); draw(); } });

  function inAddress(sql) {
    goTo("ask", { sql, confidence: confidence.value, together: together.checked ? "1" : "", chart: kind.value }, { quietly: true });
  }

  async function ask() {
    running?.abort();
    const own = running = new AbortController();
    const body = { sql: text.text(), options: { confidence: Number(confidence.value), simultaneous: together.checked } };
    fill(told, h("p", { class: "working" }, "Asking… ", h("button", { type: "button", class: "quiet", onclick: () => own.abort() }, "Stop")));
    fill(explained);
    inAddress(body.sql);
    try {
      const answer = await asked("v1/sql", { body: { ...body, first: SHOWN_ROWS }, signal: own.signal });
      last = { body, answer };
      text.mark();
      remembered.asked(body.sql);
      fill(column, answer.answers.map((each) => h("option", {}, each)));
      columnField.hidden = answer.answers.length < 2;
      keeping.hidden = false;
      draw();
      say(`Answered: ${count(answer.total)} rows.`);
    } catch (failure) {
      if (failure.name !== "AbortError") { last = null; keeping.hidden = true; refused(failure, told); }
      else if (own === running) fill(told, empty("Stopped. Nothing was computed."));
    }
  }

  function draw() {
    fill(told, answerView(last.answer, last.body.options, { kind: kind.value, column: column.value }, async (file, accept) => {
      try { download(file, await asked("v1/sql", { body: last.body, accept })); } catch (failure) { fill(explained, problem(failure.message, failure.todo)); }
    }));
  }

  async function copyLink() {
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is copied. It holds the question, not the answer, and whoever opens it needs a key.");
    } catch {
      fill(explained, empty("This page may not write to the clipboard.", "Copy the address of the page instead: it holds the question."));
    }
  }

  async function explain() {
    if (told.querySelector("[role=alert]")) fill(told);
    fill(explained, h("p", { class: "working" }, "Explaining…"));
    try {
      const { text: words } = await asked("v1/explain", { body: { sql: text.text() } });
      text.mark();
      fill(explained, h("section", { "aria-label": "How it is answered" }, h("h2", {}, "How it is answered"),
        h("p", {}, "Which views count, the error to expect with its causes, and how far one liar moves the answer:"), h("pre", { tabindex: "0" }, words)));
    } catch (failure) {
      refused(failure, explained);
    }
  }

  function refused(failure, where) {
    text.mark(failure.start, failure.message);
    fill(where, problem(failure.message, failure.todo ?? (failure.start != null && "The place is underlined in the question.")));
  }

  try {
    const { tables } = await asked("v1/tables");
    text.knows(tables);
    remembered.shows(tables);
    if (place.get("sql")) ask();
    else if (!text.text() && tables.length) text.set(`SELECT COUNT(*) AS n FROM ${tables[0].name}`);
  } catch (failure) {
    fill(told, problem(failure.message, failure.todo));
  }
}
