// One report of a table, and how it travels: 32 bytes, whatever it says, or a line of JSON.
//
//     byte 0 version, 1 coins, 2-3 slot, 4-7 round, 8-15 tag, 16-19 view, 20-23 seed, 24-31 y; big-endian
import { check, InvalidData } from "./errors.js";
import { fromHex, hex, utf8 } from "./randomness.js";

export const REPORT_BYTES = 32;
const VERSION = 2,
  LONGEST_TEXT = 1_000;
/** The y that says "not my turn". Such a report is dropped. */
export const COVER = (1n << 64n) - 1n;

export class Report {
  constructor(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.length !== REPORT_BYTES || view.getUint8(0) !== VERSION || view.getUint8(1) > 1)
      throw new InvalidData("a report does not have 32 bytes of version 2", "Upgrade the older side.");
    this.bytes = bytes;
    this.coins = view.getUint8(1) ? "assigned" : "drawn";
    [this.slot, this.round, this.view, this.seed] = [
      view.getUint16(2),
      view.getUint32(4),
      view.getUint32(16),
      view.getUint32(20),
    ];
    [this.tag, this.y] = [view.getBigUint64(8), view.getBigUint64(24)];
    Object.freeze(this);
  }

  /** The 32 bytes of these fields. */
  static of({ assigned, slot, round, digest, view, seed, y }) {
    const bytes = new Uint8Array(REPORT_BYTES),
      to = new DataView(bytes.buffer);
    (to.setUint8(0, VERSION), to.setUint8(1, assigned ? 1 : 0), to.setUint16(2, slot), to.setUint32(4, round));
    bytes.set(digest.subarray(0, 8), 8);
    (to.setUint32(16, view), to.setUint32(20, seed), to.setBigUint64(24, BigInt(y)));
    return new Report(bytes);
  }

  static fromHex(digits) {
    return new Report(fromHex(digits));
  }

  toHex() {
    return hex(this.bytes);
  }

  /** The report with its user, its table and the user's public attributes, as one line of JSON. */
  toJson(user, table, attributes = {}) {
    const names = Object.keys(attributes),
      sent = names.map((name) => `${JSON.stringify(name)}:${sendable(attributes[name])}`);
    const more = names.length ? `,"public":{${sent}}` : "";
    return `{"uid":${sendable(user)},"table":${JSON.stringify(table)},"report":"${this.toHex()}"${more}}`;
  }
}

/** Whether a text can be sent: without unpaired surrogates, and of at most 1,000 bytes. */
const isSendableText = (text) => text.isWellFormed() && utf8(text).length <= LONGEST_TEXT;

/** Refuse what is not a user id. */
export function checkUser(user) {
  const isInteger = typeof user === "bigint" ? BigInt.asIntN(64, user) === user : Number.isSafeInteger(user);
  const problem = "must be a 64-bit integer or a text of at most 1,000 bytes";
  check(isInteger || (typeof user === "string" && isSendableText(user)), "user", problem, "Pass the user's id.");
}

/** A public value as JSON; null if no column can hold it: the report must arrive, whatever the row held. */
export function sendable(value) {
  if (typeof value === "boolean") return `${value}`;
  if (typeof value === "string") return isSendableText(value) ? JSON.stringify(value) : "null";
  if (typeof value === "bigint") return BigInt.asIntN(64, value) === value ? `${value}` : "null";
  if (typeof value !== "number" || !Number.isFinite(value)) return "null";
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : `${value}`; // a float remains one
}
