// Public numbers that follow from a hash: the coins that are assigned to a report, and the rounds in which a person
// answers. They never depended on data; a device cannot choose them, and a server can compute them again.
import { sha256, utf8, wordAt } from "./randomness.js";

const scaled = (word, bound) => (word * bound) >> 64n;

/** 32 bytes, a purpose in 24 and a number in 8: what the hash of a report begins with. */
function prefix(first, purpose, number = 0) {
  const bytes = new Uint8Array(64);
  bytes.set(first);
  bytes.set(utf8(purpose), 32);
  new DataView(bytes.buffer).setBigUint64(56, BigInt(number));
  return bytes;
}

const hashed = (start, slot, user) => sha256(start, Uint8Array.of(slot >> 8, slot & 255), String(user));

/** Draws of group, view and seed for one report, by the table's digest and the user id. */
export async function assignedCoins(specification, digest, user, slot, round) {
  const hasOwnCoins = specification.rounds && !specification.rounds.isMemoised;
  const start = prefix(digest, "deniable coins", hasOwnCoins ? round + 1 : 0);
  const words = await hashed(start, slot, user);
  return {
    group: (bound) => scaled(wordAt(words, 0), bound),
    view: (bound) => scaled(wordAt(words, 1), bound),
    seed: (bound) => scaled(wordAt(words, 2), bound),
  };
}

/** The rounds in which a person answers, where rounds rotate: by the user id, or by a secret of the device. */
export async function turnsOf(specification, user, secret) {
  const { rounds, assigned } = specification,
    chosen = [];
  const start = prefix(assigned ? await specification.digest("") : secret, "deniable turns");
  for (let answer = 0; answer < rounds.answers; answer++) {
    const words = await hashed(start, answer, assigned ? user : "");
    let turn = Number(scaled(wordAt(words, 0), BigInt(rounds.count - answer)));
    for (const earlier of chosen.toSorted((a, b) => a - b)) turn += turn >= earlier ? 1 : 0;
    chosen.push(turn);
  }
  return new Set(chosen.map((turn) => turn + 1));
}
