// Fields of a specification, which only the canonical form has. Python says what is wrong with any other.
import { InvalidParameter } from "./errors.js";
import { Numeral } from "./strict_json.js";

const LONGEST_NAME = 200;

/** What is not canonical; `within` says where. */
class NotCanonical extends Error {}

export function checkField(isFine) {
  if (!isFine) throw new NotCanonical();
}

/** What `read` reads. If a field is not canonical, the refusal names the part of the specification that it is in. */
export function within(where, read) {
  try {
    return read();
  } catch (problem) {
    if (!(problem instanceof NotCanonical)) throw problem;
    throw new InvalidParameter(where, "is not canonical", "Write it with deniable check --canonical.");
  }
}

export const isObject = (entry) =>
  typeof entry === "object" && entry !== null && !Array.isArray(entry) && !(entry instanceof Numeral);

/** The fields of an entry, refused unless it has all that are needed and no unknown one. */
export function fieldsOf(entry, needed, optional = []) {
  checkField(isObject(entry) && needed.every((name) => Object.hasOwn(entry, name)));
  checkField(Object.keys(entry).every((name) => needed.includes(name) || optional.includes(name)));
  return entry;
}

/** A list of at least one entry and at most so many. */
export function listOf(entry, most) {
  checkField(Array.isArray(entry) && entry.length > 0 && entry.length <= most);
  return entry;
}

export function integerOf(entry, smallest, largest) {
  const value = entry instanceof Numeral ? entry.integer : null;
  checkField(value !== null && value >= smallest && value <= largest);
  return Number(value);
}

/** A positive float, which has a point or an exponent, or "inf". */
export function floatOf(entry) {
  if (entry === "inf") return Infinity;
  const value = entry instanceof Numeral && entry.integer === null ? Number(entry.text) : NaN;
  checkField(value > 0 && value < Infinity);
  return value;
}

export function oneOf(entry, words) {
  checkField(typeof entry === "string" && words.includes(entry));
  return entry;
}

export function checkName(name) {
  checkField(typeof name === "string" && name.length <= LONGEST_NAME && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  return name;
}

export const checkDistinct = (names) =>
  checkField(new Set(names.map((name) => name.toLowerCase())).size === names.length);
