// What this browser remembers of questions: named ones and the last thirty. It never leaves the browser.
import { fill, h, say, table } from "./dom.js";

const REMEMBERED = 30, HISTORY = "deniable history", NAMED = "deniable questions";
const saved = (name, otherwise) => { try { return JSON.parse(localStorage.getItem(name)) ?? otherwise; } catch { return otherwise; } };
const save = (name, value) => { try { localStorage.setItem(name, JSON.stringify(value)); } catch { say("This browser keeps nothing, so history and names are lost with the tab."); } };

export function rememberedQuestions(reopen) {
  const element = h("div");
  let tables = [];

  function draw() {
    const again = (sql, words) => h("button", { type: "button", class: "link", onclick: () => reopen(sql) }, words);
    const named = Object.entries(saved(NAMED, {})), past = saved(HISTORY, []), open = [...element.querySelectorAll("details[open] summary")].map((summary) => summary.textContent.split(" ")[0]);
    const folded = (words, ...inside) => h("details", { open: open.includes(words.split(" ")[0]) }, h("summary", {}, words), inside);
    fill(element,
      named.length > 0 && h("section", { "aria-label": "Named questions" }, h("h2", {}, "Named questions"), h("ul", { class: "plain" }, named.map(([name, sql]) => h("li", {}, again(sql, name), " ",
        h("button", { type: "button", class: "quiet small", "aria-label": `Forget ${name}`, onclick: () => forget(name) }, "Forget"))))),
      past.length > 0 && folded(`History (${past.length})`, h("ul", { class: "plain" }, past.map((sql) => h("li", {}, again(sql, sql)))),
        h("button", { type: "button", class: "quiet small", onclick: () => { save(HISTORY, []); draw(); say("The history is empty."); } }, "Clear history")),
      tables.length > 0 && folded("Tables and columns", tables.map((each) => table(`${each.name}: ${each.comment}`, ["column", "type", "what it is"], each.columns.map((column) => [column.name, column.type.toLowerCase(), column.comment])))));
  }

  function forget(name) {
    const { [name]: _, ...rest } = saved(NAMED, {});
    save(NAMED, rest);
    draw();
    say(`${name} is forgotten.`);
  }

  draw();
  return {
    element,
    shows(known) { tables = known; draw(); },
    asked(sql) { save(HISTORY, [sql, ...saved(HISTORY, []).filter((other) => other !== sql)].slice(0, REMEMBERED)); draw(); },
    keep(name, sql) { save(NAMED, { ...saved(NAMED, {}), [name]: sql }); draw(); say(`Kept as ${name}.`); },
  };
}
