// Plan: tables and rules, questions, and sliders that move the predicted errors before anything is collected.
import { download, fill, h, labelled, problem, say, table } from "./dom.js";
import { count, shown } from "./numbers.js";
import { asked } from "./server.js";

const POWERS = (from, to, steps) => Array.from({ length: steps + 1 }, (_, at) => from * (to / from) ** (at / steps));
const EPSILONS = POWERS(0.1, 10, 40).map((value) => Number(value.toPrecision(2)));
const ROUNDS = Array.from({ length: 52 }, (_, at) => at + 1), TYPED_MS = 120;
const USERS = POWERS(1e3, 1e8, 50).map((value) => Number(value.toPrecision(1)));

export async function planPage(main) {
  const specification = h("textarea", { rows: "12", spellcheck: "false" });
  const questions = h("textarea", { rows: "4", spellcheck: "false" });
  const epsilon = slider("ε for each person", EPSILONS, (value) => `ε = ${value}`, "protects more", "is more accurate");
  const users = slider("People who report", USERS, count, "fewer: larger error", "more: smaller error");
  const rounds = slider("Rounds over a lifetime", ROUNDS, (value) => (value === 1 ? "one" : String(value)), "asked once: smallest error", "asked often: larger error per round");
  const told = h("div", { "aria-live": "polite" });
  let waiting = null, underway = null, planned = null, written = true;

  fill(main, h("h1", {}, "Plan"),
    h("p", {}, "What error to expect, before anything is collected. Nothing here looks at reports."),
    h("div", { class: "columns" },
      h("section", { "aria-label": "Specification" }, labelled("Specification (TOML)", specification, { hint: "Paste yours, edit this one, or draw one up below." }),
        h("details", {}, h("summary", {}, "Draw up a table in a form"), tableForm(specification, () => { written = true; changed(); }))),
      h("section", { "aria-label": "Questions and settings" },
        labelled("Questions, separated by semicolons", questions), epsilon.element, users.element, rounds.element, told,
        h("div", { class: "row" }, h("button", { type: "button", onclick: () => predict(true) }, "Choose a design for these questions"),
          h("button", { type: "button", class: "quiet", onclick: () => planned && download("planned.toml", planned.specification, "application/toml") }, "Download the specification")))));

  // A specification that was written has its own ε and rounds, and the sliders follow; a slider that was moved changes the specification.
  specification.addEventListener("input", () => { written = true; changed(); });
  questions.addEventListener("input", changed);
  for (const { control } of [epsilon, users, rounds]) control.addEventListener("input", () => { if (control !== users.control) written = false; predict(false); });

  function changed() {
    clearTimeout(waiting);
    waiting = setTimeout(() => predict(false), TYPED_MS);
  }

  // One request at a time: while a slider moves, only its newest position waits.
  async function predict(fit) {
    clearTimeout(waiting);
    if (underway) { underway.again = { fit: fit || underway.again?.fit }; return; }
    underway = {};
    if (fit) fill(told, h("p", { class: "working" }, "Choosing views…"));
    const list = questions.value.split(";").map((text) => text.trim()).filter(Boolean), given = specification.value;
    const settings = { users: users.value(), ...(written ? {} : { epsilon: epsilon.value(), rounds: rounds.value() }) };
    try {
      planned = await asked("v1/plan", { body: { ...settings, specification: given || null, questions: list, fit } });
      epsilon.follow(planned.epsilon);
      rounds.follow(planned.rounds);
      if ((!given || fit || !written) && specification.value === given) specification.value = planned.specification;
      draw(planned);
      if (fit) say("A design was chosen. The specification has it.");
    } catch (failure) {
      fill(told, problem(failure.message, failure.todo));
    }
    const { again } = underway;
    underway = null;
    if (again) predict(Boolean(again.fit));
  }

  function draw({ predictions, design, lifetime }) {
    const rows = predictions.flatMap(({ question, answers, refused }) => {
      const asked = h("small", { class: "asked" }, question);
      return refused ? [[h("div", {}, asked, refused), "", ""]] : answers.map((answer) => [h("div", {}, answer.name, asked.cloneNode(true)),
        answer.error == null ? "unclear: too few people" : answer.error === 0 ? "none" : `± ${shown(answer.error, answer.error)}`, answer.share ? `${(100 * answer.share).toPrecision(2)} %` : ""]);
    });
    fill(told, h("section", { "aria-label": "Predicted errors" }, h("h2", {}, "Predicted errors"),
      rows.length ? table("Standard error of each answer", ["answer", "expected error", "of people"], rows, [false, true, true]) : h("p", {}, "Type a question to see its error."),
      h("p", {}, `Design ${design}. One person spends at most ε = ${Number(lifetime.toPrecision(3))} over a lifetime.`)));
  }

  try {
    const { tables } = await asked("v1/tables");
    questions.value = tables.length ? firstQuestions(tables[0]) : "";
    users.follow(100000);
    await predict(false);
  } catch (failure) {
    fill(told, problem(failure.message, failure.todo));
  }
}

function firstQuestions({ name, columns }) {
  const asked = columns.filter((column) => column.comment.startsWith("private"));
  const few = asked.find((column) => column.values.length > 0 && column.values.length <= 12) ?? asked[0];
  return few ? `SELECT ${few.name}, COUNT(*) AS n FROM ${name} GROUP BY ${few.name}` : `SELECT COUNT(*) AS n FROM ${name}`;
}

// A slider over a list of values. Both ends say what they mean, to everybody.
function slider(words, list, named, low, high) {
  const control = h("input", { type: "range", min: "0", max: String(list.length - 1), value: "0", id: `slider-${words.split(" ")[0]}` }), output = h("output", { for: control.id });
  let own = list[0];
  const show = () => { output.textContent = named(own); control.setAttribute("aria-valuetext", `${named(own)}; left ${low}, right ${high}`); };
  control.addEventListener("input", () => { own = list[control.value]; show(); });
  return {
    control,
    element: h("div", { class: "slider" }, h("div", { class: "row" }, h("label", { for: control.id }, words), output), control,
      h("div", { class: "ends", "aria-hidden": "true" }, h("span", {}, `← ${low}`), h("span", {}, `${high} →`))),
    value: () => own,
    follow(value) {
      own = value;
      const apart = list.map((entry) => Math.abs(Math.log(entry / value)));
      control.value = String(apart.indexOf(Math.min(...apart)));
      show();
    },
  };
}

function tableForm(specification, changed) {
  const name = h("input", { type: "text", value: "people", pattern: "[a-z_]+" }), column = h("input", { type: "text", value: "age", pattern: "[a-z_]+" });
  const kind = h("select", {}, ["ordinal", "categorical"].map((value) => h("option", { value }, value)));
  const domain = h("input", { type: "text", value: "1, 95" });
  return h("form", { onsubmit: add }, labelled("Table", name), labelled("Attribute", column), labelled("Kind", kind),
    labelled("Domain", domain, { hint: "Ordinal: low, high. Categorical: its values, with commas." }), h("button", { type: "submit", class: "quiet" }, "Add the attribute"));

  function add(event) {
    event.preventDefault();
    const parts = domain.value.split(",").map((part) => part.trim()).filter(Boolean);
    const domainText = kind.value === "ordinal" ? `kind = "ordinal", low = ${parts[0]}, high = ${parts[1]}` : `kind = "categorical", values = [${parts.map((part) => JSON.stringify(part)).join(", ")}]`;
    const heading = `[tables.${name.value}]\n`, line = `attributes.${column.value} = { ${domainText} }\n`;
    let text = specification.dataset.drawn ? specification.value : "epsilon = 2.0\n";
    if (!text.includes(heading)) text = `${text.trimEnd()}\n\n${heading}`;
    const at = text.indexOf(heading) + heading.length;
    specification.value = text.slice(0, at) + line + text.slice(at);
    specification.dataset.drawn = "1";
    changed();
  }
}
