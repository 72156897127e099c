// JSON that has one meaning: read strictly, without losing a digit of a number, and written as it is hashed.
import { InvalidData } from "./errors.js";
import { hex, utf8 } from "./randomness.js";

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[a-z]+|[{}[\]]/g;
const LONGEST = 2 ** 24;

/** A number as it was written: 2 and 2.0 are different to a hash, and 2^60 does not fit into a float. */
export class Numeral {
  constructor(text) {
    this.text = text;
  }
  /** A number without point and exponent as a BigInt; null otherwise. */
  get integer() {
    return /^-?\d+$/.test(this.text) ? BigInt(this.text) : null;
  }
}

const count = (text) => text.match(TOKENS)?.length;

/** The value of a JSON text: objects, lists, texts, truth values, null and numerals. */
export function readJson(text) {
  try {
    if (text.length > LONGEST) throw new RangeError();
    const numerals = [];
    JSON.parse(text); // what is read below is JSON, with an index in place of every number
    const value = JSON.parse(
      text.replace(TOKENS, (token) => (/^[-\d]/.test(token) ? `[${numerals.push(token) - 1}]` : token)),
      (_, entry) => (Array.isArray(entry) && typeof entry[0] === "number" ? new Numeral(numerals[entry[0]]) : entry),
    );
    // Of a key that occurs twice, some readers take the first and some the last: then tokens are missing here.
    if (count(canonicalJson(value)) === count(text)) return value;
  } catch (problem) {
    if (!(problem instanceof SyntaxError || problem instanceof RangeError || problem instanceof TypeError))
      throw problem;
  }
  throw new InvalidData("this is not JSON with one meaning", "Write it with deniable check --canonical.");
}

/** A value of `readJson` as the text that is hashed: keys sorted, no spaces, numbers as they were. */
export function canonicalJson(value) {
  if (value instanceof Numeral) return value.text;
  if (Array.isArray(value)) return `[${value.map(canonicalJson)}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, entry]) => [
    hex(utf8(name)), // the order of bytes in UTF-8 is that of code points, and not that of JavaScript
    `${JSON.stringify(name)}:${canonicalJson(entry)}`,
  ]);
  return `{${fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, field]) => field)}}`;
}
