// A store in the browser: IndexedDB, with Web Locks, so that tabs and workers of one origin take turns.
import { Failure } from "./errors.js";

const DATABASE = "deniable",
  TEXTS = "texts";

const done = (request, event) =>
  new Promise((resolve, reject) => {
    request[event] = () => resolve(request.result);
    request.onerror =
      request.onabort =
      request.onblocked =
        () =>
          reject(
            new Failure("the browser's storage failed. Nothing was sent. Free some space, or leave private browsing."),
          );
  });

export class BrowserStore {
  #name;

  /** Stores of one name are one, in all tabs and workers of the page's origin. */
  constructor(name) {
    this.#name = String(name);
  }

  async #transaction(mode, work) {
    if (!globalThis.indexedDB) throw new Failure("IndexedDB is missing. Nothing was sent. Use a current browser.");
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(TEXTS);
    const database = await done(opening, "onsuccess");
    try {
      const transaction = database.transaction(TEXTS, mode, { durability: "strict" });
      const request = work(transaction.objectStore(TEXTS));
      await done(transaction, "oncomplete"); // a write is safe then, and not before
      return request.result;
    } finally {
      database.close();
    }
  }

  async read() {
    return (await this.#transaction("readonly", (texts) => texts.get(this.#name))) ?? null;
  }

  async write(text) {
    await this.#transaction("readwrite", (texts) => texts.put(text, this.#name));
  }

  alone(work) {
    if (globalThis.navigator?.locks) return navigator.locks.request(`${DATABASE}:${this.#name}`, work);
    throw new Failure(
      "Web Locks are missing, so two tabs could answer differently. Nothing was sent. Serve the page over https.",
    );
  }
}
