// An answer: a chart with intervals, a table whose numbers have the digits that their error leaves, files, and notes.
import { chart } from "./chart.js";
import { download, empty, h, table } from "./dom.js";
import { count, interval, shown } from "./numbers.js";

export const SHOWN_ROWS = 500;
const DRAWN_ROWS = 400;
const ARROW = "application/vnd.apache.arrow.stream";

// `answer` is what POST /v1/sql sent; `options` were asked with. `drawing` says which chart of which column; `save` fetches a file.
export function answerView(answer, options, { kind, column }, save) {
  const { groups, answers, rows, notes, total } = answer;
  if (total === 0) return empty("The answer has no rows.", "WHERE or HAVING leaves nothing. Widen it.");
  const header = [...groups, ...answers.flatMap((name) => [name, `${name}: interval`])];
  const numeric = [...groups.map(() => false), ...answers.flatMap(() => [true, true])];
  const cells = rows.map((row) => [...groups.map((group) => String(row[group])), ...answers.flatMap((name) => number(row, name))]);
  const picture = rows.length > 0 && answers.length > 0 && drawn(answer, answers.includes(column) ? column : answers[0], kind);
  const file = (words, name, accept) => h("button", { type: "button", class: "quiet", onclick: () => save(name, accept) }, words);
  return h("section", { "aria-label": "Answer" }, picture,
    notes.length > 0 && h("ul", { class: "notes", "aria-label": "About these numbers" }, notes.map((note) => h("li", {}, note))),
    total > rows.length && h("p", {}, `The first ${count(rows.length)} of ${count(total)} rows are shown. The files have all of them.`),
    table(`Answer, with ${Math.round(options.confidence * 100)} % intervals${options.simultaneous ? " that all hold at once" : ""}`, header, cells, numeric),
    h("div", { class: "row" }, file("Download CSV", "answer.csv", "text/csv"), file("Download Arrow", "answer.arrows", ARROW),
      picture && h("button", { type: "button", class: "quiet", onclick: async () => download("answer.png", await picture.querySelector(".chart").picture()) }, "Download PNG")));
}

function number(row, name) {
  const value = row[name], low = row[`${name}_low`], high = row[`${name}_high`];
  const error = Math.hypot(row[`${name}_stderr`] ?? 0, row[`${name}_model`] ?? 0);
  if (value == null) return [remark("unclear", "too few people, or too much noise"), interval(low, high, ((high ?? 0) - (low ?? 0)) / 4)];
  const words = `${shown(value, error)} ± ${shown(error, error)}`;
  return [error > 0 && low < 0 && high > 0 ? remark(words, "may be 0") : words, interval(low, high, error)];
}

const remark = (words, note) => h("span", {}, words, h("small", { class: "remark" }, note));

function drawn({ groups, rows }, answer, wanted) {
  const some = rows.slice(0, DRAWN_ROWS), last = groups.at(-1);
  const values = (suffix) => some.map((row) => row[`${answer}${suffix}`] ?? null);
  const ordered = groups.length === 1 && some.length > 12 && some.every((row) => typeof row[last] === "number" || /^\d{4}-\d\d/.test(row[last]));
  const kind = wanted !== "auto" ? wanted : ordered ? "line" : groups.length ? "bars" : "points";
  const names = groups.length ? some.map((row) => groups.map((group) => row[group]).join(", ")) : [answer];
  const title = `${answer}${groups.length ? ` by ${groups.join(", ")}` : ""}`;
  return h("figure", {}, chart({ label: `Chart of ${title}, with intervals; the table has the same numbers`, names, value: values(""), low: values("_low"), high: values("_high"), kind, height: groups.length ? 280 : 180 }),
    h("figcaption", {}, `${title}${rows.length > DRAWN_ROWS ? `, the first ${DRAWN_ROWS} rows` : ""}`));
}
