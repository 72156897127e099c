// The console: five pages, a key, and no other host.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { askPage } from "./ask.js";
import { collectPage } from "./collect.js";
import { fill, h, problem } from "./dom.js";
import { showKeys } from "./keys.js";
import { page } from "./places.js";
import { planPage } from "./plan.js";
import { privacyPage } from "./privacy.js";
import { keys } from "./server.js";
import { streamsPage } from "./streams.js";

const PAGES = { ask: askPage, plan: planPage, collect: collectPage, streams: streamsPage, privacy: privacyPage };
const NEEDS = { collect: "operate" };
const main = document.getElementById("main");
let turn = 0;

async function show() {
  const name = PAGES[page()] ? page() : "ask", own = ++turn, scope = NEEDS[name] ?? "ask";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name[0].toUpperCase()}${name.slice(1)} · deniable`;
  if (!keys()[scope]) { welcome(name, scope); return; }
  const fresh = h("div");
  fill(main, fresh);
  try { await PAGES[name](fresh, () => own === turn); } catch (failure) { fill(fresh, problem(failure.message)); }
}

function welcome(name, scope) {
  fill(main, h("h1", {}, name[0].toUpperCase() + name.slice(1)), h("div", { class: "empty" },
    h("p", {}, `This page needs a key with the scope ${scope}.`), h("p", {}, "An operator makes one: ", h("code", {}, `deniable key add FOLDER NAME --scope ${scope}`)),
    h("button", { type: "button", onclick: () => showKeys(show) }, "Enter a key")));
}

document.getElementById("keys").addEventListener("click", () => showKeys(show));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
let last = page();
addEventListener("hashchange", () => { last = page(); show().then(() => last === page() && main.focus({ preventScroll: true })); });
show();
