// Delivers a device's reports to a collector: a durable queue, batches, retries.
//
//     client ── reports, charged and remembered ──▶ queue in a store ── batches ──▶ collector
//                                                       ▲                              │
//                                                       └── kept until it is answered ─┘
//
// A report is in the queue until the collector has answered for it. Sending it twice is harmless, losing it is not. When
// a device tries again depends on how often it has failed and on chance, never on data. It runs in pages and in workers.
import { addressOf } from "./collector.js";
import { BadInput, check, Failure } from "./errors.js";
import { randbelow, utf8 } from "./randomness.js";
import { checkUser } from "./report.js";
import { alone, checkStore, readContent, writeContent } from "./stores.js";

const FORMAT = "queue",
  REPAIR = "Unless it is another store, remove it and add the rows again: nothing is spent.";
const MOST_QUEUED = 10_000,
  REPORTS_AT_ONCE = 100,
  KEEPALIVE_BYTES = 60_000;
const FIRST_WAIT_MS = 1_000,
  LONGEST_WAIT_MS = 3_600_000,
  TIMEOUT_MS = 30_000,
  LARGEST_ANSWER = 2 ** 20;
const REPORT_LINES = "application/x-ndjson";

export class Uploader {
  #client;
  #address;
  #token;
  #user;
  #queue;
  #askedWaitMs = 0;
  #running = null;
  #lastKnown = [];

  /** `user` is the id under which reports are sent; `token` a text, or a function that gets one. */
  constructor(client, url, { user = client.user, queue, token = null, collection = client.collection?.name } = {}) {
    checkUser(user);
    const isSame = client.user === null || String(client.user) === String(user);
    check(isSame, "user", "is not the client's", "Pass the same id to both.");
    check(typeof collection === "string", "collection", "has no name", "Pass the collection's name.");
    [this.#client, this.#user, this.#token, this.#queue] = [client, user, token, checkStore(queue, "queue")];
    this.#address = `${addressOf(url, collection)}/reports`;
    /** Reports that the collector refused for good, by reason. */
    this.refused = {};
  }

  /** How many reports are in the queue. */
  async waiting() {
    return (await this.#change()).length;
  }

  /** Report rows, and put the reports into the queue. The same bytes are not queued twice. */
  async add(table, rows, { public: attributes = {}, round = null } = {}) {
    const reports = await this.#client.reports(table, rows, round);
    const lines = reports.map((report) => report.toJson(this.#user, table, attributes));
    await this.#change((queued) => {
      const all = [...new Set([...queued, ...lines])];
      if (all.length > MOST_QUEUED)
        throw new Failure("the queue is full. Nothing was queued. Deliver it first, then ask again.");
      return all;
    });
    this.#running?.wake();
  }

  /** The lines of the queue, after they were changed. What waits follows the hash of the collection that it is of. */
  #change(change = (lines) => lines) {
    return alone(this.#queue, async () => {
      const mine = this.#client.collection?.sha256,
        [of = mine, ...before] = (await readContent(this.#queue, FORMAT, REPAIR)) ?? [];
      // Reports of two collections in one queue would reach one collector, which refuses some for good.
      if (of !== mine)
        throw new Failure("the queue holds reports of another collection. Nothing was sent. Use one queue per collection.");
      const lines = change(before);
      if (lines.length !== before.length)
        await writeContent(this.#queue, FORMAT, lines.length ? [mine, ...lines] : lines);
      return (this.#lastKnown = lines);
    });
  }

  /** Try once to deliver what waits; whether all of it was answered. */
  async send() {
    for (;;) {
      const batch = (await this.#change()).slice(0, REPORTS_AT_ONCE),
        refusals = batch.length ? await this.#post(batch) : null;
      if (!refusals) return !batch.length;
      for (const reason of refusals) this.refused[reason] = (this.refused[reason] ?? 0) + 1;
      await this.#change((lines) => lines.filter((line) => !batch.includes(line)));
    }
  }

  /** Try several times, with longer and longer pauses of random length; whether all was answered. */
  async deliver(attempts = 10) {
    for (let failures = 0; !(await this.send());) {
      if (++failures >= attempts) return false;
      await new Promise((wake) => setTimeout(wake, waitMs(failures - 1, this.#askedWaitMs)));
    }
    return true;
  }

  /**
   * Deliver in the background until `stop` is called: now, after pauses, and as soon as the device is online again.
   * When the page is hidden or closed, what waits is sent once more; it stays in the queue until it is answered.
   */
  start({ onProblem = () => undefined } = {}) {
    if (this.#running) return this;
    let isStopped = false,
      isAsked,
      timer,
      goOn;
    const wake = () => {
      isAsked = true;
      goOn?.();
    };
    const run = async () => {
      for (let failures = 0; !isStopped;) {
        isAsked = false;
        try {
          failures = (await this.send()) ? 0 : failures + 1;
        } catch (problem) {
          failures++;
          onProblem(problem);
        }
        if (isAsked) continue;
        await new Promise((resolve) => {
          goOn = resolve;
          if (failures) timer = setTimeout(resolve, waitMs(failures - 1, this.#askedWaitMs));
        });
        clearTimeout(timer);
      }
    };
    const listeners = {
      online: wake,
      pageshow: wake,
      pagehide: () => this.flush(),
      visibilitychange: () => document.visibilityState === "hidden" && this.flush(),
    };
    const listen = (verb) => {
      for (const [name, listener] of Object.entries(listeners)) globalThis[verb]?.(name, listener);
    };
    const end = () => {
      isStopped = true;
      listen("removeEventListener");
      wake();
    };
    this.#running = { wake, end };
    listen("addEventListener");
    run();
    return this;
  }

  stop() {
    this.#running?.end();
    this.#running = null;
  }

  /**
   * Send what waits, as far as this page knows, without waiting for an answer: for a page that is closing. Whether the
   * browser has taken it on. A beacon cannot carry a token, and browsers send it to other origins only with cookies.
   */
  flush() {
    const lines = this.#lastKnown.slice(0, REPORTS_AT_ONCE);
    while (utf8(lines.join("\n")).length > KEEPALIVE_BYTES) lines.pop();
    if (!lines.length || typeof this.#token === "function") return false;
    const request = this.#request(lines, this.#token),
      isOwnOrigin = globalThis.location && new URL(this.#address).origin === location.origin,
      beacon = () => navigator.sendBeacon?.(this.#address, new Blob([request.body], { type: REPORT_LINES }));
    if (!(isOwnOrigin && !this.#token && beacon()))
      fetch(this.#address, { ...request, keepalive: true }).catch(() => undefined); // it stays in the queue
    return true;
  }

  #request(lines, token) {
    const headers = { "Content-Type": REPORT_LINES, ...(token && { Authorization: `Bearer ${token}` }) },
      body = lines.join("\n");
    return { method: "POST", headers, body, credentials: "omit", cache: "no-store", redirect: "error" };
  }

  /** Why reports were refused; null if there was no answer, or the collector asks to come back later. */
  async #post(lines) {
    let response, text;
    this.#askedWaitMs = 0;
    try {
      const token = typeof this.#token === "function" ? await this.#token() : this.#token,
        signal = AbortSignal.timeout(TIMEOUT_MS);
      response = await fetch(this.#address, { ...this.#request(lines, token), signal });
      text = await response.text();
    } catch {
      return null;
    }
    const { status } = response;
    if (status === 200) return refusalsIn(text);
    if (status >= 500 || [408, 425, 429].includes(status)) {
      const asked = response.headers.get("Retry-After") ?? "";
      if (/^\d{1,7}$/.test(asked)) this.#askedWaitMs = 1_000 * Number(asked);
      return null;
    }
    const stay = "Reports stay in the queue.";
    if (status === 401 || status === 403)
      throw new BadInput(`the collector refused the token. ${stay} Get a new token.`);
    throw new Failure(`the collector refused the upload with status ${status}. ${stay} Check the address.`);
  }
}

/** How long to wait after so many failures: a random time up to twice as long as before, and what was asked for. */
export const waitMs = (failures, askedMs = 0) =>
  Math.min(askedMs, LONGEST_WAIT_MS) +
  (Number(randbelow(1n << 32n)) / 2 ** 32) * Math.min(FIRST_WAIT_MS * 2 ** failures, LONGEST_WAIT_MS);

/** Why an answer says that reports were refused; null if it cannot be read: then the reports are sent again. */
function refusalsIn(text) {
  try {
    const { accepted, failed } = JSON.parse(text.length <= LARGEST_ANSWER ? text : "");
    return Number.isInteger(accepted) ? failed.map(({ reason }) => String(reason).slice(0, 40)) : null;
  } catch {
    return null;
  }
}
