// Streams: published series with bands, any window by dragging or by its two ends, θ, saturation and charges.
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
      if (!streams.length) { fill(told, empty("This collector takes no streams.", "Make a folder with them: deniable serve --init shop.toml --streams streams.toml FOLDER")); return; }
      if (told.querySelector(".problem, .empty")) fill(told);
      for (const stream of streams) {
        if (!drawn.has(stream.name)) { const section = streamSection(stream); drawn.set(stream.name, section); told.append(section.element); }
        drawn.get(stream.name).update(stream);
      }
    } catch (failure) {
      drawn.clear();
      fill(told, problem(failure.message, failure.todo));
    }
  }
  await look();
  const timer = setInterval(() => (alive() ? document.hidden || look() : clearInterval(timer)), EVERY_MS);
}

function streamSection({ name }) {
  const facts = h("dl", { class: "facts" }), picture = h("div"), answer = h("div", { "aria-live": "polite" });
  const from = h("input", { type: "number", min: "0", value: "0" }), to = h("input", { type: "number", min: "1" });
  let known = null;
  const element = h("section", { "aria-label": `Stream ${name}` }, h("h2", {}, name), facts, picture,
    h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); ask(Number(from.value), Number(to.value)); } },
      labelled("From report", from), labelled("to before", to), h("button", { type: "submit", class: "quiet" }, "Sum of this window")), answer);

  async function ask(start, stop) {
    try {
      const window = await asked(`v1/streams/${encodeURIComponent(name)}/window`, { body: { start, stop } });
      const words = (part) => `${shown(part.value, part.error)} ± ${shown(part.error, part.error)} (95 %: ${interval(part.low, part.high, part.error)})`;
      fill(answer, h("p", {}, `Reports ${count(start)} to ${count(stop)}: sum ${words(window.sum)}; mean ${words(window.mean)}.`));
      say(`Sum ${shown(window.sum.value, window.sum.error)}`);
    } catch (failure) {
      fill(answer, problem(failure.message, failure.todo));
    }
  }

  async function draw(stream) {
    const { bins } = await asked(`v1/streams/${encodeURIComponent(name)}/series`);
    const column = (part) => bins.map((bin) => bin[part]);
    fill(picture, h("figure", {}, chart({
      label: `Mean of stream ${name} over ${bins.length} stretches of reports, with 95 % intervals. Drag to choose a window, or enter its ends below.`,
      x: bins.map((bin) => (bin.start + bin.stop) / 2), value: column("value"), low: column("low"), high: column("high"), kind: "line", under: "reports",
      onselect: (low, high) => { from.value = String(Math.max(0, Math.round(low))); to.value = String(Math.min(stream.published, Math.round(high))); ask(Number(from.value), Number(to.value)); },
    }), h("figcaption", {}, "Mean by stretch of reports, with 95 % intervals. Drag to choose a window.")));
  }

  return {
    element,
    update(stream) {
      const fact = (words, value) => h("div", {}, h("dt", {}, words), h("dd", {}, value));
      fill(facts, fact("Charges each person", `ε = ${stream.epsilon}, once`), fact("Values up to", count(stream.bound)),
        fact("Phase", stream.theta == null ? `first: ${count(stream.first_reports)} reports until θ is chosen` : "second: estimates are published"),
        fact("θ", stream.theta == null ? "not chosen yet" : shown(stream.theta, stream.theta / 100)), fact("Published", count(stream.published)),
        stream.notice && fact("Notice", stream.notice));
      to.max = from.max = String(stream.published);
      if (!to.value && stream.published) to.value = String(stream.published);
      if (!stream.published) fill(picture, empty("Nothing is published yet.", "The first reports choose θ; estimates follow."));
      else if (known !== stream.published) { known = stream.published; draw(stream).catch((failure) => fill(picture, problem(failure.message, failure.todo))); }
    },
  };
}
