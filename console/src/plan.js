// Plan: tables and rules, questions, and sliders that move the predicted errors before anything is collected.
import { download, fill, h, labelled, problem, say, table } from "./dom.js";
import { count, shown } from "./numbers.js";
import { asked } from "./server.js";

const POWERS = (from, to, steps) => Array.from({ length: steps + 1 }, (_, at) => from * (to / from) ** (at / steps));
const EPSILONS = POWERS(0.1, 10, 40).map((value) => Number(value.toPrecision(2)));
const USERS = POWERS(1e3, 1e8, 50).map((value) => Number(value.toPrecision(1)));

export async function planPage(main) {
  const specification = h("textarea", { rows: "12", spellcheck: "false" });
  const questions = h("textarea", { rows: "4", spellcheck: "false" });
  const slider = (list, value, low, high) => h("input", { type: "range", min: "0", max: String(list.length - 1), value: String(Math.max(0, list.findIndex((entry) => entry >= value))), "data-low": low, "data-high": high });
  const epsilon = slider(EPSILONS, 2), users = slider(USERS, 100000), rounds = h("input", { type: "range", min: "1", max: "52", value: "1" });
  const outputs = { epsilon: h("output"), users: h("output"), rounds: h("output") };
  const told = h("div", { "aria-live": "polite" });
  let waiting = null, latest = 0, planned = null;

  fill(main, h("h1", {}, "Plan"),
    h("p", {}, "What error to expect, before anything is collected. Nothing here looks at reports."),
    h("div", { class: "columns" },
      h("section", { "aria-label": "Specification" }, labelled("Specification (TOML)", specification, { hint: "Paste yours, edit this one, or draw one up below." }),
        h("details", {}, h("summary", {}, "Draw up a table in a form"), tableForm(specification, changed))),
      h("section", { "aria-label": "Questions and settings" },
        labelled("Questions, separated by semicolons", questions),
        ranged("ε for each person", epsilon, outputs.epsilon, "protects more", "is more accurate"),
        ranged("People who report", users, outputs.users, "fewer", "more: smaller error"),
        ranged("Rounds over a lifetime", rounds, outputs.rounds, "asked once", "asked often: larger error per round"),
        h("div", { class: "row" }, h("button", { type: "button", onclick: () => predict(true) }, "Choose a design for these questions"),
          h("button", { type: "button", class: "quiet", onclick: () => planned && download("planned.toml", planned.specification, "application/toml") }, "Download the specification")))),
    told);

  for (const control of [epsilon, users, rounds]) control.addEventListener("input", changed);
  for (const control of [specification, questions]) control.addEventListener("input", changed);

  function settings() {
    const chosen = { epsilon: EPSILONS[epsilon.value], users: USERS[users.value], rounds: Number(rounds.value) };
    outputs.epsilon.textContent = `ε = ${chosen.epsilon}`;
    outputs.users.textContent = count(chosen.users);
    outputs.rounds.textContent = chosen.rounds === 1 ? "one" : String(chosen.rounds);
    epsilon.setAttribute("aria-valuetext", `epsilon ${chosen.epsilon}; lower protects more, higher is more accurate`);
    users.setAttribute("aria-valuetext", `${count(chosen.users)} people`);
    return chosen;
  }

  function changed() {
    settings();
    clearTimeout(waiting);
    waiting = setTimeout(() => predict(false), 60);
  }

  async function predict(fit) {
    const turn = ++latest;
    const list = questions.value.split(";").map((text) => text.trim()).filter(Boolean);
    if (fit) fill(told, h("p", { class: "working" }, "Choosing views…"));
    try {
      const answer = await asked("v1/plan", { body: { ...settings(), specification: specification.value || null, questions: list, fit } });
      if (turn !== latest) return;
      planned = answer;
      if (!specification.value || fit) specification.value = answer.specification;
      draw(answer);
      if (fit) say("A design was chosen. The specification has it.");
    } catch (failure) {
      if (turn === latest) fill(told, problem(failure.message, failure.todo));
    }
  }

  function draw({ predictions, design, lifetime }) {
    const rows = predictions.flatMap(({ question, answers, refused }) => refused ? [[question, "", refused, ""]]
      : answers.map((answer) => [question, answer.name, answer.error == null ? "unclear: too few people" : `± ${shown(answer.error, answer.error)}`,
          answer.share == null ? "" : `${(100 * answer.share).toPrecision(2)} %`]));
    fill(told, h("section", { "aria-label": "Predicted errors" }, h("h2", {}, "Predicted errors"),
      h("p", {}, `Design ${design}. One person spends at most ε = ${Number(lifetime.toPrecision(3))} over a lifetime.`),
      rows.length ? table("Standard error of each answer", ["question", "answer", "expected error", "of people"], rows, [false, false, true, true]) : h("p", {}, "Type a question to see its error.")));
  }

  try {
    const { tables } = await asked("v1/tables");
    questions.value = `SELECT COUNT(*) AS n FROM ${tables[0].name}`;
    const first = tables[0].columns.find((column) => column.comment.startsWith("private"));
    if (first) questions.value += `;\nSELECT ${first.name}, COUNT(*) AS n FROM ${tables[0].name} GROUP BY ${first.name}`;
    settings();
    await predict(false);
  } catch (failure) {
    fill(told, problem(failure.message, failure.todo));
  }
}

function ranged(words, control, output, low, high) {
  const field = labelled(words, control);
  field.append(output, h("div", { class: "ends", "aria-hidden": "true" }, h("span", {}, `← ${low}`), h("span", {}, `${high} →`)));
  return field;
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
