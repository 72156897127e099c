// Numbers, dates, times and spans of time, as specifications write them and as rows hold them. All become exact
// fractions: numbers, or microseconds since 1970.
import { floorDivision, reduced } from "./exact.js";
import { Numeral } from "./strict_json.js";

const DAY_MS = 86_400_000;
/** A number with a fraction as it is kept: without zeros at the end, and with an exponent where it is small. */
const DECIMAL = /^-?(?:(?:0\.(?!0{6})|[1-9]\d{0,99}\.)\d{0,99}[1-9]|[1-9](?:\.\d{0,99}[1-9])?E-\d{1,3})$/;

/** A decimal text as an exact fraction. */
export function decimal(text) {
  const [digits, power = "0"] = text.split(/e/i),
    [whole, rest = ""] = digits.split(".");
  const n = BigInt(whole + rest),
    exponent = BigInt(power) - BigInt(rest.length);
  return exponent < 0n ? reduced(n, 10n ** -exponent) : [n * 10n ** exponent, 1n];
}

/** A number, date or time of a specification: which of the three it is, and where it lies; null otherwise. */
export function scalarOf(entry) {
  if (entry instanceof Numeral) return entry.integer === null ? null : { kind: "number", at: [entry.integer, 1n] };
  if (typeof entry !== "string") return null;
  if (DECIMAL.test(entry)) return { kind: "number", at: decimal(entry) };
  const [, day, time, micro = "0"] =
      /^(\d{4}-\d\d-\d\d)(?:(T\d\d:\d\d:\d\d)(?:\.(?!0{6})(\d{6}))?)?$/.exec(entry) ?? [],
    text = `${day}${time ?? "T00:00:00"}.000Z`,
    ms = Date.parse(text);
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== text || day < "0001") return null;
  return { kind: time ? "time" : "date", at: [BigInt(ms) * 1000n + BigInt(micro), 1n] };
}

/** A span of a specification, such as "3600 s", of whole days for dates; null otherwise. */
export function spanOf(entry, kind) {
  const match = typeof entry === "string" && /^(0|[1-9]\d{0,13})(?:\.(\d{0,5}[1-9]))? s$/.exec(entry);
  if (!match) return null;
  const span = BigInt(match[1] + (match[2] ?? "").padEnd(6, "0")),
    days = reduced(span, BigInt(DAY_MS) * 1000n);
  return days[0] >= 10n ** 9n * days[1] || (kind === "date" && days[1] > 1n) ? null : [span, 1n];
}

/** A Date of a row, read in UTC; of a date, when its day begins. It throws where there is none. */
export function timeOf(date, kind) {
  const ms = Date.prototype.getTime.call(date);
  return [BigInt(kind === "date" ? Math.floor(ms / DAY_MS) * DAY_MS : ms) * 1000n, 1n];
}

/** The distance from a float to the next one away from zero. */
export function spacing(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return 2 ** (Math.max((view.getUint16(0) >> 4) & 0x7ff, 1) - 1075);
}

const dateAt = ([us]) => new Date(Number(us / 1000n));
const monthOf = (at) => BigInt(12 * dateAt(at).getUTCFullYear() + dateAt(at).getUTCMonth());

/** How many units of so many months lie between two dates, the first of which begins one. */
export const monthsBetween = (first, at, months) => floorDivision(monthOf(at) - monthOf(first), BigInt(months));

/** Whether a date is the first day of a unit of so many months. */
export const startsMonths = (at, months) => monthOf(at) % BigInt(months) === 0n && dateAt(at).getUTCDate() === 1;
