// What devices and the server of a stream agree on before anything is sent. All of it is public.
import { check } from "./errors.js";
import { checkNoise, fraction } from "./exact.js";
import { sha256Hex } from "./randomness.js";
import { hybrid, piecewise, rounding, wave } from "./stream_mechanisms.js";

const LOG_STEPS = 2047;
const MECHANISMS = { hybrid, piecewise, rounding };
const isBetween = (low, high) => (value) => typeof value === "number" && value >= low && value <= high;
const isOneOf =
  (...words) =>
  (value) =>
    words.includes(value);

/** What each setting must be. */
const RULES = {
  bound: ["0.001 to 2^40", isBetween(1e-3, 2 ** 40)],
  name: ["a text", (name) => typeof name === "string" && name.isWellFormed()],
  scale: ["log or linear", isOneOf("log", "linear")],
  mechanism: ["hybrid, piecewise, rounding or wave", isOneOf("wave", ...Object.keys(MECHANISMS))],
  grid: ["null or 2 to 2^30", (grid) => grid === null || (Number.isInteger(grid) && isBetween(2, 2 ** 30)(grid))],
  renewal: ["0 to 1/2", isBetween(0, 0.5)],
};

export class ToPLProtocol {
  constructor({ epsilon, bound, name = "", scale = "log", mechanism = "hybrid", grid = null, renewal = 0 }) {
    checkNoise(epsilon);
    Object.assign(this, { epsilon, bound, name, scale, mechanism, grid, renewal });
    for (const [setting, [words, isFine]] of Object.entries(RULES))
      check(isFine(this[setting]), setting, `must be ${words}`, "Take what the collector describes.");
  }

  /** The hash of all settings, as Python writes them in JSON. Reports made under other settings are refused. */
  sha256() {
    const ascii = JSON.stringify(this.name).replace(
      /[\u007f-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
    const renewal = this.renewal ? `, "renewal": ${floatText(this.renewal)}` : "";
    return sha256Hex(
      `{"topl": {"bound": ${floatText(this.bound)}, "epsilon": ${floatText(this.epsilon)}, "grid": ${this.grid}, ` +
        `"mechanism": "${this.mechanism}", "name": ${ascii}${renewal}, "scale": "${this.scale}"}}`,
    );
  }

  checkTheta(theta) {
    check(
      isBetween(Number.MIN_VALUE, this.bound)(theta),
      "theta",
      "must be above 0 and within the bound",
      "Ask for it again.",
    );
  }

  /** y of a first report. */
  first(value, draws) {
    const share = value / this.bound;
    const position = this.scale === "linear" ? share : Math.log1p(LOG_STEPS * share) / Math.log1p(LOG_STEPS);
    return wave(Math.min(position, 1), this.epsilon, this.grid, draws);
  }

  /** y of a second report, under θ. */
  second(value, theta, draws) {
    if (this.mechanism === "wave") return wave(value / theta, this.epsilon, this.grid, draws);
    const [[a, b], [c, d]] = [fraction(value), fraction(theta)];
    return MECHANISMS[this.mechanism]([a * d, b * c], this.epsilon, this.grid, draws);
  }
}

/** A positive float of at most 2^40 as Python writes it: 2.0, 0.5, 1e-05. */
function floatText(x) {
  if (x < 1e-4) return x.toExponential().replace(/-(\d)$/, "-0$1");
  return Number.isInteger(x) ? `${x}.0` : `${x}`;
}
