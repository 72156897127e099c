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
import { randbelow } from "./randomness.js";
import { checkUser } from "./report.js";
import { alone, checkStore, readContent, writeContent } from "./stores.js";

const FORMAT = "queue",
  REPAIR = "Remove it and add the rows again: with the same memory the same bytes are sent, and nothing is spent.";
const MOST_QUEUED = 10_000,
  REPORTS_AT_ONCE = 100,
  KEEPALIVE_BYTES = 60_000;
const FIRST_WAIT_MS = 1_000,
  LONGEST_WAIT_MS = 3_600_000,
  TIMEOUT_MS = 30_000,
  LARGEST_ANSWER = 2 ** 20;
const LATER = [408, 425, 429, 500, 502, 503, 504, 507];
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
    check(
      client.user === null || String(client.user) === String(user),
      "user",
      "is not the client's",
      "Pass the same id to both.",
    );
    check(typeof collection === "string", "collection", "has no name", "Pass collection, the collector's name for it.");
    [this.#client, this.#user, this.#token] = [client, user, token];
    this.#queue = checkStore(queue, "queue");
    this.#address = `${addressOf(url, collection)}/reports`;
    /** Reports that the collector refused for good, by reason. */
    this.refused = {};
  }

  /** How many reports are in the queue. */
  async waiting() {
    return alone(this.#queue, async () => (await this.#lines()).length);
  }

  /** Report rows, and put the reports into the queue. The same bytes are not queued twice. */
  async add(table, rows, { public: attributes = {}, round = null } = {}) {
    const reports = await this.#client.reports(table, rows, round);
    const lines = reports.map((report) => report.toJson(this.#user, table, attributes));
    await alone(this.#queue, async () => {
      const queued = await this.#lines(),
        fresh = lines.filter((line) => !queued.includes(line));
      if (queued.length + fresh.length > MOST_QUEUED)
        throw new Failure(
          `${MOST_QUEUED} reports wait already. Nothing was queued. Deliver them first; asking again costs nothing.`,
        );
      if (fresh.length) await this.#write([...queued, ...fresh]);
    });
    this.#running?.wake();
  }

  async #lines() {
    return (this.#lastKnown = (await readContent(this.#queue, FORMAT, REPAIR)) ?? []);
  }

  async #write(lines) {
    await writeContent(this.#queue, FORMAT, lines);
    this.#lastKnown = lines;
  }

  /** Try once to deliver what waits; whether all of it was answered. */
  async send() {
    for (;;) {
      const batch = await alone(this.#queue, async () => (await this.#lines()).slice(0, REPORTS_AT_ONCE));
      if (!batch.length) return true;
      const failed = await this.#post(batch);
      if (!failed) return false;
      for (const { reason } of failed) this.refused[reason] = (this.refused[reason] ?? 0) + 1;
      await alone(this.#queue, async () => this.#write((await this.#lines()).filter((line) => !batch.includes(line))));
    }
  }

  /** Try several times, with longer and longer pauses of random length; whether all was answered. */
  async deliver(attempts = 10) {
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (await this.send()) return true;
      if (attempt < attempts - 1) await new Promise((wake) => setTimeout(wake, this.#waitMs(attempt)));
    }
    return false;
  }

  #waitMs(failures) {
    return waitMs(failures, this.#askedWaitMs);
  }

  /**
   * Deliver in the background until `stop` is called: now, after pauses, and as soon as the device is online again.
   * When the page is hidden or closed, what waits is sent once more; it stays in the queue until it is answered.
   */
  start({ onProblem = () => undefined } = {}) {
    if (this.#running) return this;
    let [failures, timer, isStopped, isSending, isAsked] = [0, null, false, false, false];
    const attempt = async () => {
      clearTimeout(timer);
      isAsked = true;
      if (isSending || isStopped) return;
      isSending = true;
      let isDone = true;
      while (isAsked && isDone) {
        isAsked = false;
        try {
          isDone = await this.send();
        } catch (problem) {
          isDone = false;
          onProblem(problem);
        }
      }
      isSending = false;
      failures = isDone ? 0 : failures + 1;
      if (!isDone && !isStopped) timer = setTimeout(attempt, this.#waitMs(failures - 1));
    };
    const flush = () => {
      if (globalThis.document?.visibilityState !== "visible") this.flush();
    };
    const events = [
      ["online", attempt],
      ["pageshow", attempt],
      ["pagehide", () => this.flush()],
      ["visibilitychange", flush, globalThis.document],
    ];
    const listen = (verb) => {
      for (const [name, listener, target = globalThis] of events) target?.[verb]?.(name, listener);
    };
    this.#running = {
      wake: attempt,
      end: () => ((isStopped = true), clearTimeout(timer), listen("removeEventListener")),
    };
    listen("addEventListener");
    attempt();
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
    const lines = [];
    for (let size = 0; lines.length < Math.min(this.#lastKnown.length, REPORTS_AT_ONCE);) {
      const line = this.#lastKnown[lines.length];
      size += line.length + 1;
      if (size > KEEPALIVE_BYTES) break;
      lines.push(line);
    }
    if (!lines.length || typeof this.#token === "function") return false;
    const body = lines.join("\n"),
      isOwnOrigin = globalThis.location && new URL(this.#address).origin === location.origin;
    if (
      !this.#token &&
      isOwnOrigin &&
      globalThis.navigator?.sendBeacon?.(this.#address, new Blob([body], { type: REPORT_LINES }))
    )
      return true;
    try {
      fetch(this.#address, { ...this.#request(body, this.#token), keepalive: true }).catch(() => undefined);
      return true;
    } catch {
      return false; // it stays in the queue
    }
  }

  #request(body, token) {
    const headers = { "Content-Type": REPORT_LINES, ...(token === null ? {} : { Authorization: `Bearer ${token}` }) };
    return { method: "POST", headers, body, credentials: "omit", cache: "no-store", redirect: "error" };
  }

  /** The reports that failed; null if there was no answer, or the collector asks to come back later. */
  async #post(lines) {
    let response, text;
    this.#askedWaitMs = 0;
    try {
      const token = typeof this.#token === "function" ? await this.#token() : this.#token;
      response = await fetch(this.#address, {
        ...this.#request(lines.join("\n"), token),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      text = await response.text();
    } catch {
      return null;
    }
    if (response.status === 200) return failedOf(text);
    if (LATER.includes(response.status)) {
      const asked = response.headers.get("Retry-After") ?? "";
      if (/^\d{1,7}$/.test(asked)) this.#askedWaitMs = 1_000 * Number(asked);
      return null;
    }
    if (response.status === 401 || response.status === 403)
      throw new BadInput("the collector refused the token. Reports stay in the queue. Get a new token.");
    throw new Failure(
      `the collector refused the upload with status ${response.status}. Reports stay in the queue. Check the address.`,
    );
  }
}

/** How long to wait after so many failures: a random time up to twice as long as before, and what was asked for. */
export const waitMs = (failures, askedMs = 0) =>
  Math.min(askedMs, LONGEST_WAIT_MS) +
  (Number(randbelow(1n << 32n)) / 2 ** 32) * Math.min(FIRST_WAIT_MS * 2 ** failures, LONGEST_WAIT_MS);

/** What an answer lists as failed; null if it cannot be read: then the reports are sent again. */
function failedOf(text) {
  try {
    const { accepted, failed } = JSON.parse(text.length <= LARGEST_ANSWER ? text : "");
    return Number.isInteger(accepted) ? failed.map(({ reason }) => ({ reason: String(reason).slice(0, 40) })) : null;
  } catch {
    return null;
  }
}
