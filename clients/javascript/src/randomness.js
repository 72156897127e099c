// Random bits and SHA-256, both from Web Crypto. Browsers have it on pages that came over https or from localhost.
import { needed } from "./errors.js";

const text = new TextEncoder();

const webCrypto = () => needed("Web Crypto", globalThis.crypto?.subtle && crypto);

/** One uniform integer in {0, …, bound − 1}, both BigInt, from the operating system. */
export function randbelow(bound) {
  const bits = (bound - 1n).toString(2).length;
  const bytes = new Uint8Array((bits + 7) >> 3);
  for (;;) {
    webCrypto().getRandomValues(bytes);
    const drawn = BigInt(`0x${hex(bytes)}`) >> BigInt(8 * bytes.length - bits);
    if (drawn < bound) return drawn;
  }
}

/** A random text of so many bytes in hexadecimal. */
export const randomHex = (count) => hex(webCrypto().getRandomValues(new Uint8Array(count)));

/** SHA-256 of texts and bytes, one after another. */
export async function sha256(...parts) {
  const pieces = parts.map((part) => (typeof part === "string" ? text.encode(part) : part));
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  let end = 0;
  for (const piece of pieces) (whole.set(piece, end), (end += piece.length));
  return new Uint8Array(await webCrypto().subtle.digest("SHA-256", whole));
}

export const sha256Hex = async (...parts) => hex(await sha256(...parts));

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export const fromHex = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));

/** A word of 64 bits, big-endian. */
export const wordAt = (bytes, index) => new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(8 * index);

/** A text as UTF-8. */
export const utf8 = (value) => text.encode(value);
