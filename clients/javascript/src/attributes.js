// What a service collects: attributes with public domains, in tables. `encode` gives the position of a value, or says
// why it has none. Rules of the specification decide what becomes of values without a position.
import { floorDivision, fraction, isLess, minus, over, plus, rounded } from "./exact.js";
import { checkDistinct, checkField, checkName, fieldsOf, integerOf } from "./fields.js";
import {
  decimal,
  isWholeDays,
  momentOf,
  monthsBetween,
  numberOf,
  spacing,
  spanOf,
  startsMonths,
  timeOf,
} from "./scalars.js";
import { Numeral } from "./strict_json.js";

export const OUTSIDE = "outside the domain",
  OFF_GRID = "not on the grid",
  MISSING = "missing";
export const WRONG_TYPE = "of the wrong type";
/** The rule that gives missing values a cell of their own, after all values. */
const OWN = "own";
const CALENDAR_MONTHS = { month: 1, quarter: 3, year: 12 };
const LARGEST_NUMBER = 2n ** 62n,
  INTEGER_LIMIT = 2n ** 63n;
const LARGEST_TAU = 2 ** 15,
  LONGEST_CATEGORY = 1_000;
const MOST_ATTRIBUTES = 1_000,
  MOST_CATEGORIES = 1_000_000,
  MOST_DOMAIN_VALUES = 2 ** 31;
const ARGUMENTS = [
  "key",
  "out",
  "everyone",
  "source",
  "simulation",
  "engine",
  "spill",
  "ledger",
  "round",
  "memory",
  "max_rejected",
];

/** A value without a position. It says nothing about the value. */
export class Unplaceable extends Error {
  constructor(reason) {
    super(`a value is ${reason}`);
    this.reason = reason;
  }
}
const refuse = (reason) => {
  throw new Unplaceable(reason);
};

// Domains ------------------------------------------------------------------------------------------------------------

/** Numbers, dates or times in equal steps. Bounds and values are exact fractions: numbers, or microseconds. */
export class Ordinal {
  constructor(where, entry) {
    const fields = fieldsOf(
      where,
      entry,
      ["kind", "low", "high", "step"],
      ["name", "summed", "outside", "round", "missing"],
    );
    const { low, high, step } = fields;
    this.kind = momentOf(low)?.kind ?? "number";
    const at = (moment) => (moment?.kind === this.kind ? [moment.at, 1n] : null);
    const read = (value) => (this.kind === "number" ? numberOf(value) : at(momentOf(value)));
    const span = spanOf(step);
    [this.low, this.high, this.step] = [
      read(low),
      read(high),
      this.kind === "number" ? numberOf(step) : span && [span, 1n],
    ];
    this.months = this.kind === "date" && Object.hasOwn(CALENDAR_MONTHS, step) ? CALENDAR_MONTHS[step] : 0;
    checkField(this.low && this.high, where);
    const isStep = this.months
      ? startsMonths(this.low[0], this.months)
      : this.step?.[0] > 0n && (this.kind !== "date" || isWholeDays(span));
    checkField(isStep, `${where}: step`);
    const steps = this.#stepsTo(this.high),
      whole = floorDivision(...steps);
    checkField(this.kind !== "number" || steps[1] === 1n, `${where}: high`);
    if (this.kind === "number") this.#checkSize(where);
    this.known = Number(whole) + 1;
    this.size = this.known + (fields.missing === OWN ? 1 : 0);
    checkField(whole >= 0n && this.size >= 2 && this.size <= MOST_DOMAIN_VALUES, where);
    this.isOrdinal = true;
    this.#readRules(where, fields, read);
    this.stepFloat = this.kind === "number" ? Number(typeof step === "string" ? step : step.text) : 0;
  }

  /** How many steps an exact value lies above low. */
  #stepsTo(value) {
    if (this.months) return [BigInt(monthsBetween(this.low[0], value[0], this.months)), 1n];
    return over(minus(value, this.low), this.step);
  }

  #checkSize(where) {
    const common = lcm(this.low[1], this.step[1]);
    const fits = ([n, d]) => (n < 0n ? -n : n) * common <= LARGEST_NUMBER * d;
    checkField(fits(this.low) && fits(this.high), where);
  }

  #readRules(where, { summed, outside, round, missing }, read) {
    const isFlag = (value, only) => value === undefined || value === only;
    checkField(isFlag(summed, false) && isFlag(round, true) && isFlag(outside, "clip"), where);
    this.isSummed = this.kind === "number" && summed !== false && missing !== OWN;
    this.clips = outside === "clip";
    this.rounds = round === true;
    if (missing === OWN) this.missing = this.known;
    else if (missing !== undefined) {
      const value = read(missing),
        steps = value && this.#stepsTo(value);
      const isStart = value && (this.months ? startsMonths(value[0], this.months) : steps[1] === 1n);
      const isInside = isStart && !isLess(value, this.low) && !isLess(this.high, value);
      checkField(isInside, `${where}: missing`);
      this.missing = Number(steps[0]);
    }
  }

  encode(value) {
    if (value === undefined || value === null || Number.isNaN(value)) return this.missing ?? refuse(MISSING);
    const code = this.kind === "number" ? this.#ofNumber(value) : this.#ofTime(value);
    if (code >= 0n && code < BigInt(this.known)) return Number(code);
    if (!this.clips) refuse(OUTSIDE);
    return code < 0n ? 0 : this.known - 1;
  }

  #ofTime(value) {
    const at = timeOf(value, this.kind); // throws where the value is not a Date
    return at === null ? refuse(WRONG_TYPE) : floorDivision(...this.#stepsTo([at, 1n]));
  }

  /** Numbers without a fraction are integers, as long as they are safe; others are floats, read as they print. */
  #ofNumber(value) {
    const isInteger = typeof value === "bigint" || Number.isSafeInteger(value);
    if (!isInteger && (typeof value !== "number" || !Number.isFinite(value))) refuse(WRONG_TYPE);
    const exact = isInteger ? [BigInt(value), 1n] : decimal(String(value));
    if (exact[1] === 1n && (exact[0] >= INTEGER_LIMIT || exact[0] <= -INTEGER_LIMIT)) refuse(OUTSIDE);
    const steps = over(minus(exact, this.low), this.step);
    // A float such as 0.1 + 0.2 may lie a hair off its grid point.
    const slack = isInteger ? 0 : Math.min(Math.max(1e-6, (2 * spacing(value)) / this.stepFloat), 0.25);
    if (this.rounds) return floorDivision(...plus(steps, plus([1n, 2n], fraction(slack))));
    const code = rounded(steps),
      apart = minus(steps, [code, 1n]);
    const isInside = code >= 0n && code < BigInt(this.known);
    if (isInside && isLess(fraction(slack), [apart[0] < 0n ? -apart[0] : apart[0], apart[1]])) refuse(OFF_GRID);
    return code;
  }
}

function lcm(a, b) {
  let [x, y] = [a, b];
  while (y) [x, y] = [y, x % y];
  return (a / x) * b;
}

/** One of a public list of texts, integers or truth values. */
export class Categorical {
  isOrdinal = false;
  isSummed = false;

  constructor(where, entry) {
    const { values, map, other, missing } = fieldsOf(
      where,
      entry,
      ["kind", "values"],
      ["name", "map", "other", "missing"],
    );
    const fits = Array.isArray(values) && values.length >= 2 && values.length <= MOST_CATEGORIES;
    checkField(fits, `${where}: values`);
    const kept = values.map((value) => (value instanceof Numeral ? value.integer : value));
    this.type = typeof kept[0];
    const isFine = (value) =>
      typeof value === this.type &&
      (this.type === "boolean" ||
        (this.type === "bigint" && value < INTEGER_LIMIT && value > -INTEGER_LIMIT) ||
        (this.type === "string" && isShortText(value)));
    checkField(kept.every(isFine), `${where}: values`);
    this.codes = new Map(kept.map((value, code) => [value, code]));
    checkField(this.codes.size === kept.length, `${where}: values`);
    this.map = this.#readMap(`${where}: map`, map);
    const hasOwnCell = missing === OWN && !this.codes.has(OWN);
    this.size = kept.length + (hasOwnCell ? 1 : 0);
    this.other = this.#listed(`${where}: other`, other);
    this.missing = hasOwnCell ? kept.length : this.#listed(`${where}: missing`, missing);
  }

  #listed(where, entry) {
    if (entry === undefined) return undefined;
    const code = this.codes.get(entry instanceof Numeral ? entry.integer : entry);
    checkField(code !== undefined, where);
    return code;
  }

  #readMap(where, entry) {
    if (entry === undefined) return new Map();
    const names = Object.keys(fieldsOf(where, entry, [], Object.keys(entry ?? {})));
    const leads = (name) =>
      isShortText(name) && !this.codes.has(name) && typeof entry[name] === "string" && this.codes.has(entry[name]);
    const fits = this.type === "string" && names.length > 0 && names.length <= MOST_CATEGORIES && names.every(leads);
    checkField(fits, where);
    return new Map(names.map((name) => [name, entry[name]]));
  }

  encode(value) {
    if (value === undefined || value === null) return this.missing ?? refuse(MISSING);
    const kept = Number.isSafeInteger(value) ? BigInt(value) : value;
    if (typeof kept !== this.type) refuse(WRONG_TYPE);
    return this.codes.get(this.map.get(kept) ?? kept) ?? this.other ?? refuse(OUTSIDE);
  }
}

const isShortText = (text) =>
  text.isWellFormed() && (text.length <= LONGEST_CATEGORY || Array.from(text).length <= LONGEST_CATEGORY);

// Tables -------------------------------------------------------------------------------------------------------------

/** What one service collects: one row per user, or up to `many`, of which `tau` are reported. */
export class Table {
  constructor(entry) {
    const { name, many, tau, attributes } = fieldsOf("a table", entry, ["name", "many", "tau", "attributes"]);
    checkName("table", name);
    const where = `table '${name}'`;
    checkField(!ARGUMENTS.includes(name), where);
    this.name = name;
    this.many = many === null ? null : integerOf(`${where}: many`, many, 1, LARGEST_TAU);
    this.tau = integerOf(`${where}: tau`, tau, 1, this.many ?? 1);
    const fits = Array.isArray(attributes) && attributes.length <= MOST_ATTRIBUTES;
    checkField(fits, where);
    this.attributes = attributes.map((attribute) => this.#read(where, attribute));
    checkDistinct(`attributes of ${where}`, this.names);
    this.private = this.attributes.filter(({ domain }) => domain);
    checkField(this.private.length, where);
    this.domains = this.private.map(({ domain }) => domain);
  }

  #read(where, entry) {
    const name = entry?.name,
      kind = entry?.kind;
    checkName(`${where}: attribute`, name);
    const label = `${where}: attribute '${name}'`;
    checkField(name.toLowerCase() !== "uid" && name !== "many" && name !== "tau", label);
    if (kind === "ordinal") return { name, domain: new Ordinal(label, entry) };
    if (kind === "categorical") return { name, domain: new Categorical(label, entry) };
    checkField(kind === "public", `${label}: kind`);
    fieldsOf(label, entry, ["name", "kind"]);
    return { name, domain: null };
  }

  get names() {
    return this.attributes.map(({ name }) => name);
  }

  get public() {
    return this.attributes.filter(({ domain }) => !domain).map(({ name }) => name);
  }
}
