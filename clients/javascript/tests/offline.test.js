// A device that is offline for weeks: its clock, its timers, its network and its random source are simulated. It restarts
// every day, is asked the same again, and its tokens expire; in the end there is exactly one set of reports per round.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Collection, Ledger, ProcessStore, Uploader } from "../src/node.js";
import { ORDERS, specificationText, USERS } from "./helpers.js";

const HOUR_MS = 3_600_000,
  DAY_MS = 24 * HOUR_MS,
  BEGIN = Date.parse("2027-01-04"),
  DAYS_OFFLINE = 18,
  TOKEN_HOURS = 12;
const WEEKLY = specificationText([USERS, ORDERS], {
  epsilon: "4.0",
  name: "shop",
  rounds: { count: 3, every: "week", mode: "fresh", start: "2027-01-04" },
});

/** Timers that wait for nobody: `next` goes to the earliest one. */
function simulatedTimers() {
  const due = new Map();
  let [now, count] = [BEGIN, 0];
  return {
    now: () => now,
    isWaiting: () => due.size > 0,
    nextAt: () => Math.min(...[...due.values()].map(({ at }) => at)),
    forgetAll: () => due.clear(),
    wait: (until) => (now = until),
    setTimeout: (run, ms) => (due.set(++count, { at: now + ms, run }), count),
    clearTimeout: (id) => due.delete(id),
    next() {
      const [[id, { at, run }]] = [...due].sort(([, a], [, b]) => a.at - b.at);
      [now] = [at, due.delete(id), run()];
    },
  };
}

/** Random bytes that come again: SHA-256 in counter mode. */
function seededCrypto(subtle) {
  let count = 0;
  const getRandomValues = (bytes) => {
    for (let from = 0; from < bytes.length; from += 32)
      bytes.set(
        createHash("sha256")
          .update(`offline:${count++}`)
          .digest()
          .subarray(0, bytes.length - from),
        from,
      );
    return bytes;
  };
  return { subtle, getRandomValues };
}

/** A collector behind a network that fails in five ways, one after another, until `isOnline`. */
function simulatedCollector(now) {
  const collector = { stored: new Map(), conflicts: 0, attempts: [], isOnline: false };
  const store = (lines) => {
    for (const line of lines) {
      const { uid, table, report } = JSON.parse(line),
        key = `${uid} ${table} ${report.slice(4, 16)}`; // slot and round
      if ((collector.stored.get(key) ?? line) !== line) collector.conflicts++;
      collector.stored.set(key, line);
    }
  };
  collector.fetch = async (address, { body, headers }) => {
    const lines = body.split("\n"),
      [issued] = /\d+$/.exec(headers.Authorization);
    const kind = collector.isOnline ? 5 : collector.attempts.length % 5;
    collector.attempts.push({ at: now(), bytes: body.length });
    if (kind === 0) throw new TypeError("no network");
    if (kind === 1) return new Response("", { status: 503, headers: { "Retry-After": "600" } });
    if (kind === 2) return new Response("<html>Welcome to the airport</html>");
    if (now() >= Number(issued) + TOKEN_HOURS * HOUR_MS) return new Response("{}", { status: 401 });
    if (kind === 3) return new Response("{}", { status: 500 });
    store(lines);
    if (kind === 4) throw new TypeError("it arrived, and the answer is lost");
    return Response.json({ accepted: lines.length, failed: [] });
  };
  return collector;
}

/** Weeks of a device whose rows are `rowsOf(day)`. */
async function weeks(rowsOf) {
  const timers = simulatedTimers(),
    collector = simulatedCollector(timers.now),
    [memory, queue, book] = [new ProcessStore(), new ProcessStore(), new ProcessStore()],
    problems = [];
  const replaced = {
    setTimeout: timers.setTimeout,
    clearTimeout: timers.clearTimeout,
    fetch: collector.fetch,
    crypto: seededCrypto(globalThis.crypto.subtle),
  };
  const kept = Object.keys(replaced).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
  for (const [name, value] of Object.entries(replaced))
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  try {
    const shop = await Collection.fromJson(WEEKLY);
    let uploader, ledger;
    const settled = async () => {
      while (!timers.isWaiting() && (await uploader.waiting())) await new Promise((wake) => setImmediate(wake));
    };
    for (let day = 0; day < DAYS_OFFLINE + 2; day++) {
      timers.forgetAll(); // the process is gone, and nothing but the stores is left
      timers.wait(BEGIN + day * DAY_MS);
      ledger = new Ledger(book, { limit: 12, clock: timers.now });
      const client = shop.client({ memory, ledger, user: "ann", clock: timers.now });
      uploader = new Uploader(client, "https://collector.example", { queue, token: `day ${timers.now()}` });
      const round = 1 + Math.floor(day / 7);
      await uploader.add("users", [rowsOf(day)], { round });
      await uploader.add("orders", day % 2 ? [] : [{ amount: day }], { round });
      uploader.start({ onProblem: (problem) => problems.push(problem.message) });
      await settled();
      while (timers.isWaiting() && timers.nextAt() < BEGIN + (day + 1) * DAY_MS) {
        // Online again in the evening, when the token of the morning has expired: the next morning brings another.
        collector.isOnline = timers.nextAt() >= BEGIN + DAYS_OFFLINE * DAY_MS + 18 * HOUR_MS;
        timers.next();
        await settled();
      }
      uploader.stop();
      if (day < DAYS_OFFLINE) assert.equal(await uploader.waiting(), 3 * round);
    }
    return { ...collector, problems, waiting: await uploader.waiting(), balance: await ledger.balance() };
  } finally {
    for (const [name, descriptor] of kept) Object.defineProperty(globalThis, name, descriptor);
  }
}

test("after weeks of failures, restarts and expired tokens there is one set of reports per round", async () => {
  const first = await weeks((day) => ({ age: 20 + day, marital: "single" })),
    second = await weeks((day) => ({ age: day % 3 ? 95 : null, marital: "married" }));
  for (const { stored, conflicts, attempts, problems, waiting, balance } of [first, second]) {
    assert.equal(waiting, 0);
    assert.equal(conflicts, 0);
    assert.equal(stored.size, 9); // three rounds of three reports
    assert.deepEqual(balance, { spent: 12, left: 0, limit: 12 });
    assert.ok(attempts.length > 100);
    assert.ok(problems.length && problems.every((problem) => /refused the token. Reports stay/.test(problem)));
    const pauses = attempts.slice(1).map(({ at }, i) => at - attempts[i].at);
    assert.ok(Math.max(...pauses) <= DAY_MS, "it keeps trying");
  }
  // When a device tries, and how much it sends, are the same whatever its rows are.
  assert.deepEqual(second.attempts, first.attempts);
});
