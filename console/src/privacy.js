// Privacy: the promise of the collection and of every stream in words, what a person spends over a lifetime, and the page to sign.
import { download, fill, h, problem, table } from "./dom.js";
import { asked } from "./server.js";

export async function privacyPage(main) {
  const told = h("div");
  fill(main, h("h1", {}, "Privacy"), told);
  try {
    const { promise, streams, charges, total, page } = await asked("v1/promise");
    const shown = (epsilon) => (epsilon === "inf" ? "no limit" : String(Number(Number(epsilon).toPrecision(4))));
    fill(told,
      promise.warnings.map((words) => h("p", { class: "problem" }, words)),
      h("section", {}, h("h2", {}, `What ${promise.name ?? "this collection"} promises`), sections(promise.promise)),
      streams.map((stream) => h("section", {}, h("h2", {}, `What the stream ${stream.name} promises`), sections(stream.promise))),
      h("section", {}, h("h2", {}, "What one person spends"),
        table("Charges over a lifetime", ["what", "ε in one round", "ε over a lifetime"], [...charges.map((charge) => [charge.what, shown(charge.one_round), shown(charge.lifetime)]), ["all together", "", shown(total)]], [false, true, true]),
        h("p", {}, "Each device keeps its own ledger and refuses what would pass its limit. This server cannot see the ledgers.")),
      h("section", {}, h("h2", {}, "Sign-off"), h("p", {}, "Specification ", h("code", {}, promise.specification)),
        h("button", { type: "button", onclick: () => download("promise.html", page, "text/html") }, "Download the page to sign")));
  } catch (failure) {
    fill(told, problem(failure.message, failure.todo));
  }
}

// A heading, and a few sentences under it.
const sections = (promise) => h("div", { class: "promise" }, Object.entries(promise).map(([heading, sentences]) => h("div", {}, h("h3", {}, heading), h("ul", {}, sentences.map((sentence) => h("li", {}, worded(sentence)))))));

// Names of commands stand between backticks.
const worded = (sentence) => sentence.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
