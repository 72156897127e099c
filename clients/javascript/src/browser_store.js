// A store in the browser: IndexedDB, with Web Locks, so that tabs and workers of one origin take turns.
import { Failure, needed } from "./errors.js";

const DATABASE = "deniable",
  TEXTS = "texts";

const done = (request, event) =>
  new Promise((resolve, reject) => {
    const fail = () =>
      reject(new Failure("storage failed. Nothing was sent. Free some space, or leave private browsing."));
    Object.assign(request, { onerror: fail, onabort: fail, onblocked: fail, [event]: () => resolve(request.result) });
  });

export class BrowserStore {
  #name;

  /** Stores of one name are one, in all tabs and workers of the page's origin. */
  constructor(name) {
    this.#name = String(name);
  }

  async #transaction(mode, work) {
    const opening = needed("IndexedDB", globalThis.indexedDB).open(DATABASE, 1);
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
    // Without them, two tabs could answer differently.
    return needed("Web Locks", globalThis.navigator?.locks).request(`${DATABASE}:${this.#name}`, work);
  }
}
