// What a device has sent, so that it always repeats its first answer. A memory belongs to one user and forgets nothing.
import { alone, readContent, writeContent } from "./stores.js";
import { randomHex, sha256Hex } from "./randomness.js";

const FORMAT = "memory",
  REPAIR = "Restore it; removing it means to spend ε a second time.";

/** Run work that is alone with the memory of a store. What `set` is given is safe when it returns. */
export function withMemory(store, work) {
  return alone(store, async () => {
    const entries = new Map(Object.entries((await readContent(store, FORMAT, REPAIR)) ?? {}));
    return work({
      get: (key) => entries.get(key),
      set: async (key, value) => {
        entries.set(key, value);
        await writeContent(store, FORMAT, Object.fromEntries(entries));
        return value;
      },
    });
  });
}

/** What a ledger calls the draw of an answer, so that it is paid for once. An answer about to be drawn gets a new name. */
export async function nameOfDraw(memory, key) {
  const name = `${key}:draw`,
    isKnown = memory.get(key) !== undefined && memory.get(name) !== undefined;
  return sha256Hex(`${key}:${isKnown ? memory.get(name) : await memory.set(name, randomHex(32))}`);
}
