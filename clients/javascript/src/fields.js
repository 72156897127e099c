// Fields of a specification, which only the canonical form has. Python says what is wrong with any other.
import { check } from "./errors.js";
import { Numeral } from "./strict_json.js";

const LONGEST_NAME = 200;

export const checkField = (isFine, where) =>
  check(isFine, where, "is not as a canonical specification has it", "Check the file with deniable check, in Python.");

/** The fields of an entry, refused unless it has all that are needed and no unknown one. */
export function fieldsOf(where, entry, needed, optional = []) {
  const isObject = entry !== null && typeof entry === "object" && !Array.isArray(entry) && !(entry instanceof Numeral);
  const hasAll = isObject && needed.every((name) => Object.hasOwn(entry, name));
  checkField(hasAll && Object.keys(entry).every((name) => needed.includes(name) || optional.includes(name)), where);
  return entry;
}

export function integerOf(where, entry, smallest, largest) {
  const value = entry instanceof Numeral ? entry.integer : null;
  checkField(value !== null && value >= BigInt(smallest) && value <= BigInt(largest), where);
  return Number(value);
}

/** A positive float, which has a point or an exponent, or "inf". */
export function floatOf(where, entry) {
  if (entry === "inf") return Infinity;
  const value = entry instanceof Numeral && entry.integer === null ? Number(entry.text) : NaN;
  checkField(value > 0 && value < Infinity, where);
  return value;
}

export function checkName(what, name) {
  const fits = typeof name === "string" && name.length <= LONGEST_NAME && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
  checkField(fits, `${what} name`);
}

export const checkDistinct = (what, names) =>
  checkField(new Set(names.map((name) => name.toLowerCase())).size === names.length, what);
