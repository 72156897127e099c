// What devices and the server of a stream agree on before anything is sent. All of it is public.
import { check } from "./errors.js";
import { checkEpsilon, checkNoise, fraction } from "./exact.js";
import { sha256Hex } from "./randomness.js";
import { hybrid, piecewise, rounding, wave } from "./stream_mechanisms.js";

const LOG_STEPS = 2047,
  SMALLEST_BOUND = 1e-3,
  LARGEST_BOUND = 2 ** 40,
  FINEST_GRID = 2 ** 30;
const MECHANISMS = { hybrid, piecewise, rounding, wave: null };
const isNumber = (value, low, high) => typeof value === "number" && value >= low && value <= high;

export class ToPLProtocol {
  constructor({ epsilon, bound, name = "", scale = "log", mechanism = "hybrid", grid = null, renewal = 0 }) {
    checkEpsilon(epsilon);
    checkNoise(epsilon);
    check(
      isNumber(bound, SMALLEST_BOUND, LARGEST_BOUND),
      "bound",
      "must lie between 0.001 and 2^40",
      "Change the unit of the values.",
    );
    check(typeof name === "string" && name.isWellFormed(), "name", "must be a text", "Name the stream.");
    check(scale === "log" || scale === "linear", "scale", "must be log or linear", "Use the default.");
    check(
      typeof mechanism === "string" && Object.hasOwn(MECHANISMS, mechanism),
      "mechanism",
      "is unknown",
      "Use the default.",
    );
    check(
      grid === null || (Number.isInteger(grid) && grid >= 2 && grid <= FINEST_GRID),
      "grid",
      "must be 2 to 2^30",
      "Leave it out.",
    );
    check(isNumber(renewal, 0, 0.5), "renewal", "must be a share of users, from 0 to 1/2", "Use 0.05, or 0.");
    Object.assign(this, { epsilon, bound, name, scale, mechanism, grid, renewal });
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
    const fits = typeof theta === "number" && theta > 0 && theta <= this.bound;
    check(fits, "theta", `must lie above 0 and not above the bound ${this.bound}`, "Announce another.");
    return theta;
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

/** A float as Python writes it: 2.0, 1e-05, 1e+16. */
function floatText(x) {
  if (x === 0) return Object.is(x, -0) ? "-0.0" : "0.0";
  const [, sign, first, rest = "", exponent] = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(x.toExponential());
  const power = Number(exponent),
    digits = first + rest;
  if (power < -4 || power >= 16) {
    const size = String(Math.abs(power)).padStart(2, "0");
    return `${sign}${first}${rest && "."}${rest}e${power < 0 ? "-" : "+"}${size}`;
  }
  if (power < 0) return `${sign}0.${"0".repeat(-power - 1)}${digits}`;
  const whole = digits.slice(0, power + 1).padEnd(power + 1, "0");
  return `${sign}${whole}.${digits.slice(power + 1) || "0"}`;
}
