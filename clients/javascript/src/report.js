// One report of a table, and how it travels: 32 bytes, or a line of JSON.
import { check } from "./errors.js";
import { PackedReport } from "./packed_report.js";
import { utf8 } from "./randomness.js";

const LONGEST_TEXT = 1_000;
/** The y that says "not my turn". Such a report is dropped. */
export const COVER = (1n << 64n) - 1n;

export class Report extends PackedReport {
  static version = 2;
  static size = 32;
  static kinds = [0, 1];
  static fields = {
    isAssigned: ["Uint8", 1],
    slot: ["Uint16", 2],
    round: ["Uint32", 4],
    tag: ["BigUint64", 8],
    view: ["Uint32", 16],
    seed: ["Uint32", 20],
    y: ["BigUint64", 24],
  };

  get coins() {
    return this.isAssigned ? "assigned" : "drawn";
  }

  /** The report with its user, its table and the user's public attributes, as one line of JSON. */
  toJson(user, table, attributes = {}) {
    const sent = Object.entries(attributes).map(([name, value]) => `${JSON.stringify(name)}:${sendable(value)}`);
    const more = sent.length ? `,"public":{${sent}}` : "";
    return `{"uid":${sendable(user)},"table":${JSON.stringify(table)},"report":"${this.toHex()}"${more}}`;
  }
}

/** Whether a text can be sent: without unpaired surrogates, and of at most 1,000 bytes. */
const isSendableText = (text) => text.isWellFormed() && utf8(text).length <= LONGEST_TEXT;
const isSendableInteger = (value) => BigInt.asIntN(64, value) === value;

/** Refuse what is not a user id. */
export function checkUser(user) {
  const isInteger = typeof user === "bigint" ? isSendableInteger(user) : Number.isSafeInteger(user);
  const problem = "must be a 64-bit integer or a text of at most 1,000 bytes";
  check(isInteger || (typeof user === "string" && isSendableText(user)), "user", problem, "Pass the user's id.");
}

/** A public value as JSON; null if no column can hold it: the report must arrive, whatever the row held. */
export function sendable(value) {
  const isFine = {
    boolean: () => true,
    string: isSendableText,
    bigint: isSendableInteger,
    number: Number.isFinite,
  }[typeof value];
  if (!isFine?.(value)) return "null";
  if (typeof value === "string") return JSON.stringify(value);
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : `${value}`; // a float remains one
}
