// Where a device keeps what must not be lost: its memory, its ledger, its queue. A store is any object with two methods,
//
//     read()        a promise of the text that was written last; null if nothing was ever written
//     write(text)   a promise that resolves once the text is safe, as a whole or not at all
//
// and, where several processes or tabs share it, a third: alone(work) awaits work() while it keeps all others out.
// Every text carries a digest of its content. A text that was changed is damaged, and stops whoever needs it.
import { check, Failure } from "./errors.js";
import { sha256Hex } from "./randomness.js";

const VERSION = 1;
const lastTurns = new WeakMap();

/** Work that is alone with a store: two clients that answer at once would answer differently. */
export function alone(store, work) {
  const turn = (lastTurns.get(store) ?? Promise.resolve()).then(() => (store.alone ? store.alone(work) : work()));
  lastTurns.set(
    store,
    turn.catch(() => undefined),
  );
  return turn;
}

/** A store that is forgotten with the process: for tests, and for people who are asked once. */
export class ProcessStore {
  #text = null;

  async read() {
    return this.#text;
  }

  async write(text) {
    this.#text = text;
  }
}

/** The content of a store as it was written by `writeContent`; null if there is none yet. */
export async function readContent(store, format, repair) {
  const text = await store.read();
  if (text === null || text === undefined) return null;
  try {
    const { deniable, version, content, sha256 } = JSON.parse(text);
    if (deniable === format && version === VERSION && sha256 === (await digest(format, content))) return content;
  } catch {
    // not even JSON
  }
  throw new Failure(`the ${format} is damaged, so what was sent is not known. Nothing was sent. ${repair}`);
}

export async function writeContent(store, format, content) {
  const text = JSON.stringify({ deniable: format, version: VERSION, content, sha256: await digest(format, content) });
  await store.write(text);
}

const digest = (format, content) => sha256Hex(`${format}:${VERSION}:${JSON.stringify(content)}`);

/** Refuse what is not a store, or is the store of a ledger already. */
export function checkStore(store, what, ledger) {
  if (typeof store?.read !== "function" || typeof store.write !== "function")
    throw new Failure(`${what} is not a store with read and write. Nothing was sent. Use BrowserStore or FileStore.`);
  check(!ledger?.isKeptIn(store), "ledger", `and ${what} lie in one store`, "Use two stores.");
  return store;
}
