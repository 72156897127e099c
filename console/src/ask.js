// Ask: a question, its answer as a table and a chart with intervals, how it is answered, and how to come back to it.
import { chart } from "./chart.js";
import { download, empty, fill, h, labelled, problem, say, table } from "./dom.js";
import { editor } from "./editor.js";
import { count, interval, shown } from "./numbers.js";
import { asked } from "./server.js";
import { goTo, here } from "./places.js";

const SHOWN_ROWS = 500, DRAWN_ROWS = 400, REMEMBERED = 30;
const saved = (name, otherwise) => { try { return JSON.parse(localStorage.getItem(name)) ?? otherwise; } catch { return otherwise; } };
const save = (name, value) => localStorage.setItem(name, JSON.stringify(value));

export async function askPage(main) {
  const place = here();
  const told = h("div", { "aria-live": "polite" }), explained = h("div"), lists = h("div");
  const confidence = h("select", {}, ["0.8", "0.9", "0.95", "0.99"].map((level) => h("option", { value: level, selected: level === (place.get("confidence") ?? "0.95") }, `${Math.round(level * 100)} %`)));
  const together = h("input", { type: "checkbox", checked: place.get("together") === "1" });
  const kind = h("select", {}, [["auto", "chosen for me"], ["bars", "bars with whiskers"], ["points", "points with bars"], ["line", "line with a band"]].map(([value, words]) => h("option", { value, selected: value === (place.get("chart") ?? "auto") }, words)));
  const text = editor({ text: place.get("sql") ?? "", label: "Question in SQL", run: ask });
  const name = h("input", { type: "text", maxlength: "60" });
  let last = null, running = null;

  fill(main, h("h1", {}, "Ask"),
    h("section", { "aria-label": "Question" }, text.element,
      h("div", { class: "row" },
        h("button", { type: "button", onclick: ask }, "Ask"), h("button", { type: "button", class: "quiet", onclick: explain }, "Explain"),
        h("span", { class: "hint" }, "Ctrl+Enter asks, Ctrl+Space completes")),
      h("div", { class: "row" },
        labelled("Confidence", confidence), h("div", { class: "field inline" }, labelledBox("All intervals hold at once", together)), labelled("Chart", kind))),
    told, explained, lists);
  for (const control of [confidence, together]) control.addEventListener("change", () => last && ask());
  kind.addEventListener("change", () => last && draw());
  lists.append(...remembered());

  function question() {
    return { sql: text.text(), options: { confidence: Number(confidence.value), simultaneous: together.checked } };
  }

  async function ask() {
    running?.abort();
    running = new AbortController();
    const body = question();
    fill(told, h("p", { class: "working" }, "Asking… ", h("button", { type: "button", class: "quiet", onclick: () => running.abort() }, "Stop")));
    goTo("ask", { sql: body.sql, confidence: confidence.value, together: together.checked ? "1" : "", chart: kind.value }, { quietly: true });
    try {
      last = { body, ...(await asked("v1/sql", { body: { ...body, first: SHOWN_ROWS }, signal: running.signal })) };
      text.mark();
      save("deniable history", [body.sql, ...saved("deniable history", []).filter((other) => other !== body.sql)].slice(0, REMEMBERED));
      fill(lists, remembered());
      draw();
      say(`Answered: ${count(last.total)} rows.`);
    } catch (failure) {
      if (failure.name === "AbortError") { fill(told, empty("Stopped. Nothing was computed.")); return; }
      text.mark(failure.start, failure.message);
      fill(told, problem(failure.message, failure.todo ?? "The place is marked in the text. What may be asked: docs, page SQL."));
    }
  }

  function draw() {
    const { groups, answers, rows, notes, total } = last;
    const header = [...groups, ...answers.flatMap((answer) => [answer, `${answer}: interval`])];
    const numeric = [...groups.map(() => false), ...answers.flatMap(() => [true, true])];
    const cells = rows.map((row) => [...groups.map((group) => String(row[group])), ...answers.flatMap((answer) => number(row, answer))]);
    const few = total > rows.length && h("p", { class: "note" }, `The first ${count(rows.length)} of ${count(total)} rows are shown. The files have all of them.`);
    const picture = rows.length && answers.length ? drawn(last, kind.value) : null;
    const remarks = notes.length ? h("ul", { class: "notes", "aria-label": "About these numbers" }, notes.map((note) => h("li", {}, note))) : null;
    fill(told,
      total === 0 ? empty("The answer has no rows.", "WHERE or HAVING leaves nothing. Widen it.") : h("section", { "aria-label": "Answer" },
        picture, remarks, few, table(`Answer, with ${Math.round(last.body.options.confidence * 100)} % intervals${last.body.options.simultaneous ? " that all hold at once" : ""}`, header, cells, numeric),
        h("div", { class: "row" },
          h("button", { type: "button", class: "quiet", onclick: () => exported("text/csv", "answer.csv") }, "Download CSV"),
          h("button", { type: "button", class: "quiet", onclick: () => exported("application/vnd.apache.arrow.stream", "answer.arrows") }, "Download Arrow"),
          picture && h("button", { type: "button", class: "quiet", onclick: async () => download("answer.png", await picture.querySelector(".chart").picture()) }, "Download PNG"),
          h("button", { type: "button", class: "quiet", onclick: copyLink }, "Copy link")),
        h("form", { class: "row", onsubmit: keepQuestion }, labelled("Name for this question", name), h("button", { type: "submit", class: "quiet" }, "Keep"))));
  }

  async function exported(accept, file) {
    try { download(file, await asked("v1/sql", { body: last.body, accept })); } catch (failure) { fill(explained, problem(failure.message, failure.todo)); }
  }

  async function copyLink() {
    await navigator.clipboard?.writeText(location.href).catch(() => null);
    say("The link is copied. It holds the question, not the answer, and whoever opens it needs a key.");
  }

  function keepQuestion(event) {
    event.preventDefault();
    if (!name.value.trim()) return;
    save("deniable questions", { ...saved("deniable questions", {}), [name.value.trim()]: last.body.sql });
    fill(lists, remembered());
    say(`Kept as ${name.value.trim()}.`);
  }

  async function explain() {
    fill(explained, h("p", { class: "working" }, "Explaining…"));
    try {
      const { text: words } = await asked("v1/explain", { body: { sql: text.text() } });
      fill(explained, h("section", { "aria-label": "How it is answered" }, h("h2", {}, "How it is answered"),
        h("p", {}, "Which views count, the error to expect with its causes, and how far one liar moves the answer:"), h("pre", { tabindex: "0" }, words)));
    } catch (failure) {
      text.mark(failure.start, failure.message);
      fill(explained, problem(failure.message, failure.todo));
    }
  }

  function remembered() {
    const again = (sql, words) => h("li", {}, h("button", { type: "button", class: "link", onclick: () => { text.set(sql); text.focus(); } }, words));
    const named = Object.entries(saved("deniable questions", {})), past = saved("deniable history", []);
    return [
      named.length > 0 && h("section", {}, h("h2", {}, "Named questions"), h("ul", { class: "plain" }, named.map(([words, sql]) => again(sql, words)))),
      past.length > 0 && h("details", {}, h("summary", {}, `History (${past.length})`), h("ul", { class: "plain" }, past.map((sql) => again(sql, sql)))),
    ].filter(Boolean);
  }

  try {
    const { tables } = await asked("v1/tables");
    text.knows(tables);
    lists.append(h("details", {}, h("summary", {}, "Tables"), tables.map((one) => table(`${one.name}: ${one.comment}`, ["column", "type", "what it is"], one.columns.map((column) => [column.name, column.type.toLowerCase(), column.comment])))));
    if (place.get("sql")) ask();
    else if (!text.text()) text.set(`SELECT COUNT(*) AS n FROM ${tables[0].name}`);
  } catch (failure) {
    fill(told, problem(failure.message, failure.todo));
  }
}

function labelledBox(words, box) {
  box.id = "together";
  return h("label", { for: box.id }, box, ` ${words}`);
}

function number(row, answer) {
  const error = Math.hypot(row[`${answer}_stderr`] ?? 0, row[`${answer}_model`] ?? 0);
  if (row[answer] == null) return ["unclear: too few people, or too much noise", interval(row[`${answer}_low`], row[`${answer}_high`], ((row[`${answer}_high`] ?? 0) - (row[`${answer}_low`] ?? 0)) / 4)];
  return [`${shown(row[answer], error)} ± ${shown(error, error)}`, interval(row[`${answer}_low`], row[`${answer}_high`], error)];
}

function drawn({ groups, answers, rows }, wanted) {
  const some = rows.slice(0, DRAWN_ROWS), answer = answers[0];
  const column = (suffix) => some.map((row) => row[`${answer}${suffix}`] ?? null);
  const last = groups.at(-1), ordered = groups.length === 1 && some.length > 12 && some.every((row) => typeof row[last] === "number" || /^\d{4}-\d\d/.test(row[last]));
  const kind = wanted === "auto" ? (ordered ? "line" : "bars") : wanted;
  const names = groups.length ? some.map((row) => groups.map((group) => row[group]).join(", ")) : [answer];
  return h("figure", {}, chart({ label: `Chart of ${answer}${groups.length ? ` by ${groups.join(", ")}` : ""}, with intervals; the table has the same numbers`, names, value: column(""), low: column("_low"), high: column("_high"), kind }),
    h("figcaption", {}, `${answer}${groups.length ? ` by ${groups.join(", ")}` : ""}${rows.length > DRAWN_ROWS ? `, the first ${DRAWN_ROWS} rows` : ""}`));
}
