// Numbers, dates, times and spans of time, as specifications write them and as rows hold them.
import { reduced } from "./exact.js";
import { Numeral } from "./strict_json.js";

const DAY_US = 86_400_000_000n;
/** A number with a fraction as it is kept: without zeros at the end, and with an exponent where it is small. */
const DECIMAL = /^-?(?:(?:0\.(?!0{6})|[1-9]\d*\.)\d*[1-9]|[1-9](?:\.\d*[1-9])?E-\d{1,3})$/;

/** A decimal text as an exact fraction; null if it is not one. */
export function decimal(text) {
  const match = /^(-?)(\d{1,400})(?:\.(\d{1,400}))?(?:[eE]([+-]?\d{1,3}))?$/.exec(text);
  if (!match) return null;
  const [, sign, whole, rest = "", power = "0"] = match;
  let [n, exponent] = [BigInt(sign + whole + rest), Number(power) - rest.length];
  for (; n && exponent < 0 && n % 10n === 0n; exponent++) n /= 10n;
  return exponent < 0 ? reduced(n, 10n ** BigInt(-exponent)) : [n * 10n ** BigInt(exponent), 1n];
}

/** A number of a specification as an exact fraction: an integer, or the text of a decimal that is none. */
export function numberOf(entry) {
  if (entry instanceof Numeral) return entry.integer === null ? null : [entry.integer, 1n];
  return typeof entry === "string" && DECIMAL.test(entry) ? decimal(entry) : null;
}

/** A date or a time of a specification in microseconds since 1970, and which of the two it is; null otherwise. */
export function momentOf(entry) {
  const match = typeof entry === "string" && /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d:\d\d)?(?:\.(\d{6}))?$/.exec(entry);
  if (!match || (match[3] && (!match[2] || match[3] === "000000"))) return null;
  const [, day, time, micro = "0"] = match,
    text = `${day}${time ?? "T00:00:00"}.000Z`,
    ms = Date.parse(text);
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== text || day < "0001") return null;
  return { kind: time ? "time" : "date", at: BigInt(ms) * 1000n + BigInt(micro) };
}

/** A span of a specification in microseconds, such as "3600 s"; null otherwise. */
export function spanOf(entry) {
  const match = typeof entry === "string" && /^(0|[1-9]\d{0,13})(?:\.(\d{0,5}[1-9]))? s$/.exec(entry);
  if (!match) return null;
  const span = BigInt(match[1]) * 1_000_000n + BigInt((match[2] ?? "").padEnd(6, "0"));
  return span > 0n && span < 10n ** 9n * DAY_US ? span : null;
}

export const isWholeDays = (span) => span % DAY_US === 0n;

/** A Date of a row in microseconds, read in UTC; of a date, when its day begins. */
export function timeOf(date, kind) {
  const ms = Date.prototype.getTime.call(date);
  if (Number.isNaN(ms)) return null;
  return BigInt(kind === "date" ? Math.floor(ms / 86_400_000) * 86_400_000 : ms) * 1000n;
}

/** The distance from a float to the next one away from zero. */
export function spacing(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return 2 ** (Math.max((view.getUint16(0) >> 4) & 0x7ff, 1) - 1075);
}

const monthOf = (at) => {
  const date = new Date(Number(at / 1000n));
  return 12 * date.getUTCFullYear() + date.getUTCMonth();
};

/** How many units of so many months lie between two dates, the first of which begins one. */
export const monthsBetween = (first, at, months) => Math.floor((monthOf(at) - monthOf(first)) / months);

/** Whether a date is the first day of a unit of so many months. */
export const startsMonths = (at, months) =>
  monthOf(at) % months === 0 && new Date(Number(at / 1000n)).getUTCDate() === 1;
