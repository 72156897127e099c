// Attributes with public domains. `encode` gives the position of a value, or says why it has none. Rules of the
// specification decide what becomes of values without a position.
import { abs, floorDivision, fraction, isLess, minus, over, plus, reduced, rounded } from "./exact.js";
import { checkField, fieldsOf, isObject, listOf } from "./fields.js";
import { decimal, monthsBetween, scalarOf, spacing, spanOf, startsMonths, timeOf } from "./scalars.js";
import { Numeral } from "./strict_json.js";

const OUTSIDE = "outside the domain",
  OFF_GRID = "not on the grid",
  MISSING = "missing";
/** The rule that gives missing values a cell of their own, after all values. */
const OWN = "own";
const CALENDAR_MONTHS = new Map([
  ["month", 1],
  ["quarter", 3],
  ["year", 12],
]);
const LARGEST_NUMBER = 2n ** 62n,
  INTEGER_LIMIT = 2n ** 63n,
  LONGEST_CATEGORY = 1_000,
  MOST_CATEGORIES = 1_000_000,
  MOST_DOMAIN_VALUES = 2 ** 31;

/** A value without a position, and why. It says nothing else about the value. */
export class Unplaceable extends Error {}
const refuse = (reason) => {
  throw new Unplaceable(reason);
};

/** Numbers, dates or times in equal steps. Bounds and values are exact fractions: numbers, or microseconds. */
export function ordinal(entry) {
  const needed = ["name", "kind", "low", "high", "step"],
    fields = fieldsOf(entry, needed, ["summed", "outside", "round", "missing"]);
  const isRule = (name, only) => {
    checkField([undefined, only].includes(fields[name]));
    return fields[name] === only;
  };
  const [isUnsummed, clips, rounds] = [isRule("summed", false), isRule("outside", "clip"), isRule("round", true)];

  const kind = scalarOf(fields.low)?.kind,
    isNumber = kind === "number";
  const read = (value) => {
    const scalar = scalarOf(value);
    checkField(scalar && scalar.kind === kind);
    return scalar.at;
  };
  const [low, high] = [read(fields.low), read(fields.high)],
    months = (kind === "date" && CALENDAR_MONTHS.get(fields.step)) || 0,
    step = isNumber ? read(fields.step) : spanOf(fields.step, kind);
  checkField(months ? startsMonths(low, months) : step?.[0] > 0n);
  /** How many steps an exact value lies above low. */
  const stepsTo = (value) => (months ? [monthsBetween(low, value, months), 1n] : over(minus(value, low), step));

  const steps = stepsTo(high),
    known = floorDivision(...steps) + 1n,
    hasOwnCell = fields.missing === OWN,
    size = Number(known) + (hasOwnCell ? 1 : 0);
  checkField(known > 0n && size >= 2 && size <= MOST_DOMAIN_VALUES);
  if (isNumber) {
    const common = low[1] * reduced(low[1], step[1])[1];
    checkField(steps[1] === 1n && [low, high].every(([n, d]) => abs(n) * common <= LARGEST_NUMBER * d));
  }
  const isInside = (code) => code >= 0n && code < known;
  const startOf = (value) => {
    const [code, parts] = stepsTo(value);
    checkField((months ? startsMonths(value, months) : parts === 1n) && isInside(code));
    return Number(code);
  };
  const missing = fields.missing === undefined ? undefined : hasOwnCell ? size - 1 : startOf(read(fields.missing));

  /** Numbers without a fraction are integers, as long as they are safe; others are floats, read as they print. */
  const codeOfNumber = (value) => {
    const isInteger = typeof value === "bigint" || Number.isSafeInteger(value);
    if (!isInteger && !Number.isFinite(value)) throw new TypeError();
    const exact = isInteger ? [BigInt(value), 1n] : decimal(String(value));
    if (exact[1] === 1n && abs(exact[0]) >= INTEGER_LIMIT) refuse(OUTSIDE);
    // A float such as 0.1 + 0.2 may lie a hair off its grid point.
    const stepFloat = Number(fields.step.text ?? fields.step),
      slack = fraction(isInteger ? 0 : Math.min(Math.max(1e-6, (2 * spacing(value)) / stepFloat), 0.25)),
      place = stepsTo(exact);
    if (rounds) return floorDivision(...plus(place, plus([1n, 2n], slack)));
    const code = rounded(place),
      [n, d] = minus(place, [code, 1n]);
    if (isInside(code) && isLess(slack, [abs(n), d])) refuse(OFF_GRID);
    return code;
  };
  const encode = (value) => {
    if (value === undefined || value === null || Number.isNaN(value)) return missing ?? refuse(MISSING);
    const code = isNumber ? codeOfNumber(value) : floorDivision(...stepsTo(timeOf(value, kind)));
    if (!clips && !isInside(code)) refuse(OUTSIDE);
    return Number(code < 0n ? 0n : code < known ? code : known - 1n);
  };
  return { isOrdinal: true, isSummed: isNumber && !isUnsummed && !hasOwnCell, hasOwnCell, size, encode };
}

/** One of a public list of texts, integers or truth values. */
export function categorical(entry) {
  const fields = fieldsOf(entry, ["name", "kind", "values"], ["map", "other", "missing"]),
    values = listOf(fields.values, MOST_CATEGORIES).map(category),
    codes = new Map(values.map((value, code) => [value, code])),
    type = typeof values[0];
  const isFine = {
    boolean: () => true,
    bigint: (value) => abs(value) < INTEGER_LIMIT,
    string: isShortText,
  }[type];
  checkField(isFine && values.length >= 2 && codes.size === values.length);
  checkField(values.every((value) => typeof value === type && isFine(value)));

  const map = new Map(Object.entries(fields.map ?? {}));
  if (fields.map !== undefined) {
    checkField(isObject(fields.map) && type === "string" && map.size && map.size <= MOST_CATEGORIES);
    for (const [name, value] of map) checkField(isShortText(name) && !codes.has(name) && codes.has(value));
  }
  const listed = (value) => {
    const code = codes.get(category(value));
    checkField(value === undefined || code !== undefined);
    return code;
  };
  const hasOwnCell = fields.missing === OWN && !codes.has(OWN),
    missing = hasOwnCell ? values.length : listed(fields.missing),
    other = listed(fields.other);

  const encode = (value) => {
    if (value === undefined || value === null) return missing ?? refuse(MISSING);
    const kept = Number.isSafeInteger(value) ? BigInt(value) : value;
    if (typeof kept !== type) throw new TypeError();
    return codes.get(map.get(kept) ?? kept) ?? other ?? refuse(OUTSIDE);
  };
  return { size: values.length + (hasOwnCell ? 1 : 0), encode };
}

const category = (entry) => (entry instanceof Numeral ? entry.integer : entry);
const isShortText = (text) => text.isWellFormed() && Array.from(text).length <= LONGEST_CATEGORY;
