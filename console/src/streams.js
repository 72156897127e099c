// Streams of devices and of stores: series with bands, any window by dragging or by its ends, θ, notices and charges.
import { chart } from "./chart.js";
import { empty, fill, h, labelled, problem, say } from "./dom.js";
import { count, interval, shown } from "./numbers.js";
import { asked } from "./server.js";

const EVERY_MS = 3000;

export async function streamsPage(main, alive) {
  const told = h("div"), drawn = new Map();
  fill(main, h("h1", {}, "Streams"), told);

  async function look() {
    try {
      const { streams } = await asked("v1/streams");
      if (!streams.length) { fill(told, empty("This collector has no streams.", "For streams of devices: deniable serve --init shop.toml --streams streams.toml FOLDER. For streams that this server may see: deniable stream create FOLDER/live/NAME --epsilon 0.5 --bound 1000")); return; }
      if (told.querySelector(".problem, .empty")) fill(told);
      for (const stream of streams) {
        if (!drawn.has(stream.name)) { const section = streamSection(stream); drawn.set(stream.name, section); told.append(section.element); }
        drawn.get(stream.name).update(stream);
      }
    } catch (failure) {
      drawn.clear();
      if (!alive()) return;
      fill(told, problem(failure.message, failure.todo));
    }
  }
  await look();
  const timer = setInterval(() => (alive() ? document.hidden || look() : clearInterval(timer)), EVERY_MS);
}

// One stream: its facts, its series, and any window of it. A stream with keys shows one key at a time.
function streamSection({ name, keyed }) {
  const facts = h("dl", { class: "facts" }), picture = h("div"), noticed = h("div"), ofKey = h("div"), answer = h("div", { "aria-live": "polite" });
  const from = h("input", { type: "number", min: "0", value: "0" }), to = h("input", { type: "number", min: "1" }), key = h("select");
  const keyField = labelled("Key", key);
  let known = "", published = 0, drawing = 0, asking = 0;  // of several requests, the answer to the last one counts
  keyField.hidden = !keyed;
  key.addEventListener("change", () => { asking += 1; fill(answer); to.value = ""; draw(); });
  const element = h("section", { "aria-label": `Stream ${name}` }, h("h2", {}, name), facts, noticed, h("div", { class: "row" }, keyField), ofKey, picture,
    h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); ask(Number(from.value), Number(to.value)); } },
      labelled("From value", from), labelled("to before", to), h("button", { type: "submit", class: "quiet" }, "Sum of this window")), answer);
  const path = (what) => `v1/streams/${encodeURIComponent(name)}/${what}${keyed ? `?key=${encodeURIComponent(key.value)}` : ""}`;

  async function ask(start, stop) {
    const own = ++asking;
    try {
      const window = await asked(path("window"), { body: { start, stop } });
      if (own !== asking) return;
      const words = (part) => `${shown(part.value, part.error)} ± ${shown(part.error, part.error)} (95 %: ${interval(part.low, part.high, part.error)})`;
      fill(answer, h("p", {}, `Values ${count(start)} to ${count(stop)}: sum ${words(window.sum)}; mean ${words(window.mean)}.`), window.sum.note && h("p", { class: "notes" }, window.sum.note));
      say(`Sum ${shown(window.sum.value, window.sum.error)}`);
    } catch (failure) {
      if (own === asking) fill(answer, problem(failure.message, failure.todo));
    }
  }

  async function draw() {
    const own = ++drawing;
    try {
      const { bins, notice } = await asked(path("series")), column = (part) => bins.map((bin) => bin[part]);
      if (own !== drawing) return;
      published = bins.at(-1).stop;
      to.max = from.max = String(published);
      if (!to.value) to.value = String(published);
      if (keyed) fill(ofKey, notice && !noticed.textContent.includes(`${key.value}: `) && h("p", { class: "notes", role: "status" }, `${key.value}: ${notice}`));
      fill(picture, h("figure", {}, chart({
        label: `Mean of stream ${name} over ${bins.length} stretches, with 95 % intervals. Drag to choose a window, or enter its ends below.`,
        x: bins.map((bin) => (bin.start + bin.stop) / 2), value: column("value"), low: column("low"), high: column("high"), kind: "line", under: "number of the value",
        onselect: (low, high) => { from.value = String(Math.max(0, Math.round(low))); to.value = String(Math.min(published, Math.round(high))); ask(Number(from.value), Number(to.value)); },
      }), h("figcaption", {}, `Mean of every ${count(Math.round(published / bins.length))} values, with 95 % intervals. Drag to choose a window.`)));
    } catch (failure) {
      if (own !== drawing) return;
      known = "";
      fill(picture, problem(failure.message, failure.todo));
    }
  }

  return {
    element,
    update(stream) {
      const fact = (words, value) => h("div", {}, h("dt", {}, words), h("dd", {}, value));
      const promise = stream.live ? [fact("Protects", `one ${stream.protects ?? "value"}, from whoever reads what is published`), fact("Charges", `ε = ${stream.epsilon} for each`)]
        : [fact("Protects", "each person, also from this server"), fact("Charges each person", `ε = ${stream.epsilon}, once`)];
      fill(facts, promise, fact("Values up to", count(stream.bound)),
        !stream.live && fact("Phase", stream.theta == null ? `first: ${count(stream.first_reports)} reports until θ is chosen` : "second: estimates are published"),
        fact("θ", stream.theta == null ? (keyed ? "each key has its own" : "not chosen yet") : shown(stream.theta, stream.theta / 100)), fact("Published", count(stream.published)));
      fill(noticed, stream.notice && h("p", { class: "notes", role: "status" }, stream.notice));
      if (keyed && (stream.keys ?? []).length !== key.options.length) {
        const before = key.value;
        fill(key, stream.keys.map((each) => h("option", { selected: each === before }, each)));
      }
      if (!stream.published) fill(picture, empty("Nothing is published yet.", stream.live ? `Send values to POST /v1/streams/${name}, or run: deniable stream publish --store` : "The first reports choose θ; estimates follow."));
      else if (known !== String(stream.published)) { known = String(stream.published); draw(); }
    },
  };
}
