import assert from "node:assert/strict";
import { test } from "node:test";
import { BudgetExceeded, Collection, Ledger, ProcessStore, spends, ToPLClient } from "../src/node.js";
import { anyLifetimes } from "../src/costs.js";
import { MemoisedResponse } from "../src/memoised_response.js";
import { categorical, collectionOf, SHOP, table } from "./helpers.js";

const EXPECTED = [
  [[1.4, 1.5, 4, 3], 7.385951],
  [[0.75, 1.5, 4, 4], 3.755424],
  [[1.4, 4.0, 2, 9], 12.658089],
  [[0.5, 2.0, 3, 4], 2.119432],
  [[2.0, 3.0, 8, 20], 51.731851],
];
const ROW = { age: 31, marital: "single" };
const FLAGS = table("users", [categorical("flag", "a", "b")]);
const MEMOISED = { count: 9, every: "week", mode: "memoised", permanent: "FLOAT 4.0", changes_are_public: true };

test("an answer is charged once, before it is sent, and bytes that were sent cost nothing", async () => {
  const shop = await Collection.fromJson(SHOP),
    ledger = new Ledger(new ProcessStore(), { limit: 8 }),
    memory = new ProcessStore();
  const client = shop.client({ memory, ledger });
  await client.report("users", ROW);
  assert.deepEqual(await ledger.balance(), { spent: 1.333333, left: 6.666667, limit: 8 });
  await client.report("users", ROW);
  await shop.client({ memory, ledger }).reports("orders", []);
  assert.deepEqual(await ledger.balance(), { spent: 4, left: 4, limit: 8 });
  assert.equal((await ledger.entries()).length, 2);
});

test("a collection that would exceed the limit is refused before anything is drawn", async () => {
  const shop = await Collection.fromJson(SHOP),
    drawn = [],
    memory = new ProcessStore();
  const ledger = new Ledger(new ProcessStore(), { limit: 3 });
  const client = shop.client({ memory, ledger, randbelow: (bound) => drawn.push(bound) });
  await assert.rejects(
    client.report("users", ROW),
    (problem) => problem instanceof BudgetExceeded && /ε = 4, above 3, what is left of 3/.test(problem.message),
  );
  assert.equal(drawn.length, 0);
  assert.equal(await memory.read(), null);
  await ledger.raiseLimit(4);
  await shop.client({ memory, ledger }).report("users", ROW);
  await assert.rejects(ledger.raiseLimit(2), /can only be raised/);
  const capped = new Ledger(new ProcessStore(), { limit: 100, largest: 3.5 });
  await assert.rejects(
    shop.client({ memory: new ProcessStore(), ledger: capped }).report("users", ROW),
    /the most that one collection may cost/,
  );
});

test("with pins no other specification is answered", async () => {
  const shop = await Collection.fromJson(SHOP),
    other = await Collection.fromJson(SHOP.replace('"shop"', '"shoq"'));
  const ledger = new Ledger(new ProcessStore(), { limit: 8, pins: [shop] });
  await shop.client({ memory: new ProcessStore(), ledger }).report("users", ROW);
  await assert.rejects(
    other.client({ memory: new ProcessStore(), ledger }).report("users", ROW),
    /is not one of those that this ledger pins/,
  );
  assert.throws(() => new Ledger(new ProcessStore(), { limit: 8, pins: ["shop"] }), /pins must be/);
});

test("a crash between memory and charge is made good: the answer is remembered, and charged then", async () => {
  const shop = await Collection.fromJson(SHOP),
    memory = new ProcessStore(),
    kept = new ProcessStore();
  let writes = 0;
  const failing = {
    read: () => kept.read(),
    write: (text) => (writes++ ? Promise.reject(new Error("power cut")) : kept.write(text)),
  };
  await assert.rejects(
    shop.client({ memory, ledger: new Ledger(failing, { limit: 8 }) }).report("users", ROW),
    /power cut/,
  );
  const ledger = new Ledger(kept, { limit: 8 });
  assert.equal((await ledger.balance()).spent, 0);
  await shop.client({ memory, ledger }).report("users", ROW);
  assert.equal((await ledger.balance()).spent, 1.333333);
});

test("a damaged ledger, another limit, a clock set back or one store for all stop everything", async () => {
  const shop = await Collection.fromJson(SHOP),
    store = new ProcessStore();
  let now = Date.parse("2027-01-04");
  const ledger = new Ledger(store, { limit: 8, clock: () => now });
  await shop.client({ memory: new ProcessStore(), ledger }).report("users", ROW);
  await assert.rejects(new Ledger(store, { limit: 9 }).balance(), /differs from what this ledger was started with/);
  assert.equal((await new Ledger(store).balance()).limit, 8);
  await assert.rejects(new Ledger(new ProcessStore()).balance(), /limit is missing/);
  now -= 3_600_000;
  await assert.rejects(shop.client({ memory: new ProcessStore(), ledger }).report("users", ROW), /clock was set back/);
  assert.throws(() => shop.client({ memory: store, ledger }), /lie in one store/);
  await store.write((await store.read()).replace("1.3", "1.2").replace("users", "userz"));
  await assert.rejects(ledger.balance(), /ledger is damaged.*would count from zero/);
});

test("rounds are charged one by one: rotating ones ε in all, memoised ones the worst case", async () => {
  const rotating = await collectionOf([FLAGS], {
    name: "poll",
    epsilon: "2.0",
    rounds: { count: 6, every: "week", mode: "rotating", answers: 2, cover: false },
  });
  const ledger = new Ledger(new ProcessStore(), { limit: 2 }),
    client = rotating.client({ memory: new ProcessStore(), ledger });
  const sent = [];
  for (let round = 1; round <= 6; round++) sent.push(...(await client.reports("users", [{ flag: "a" }], round)));
  assert.equal(sent.length, 2);
  assert.equal((await ledger.balance()).spent, 2);
  const memoised = await collectionOf([FLAGS], { name: "poll", epsilon: "1.4", rounds: MEMOISED });
  const kept = new Ledger(new ProcessStore(), { limit: 100 }),
    often = memoised.client({ memory: new ProcessStore(), ledger: kept });
  for (let round = 1; round <= 9; round++) await often.reports("users", [{ flag: "a" }], round);
  const { spent } = await kept.balance(),
    [n, d] = spends(memoised);
  assert.ok(Math.abs(spent - Number((n * 10000n) / d) / 10000) < 0.01 && spent > 1.4);
});

test("memoised rounds cost what Python says", async () => {
  const cost = (epsilon, permanent, k, rounds) =>
    (([n, d]) => Number((n * 10n ** 6n) / d) / 1e6)(anyLifetimes(new MemoisedResponse(epsilon, permanent, k), rounds));
  // `MemoisedResponse(epsilon, permanent, k).any_lifetimes(rounds)`
  for (const [settings, expected] of EXPECTED) assert.ok(Math.abs(cost(...settings) - expected) < 2e-6, `${settings}`);
});

test("a stream is charged to the same ledger", async () => {
  const ledger = new Ledger(new ProcessStore(), { limit: 1.5 });
  const client = new ToPLClient({ epsilon: 1, bound: 500, memory: new ProcessStore(), ledger });
  const first = await client.report(31);
  assert.equal((await client.report(7, 40)).toHex(), first.toHex());
  assert.equal((await ledger.balance()).spent, 1);
  await assert.rejects(
    new ToPLClient({ epsilon: 1, bound: 9, memory: new ProcessStore(), ledger }).report(3),
    BudgetExceeded,
  );
});
