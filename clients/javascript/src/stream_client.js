// The client on one device, for streams without trust: one report of one user, the same bytes when asked again.
//
// value ── cut to [0, bound] ──▶ no θ yet: position on the scale ── square wave ──▶ report
//                                θ known:  min(value, θ) ────────── hybrid ───────▶ report
//                                θ known, and a coin with chance `renewal` says so: as if there were none
import { describedBy } from "./collector.js";
import { check } from "./errors.js";
import { Draws, fraction } from "./exact.js";
import { withMemory } from "./memory.js";
import { randbelow as secureRandbelow } from "./randomness.js";
import { checkStore } from "./stores.js";
import { ToPLProtocol } from "./stream_protocol.js";
import { StreamReport } from "./stream_report.js";
import { Numeral } from "./strict_json.js";

const SETTINGS = ["epsilon", "bound", "renewal", "scale", "mechanism"];

export class ToPLClient {
  #memory;
  #ledger;
  #draws;

  constructor({ memory, ledger = null, randbelow = secureRandbelow, ...settings }) {
    this.protocol = new ToPLProtocol(settings);
    this.#memory = checkStore(memory, "memory", ledger);
    [this.#ledger, this.#draws] = [ledger, new Draws(randbelow)];
    /** How many values were no numbers in [0, bound], by reason. It stays on the device. */
    this.clipped = {};
  }

  /** The settings of a stream as a collector describes them, for the constructor; and θ, null before it is announced. */
  static async fetch(url, collection, stream) {
    const listed = (await describedBy(url, collection)).streams ?? {},
      described = Object.hasOwn(listed, stream) ? listed[stream] : null;
    check(described, "stream", "is not one of this collector's", "Check its name.");
    const plain = (value) => (value instanceof Numeral ? Number(value.text) : value);
    const given = SETTINGS.filter((name) => name in described).map((name) => [name, plain(described[name])]);
    const settings = { ...Object.fromEntries(given), name: stream },
      sha256 = await new ToPLProtocol(settings).sha256();
    check(sha256 === described.sha256, "the stream", "has another hash than the collector says", "Report this.");
    return { settings, theta: plain(described.theta) };
  }

  /** The report of a value: a first report while no threshold is announced, a second one under θ. */
  async report(value, theta = null) {
    if (theta !== null) this.protocol.checkTheta(theta);
    const number = typeof value === "bigint" ? Number(value) : value,
      sha256 = await this.protocol.sha256();
    return withMemory(this.#memory, async (memory) => {
      const key = `topl:${sha256}`;
      const answer = async () =>
        memory.get(key) ?? memory.set(key, (await this.#randomised(this.#cut(number), theta, sha256)).toHex());
      return StreamReport.fromHex(await (this.#ledger ? this.#charged(memory, key, sha256, answer) : answer()));
    });
  }

  #charged(memory, key, sha256, answer) {
    const { name, epsilon } = this.protocol,
      what = `stream ${name || sha256.slice(0, 8)}`;
    return this.#ledger.charged(memory, key, { what, specification: sha256, epsilon: fraction(epsilon) }, answer);
  }

  async #randomised(value, theta, sha256) {
    const { protocol } = this,
      isFirst = theta === null || (protocol.renewal && (await this.#draws.coin(fraction(protocol.renewal))));
    const y = isFirst
      ? await protocol.first(value, this.#draws)
      : await protocol.second(Math.min(value, theta), theta, this.#draws);
    return StreamReport.of({
      phase: isFirst ? 1 : 2,
      tag: parseInt(sha256.slice(0, 4), 16),
      y: Number(y),
      theta: isFirst ? 0 : theta,
    });
  }

  /** A device that fell silent would reveal that something was odd: whatever is not a number counts as 0. */
  #cut(value) {
    const { bound } = this.protocol;
    if (typeof value === "number" && value >= 0 && value <= bound) return value;
    const isNumber = typeof value === "number" && !Number.isNaN(value);
    const reason = !isNumber ? "not a number" : value < 0 ? "below zero" : "above the bound";
    this.clipped[reason] = (this.clipped[reason] ?? 0) + 1;
    return isNumber && value > 0 ? bound : 0;
  }
}
