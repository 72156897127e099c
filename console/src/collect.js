// Collect: what arrives, live; rounds, refusals, health. Rounds are opened and closed with a key of the scope operate.
import { chart } from "./chart.js";
import { empty, fill, h, problem, say, table } from "./dom.js";
import { bytes, count } from "./numbers.js";
import { asked } from "./server.js";

const EVERY_MS = 2000, KEPT = 120;

export async function collectPage(main, alive) {
  const told = h("div"), live = h("div"), rounds = h("div"), warned = h("div");
  fill(main, h("h1", {}, "Collect"), warned, told, live, rounds);
  const seen = [];
  let shownRounds = "";

  async function look() {
    try {
      const status = await asked("v1/status", { scope: "operate" });
      fill(warned);
      draw(status);
    } catch (failure) {
      fill(warned, problem(failure.message, failure.todo));
    }
  }

  function draw(status) {
    const total = Object.values(status.reports).reduce((sum, { reports }) => sum + reports, 0);
    seen.push({ at: Date.now(), total });
    seen.splice(0, seen.length - KEPT);
    fill(told,
      h("dl", { class: "facts" },
        fact("Health", status.ready ? "takes reports" : "takes no reports: stopping, or the disk is nearly full"),
        fact("Reports stored", count(total)), fact("Waiting for the disk", count(status.queued)), fact("Room on the disk", bytes(status.free_bytes)),
        fact("Accepted since the start, with streams", count(status.accepted)), fact("Repeated", count(status.repeated))),
      total === 0 ? empty("No reports yet.", `Devices send them to POST /v1/collections/${status.name}/reports.`)
        : table("Reports by table and round", ["table", ...(status.rounds ? ["round"] : []), "reports", "people"], Object.values(status.reports).map((row) => [row.table, ...(status.rounds ? [String(row.round)] : []), count(row.reports), count(row.users)]), [false, ...(status.rounds ? [true] : []), true, true]),
      Object.keys(status.refused).length ? table("Refused since the start, by reason", ["reason", "reports"], Object.entries(status.refused).map(([reason, number]) => [reason, count(number)]), [false, true])
        : h("p", {}, "No report was refused since the start."));
    if (seen.length > 2) {
      const speeds = seen.slice(1).map((moment, at) => (1000 * (moment.total - seen[at].total)) / (moment.at - seen[at].at));
      fill(live, h("h2", {}, "Reports per second"), chart({ label: `Reports per second over the last ${speeds.length * 2} seconds; now ${speeds.at(-1).toFixed(1)}`, x: speeds.map((_, at) => (at - speeds.length + 1) * 2), value: speeds, low: speeds, high: speeds, kind: "line", height: 160, under: "seconds", across: [-Math.max(30, speeds.length * 2), 0], fromZero: true }));
    }
    if (status.rounds && JSON.stringify(status.rounds) !== shownRounds) {
      shownRounds = JSON.stringify(status.rounds);
      fill(rounds, h("h2", {}, "Rounds"), h("p", {}, `${status.rounds.mode} rounds: ${status.rounds.count} in all.`),
        table("Rounds", ["round", "state", ""], status.rounds.states.map(({ round, open }) => [String(round), open == null ? "not opened yet" : open ? "open" : "closed",
          h("button", { type: "button", class: "quiet", onclick: () => setRound(round, !open) }, open ? `Close round ${round}` : `Open round ${round}`)])));
    }
  }

  async function setRound(round, open) {
    try {
      await asked("v1/rounds", { scope: "operate", body: { round, open } });
      say(`Round ${round} is ${open ? "open" : "closed"}.`);
      await look();
    } catch (failure) {
      fill(warned, problem(failure.message, failure.todo));
    }
  }

  await look();
  const timer = setInterval(() => (alive() ? document.hidden || look() : clearInterval(timer)), EVERY_MS);
}

const fact = (name, words) => h("div", {}, h("dt", {}, name), h("dd", {}, words));
