// Definition 3 of [XDW20] on this client, by enumeration: all reports of a user, their number and order included.
import assert from "node:assert/strict";
import { test } from "node:test";
import { randomise } from "../src/client.js";
import { assignedCoins } from "../src/coins.js";
import { Draws, power, POWER_UNIT, times } from "../src/exact.js";
import { ProcessStore } from "../src/node.js";
import { lawOf, worstRatio } from "./enumeration.js";
import { categorical, collectionOf, ordinal, SHOP, table } from "./helpers.js";
import { Collection } from "../src/node.js";

const FLAGS = table("users", [categorical("flag", "a", "b")]);
const FEW_ORDERS = table("orders", [ordinal("amount", 0, 2)], 2);
const USER_ROWS = [[[0]], [[1]]];

/** Every multiset of up to `most` rows of one attribute: none at all included. */
function orderRows(size, most) {
  const sets = [[]];
  for (let count = 1, last = [[]]; count <= most; count++)
    sets.push(
      ...(last = last.flatMap((rows) =>
        Array.from({ length: size }, (_, v) => v)
          .filter((v) => !rows.length || v >= rows.at(-1)[0])
          .map((v) => [...rows, [v]]),
      )),
    );
  return sets;
}

/** The laws of a table's reports for several users. The views alone may decide which draws are asked for. */
async function lawsOf(collection, name, everybody, coins = null) {
  const known = new Map(),
    laws = [];
  for (const rows of everybody)
    laws.push(
      await lawOf(async (draws) => {
        const reports = await randomise(collection, collection.table(name), rows, draws, coins, null);
        const views = reports.map(([view]) => view).join(),
          asked = draws.asked.join("|");
        assert.equal(known.get(views) ?? asked, asked, "draws depend on data");
        known.set(views, asked);
        assert.equal(reports.length, collection.reportsPerUser(name));
        return String(reports);
      }),
    );
  return laws;
}

const isWithin = ([n, d], epsilon) => n * POWER_UNIT <= power(epsilon) * d;
const GRID = {
  orders: [
    { axes: { amount: { cells: [0, 2] } }, weight: 2 },
    { axes: { amount: { points: 2 } }, weight: 3 },
  ],
  users: [{ axes: { flag: { cells: 2 } }, weight: 1 }],
};

for (const [design, oracle, fanout = 2] of [
  ..."hio ahio ehio sr-hio sc mg amg grid".split(" ").map((name) => [name, "auto"]),
  ["hio", "olh"],
  ["ahio", "olh"],
  ["hio", "subset", 3],
  ["mg", "subset", 3],
])
  test(`Definition 3 holds for every pair of users: ${design}, ${oracle}`, async () => {
    const collection = await collectionOf([FLAGS, FEW_ORDERS], {
      design,
      oracle,
      fanout,
      ...(design === "grid" ? { grids: GRID } : {}),
    });
    const rows = [
      ...orderRows(3, 2),
      ...(["hio", "mg"].includes(design)
        ? [
            [[0], [1], [2]],
            [[2], [2], [2]],
          ]
        : []),
    ];
    const users = worstRatio(await lawsOf(collection, "users", USER_ROWS));
    const orders = worstRatio(await lawsOf(collection, "orders", rows));
    assert.ok(users[0] > users[1] && orders[0] > orders[1]);
    assert.ok(isWithin(times(users, orders), 1.5));
  });

test("Definition 3 holds with several reports per user, and given assigned coins", async () => {
  const several = table("orders", [ordinal("amount", 0, 1)], 2, 2);
  for (const coins of ["drawn", "assigned"]) {
    const collection = await collectionOf([FLAGS, several], { coins }),
      digest = await collection.digest("orders");
    const assigned =
      coins === "assigned"
        ? await Promise.all([0, 1].map((slot) => assignedCoins(collection, digest, "ada", slot, 0)))
        : null;
    const orders = await lawsOf(collection, "orders", [[], [[0]], [[0], [1]], [[1], [1], [1]]], assigned);
    const users = await lawsOf(collection, "users", USER_ROWS);
    assert.ok(isWithin(times(worstRatio(users), worstRatio(orders)), 1.5));
  }
});

test("the whole client at once: both tables, and nothing but the reports leaves it", async () => {
  const collection = await collectionOf([FLAGS, table("orders", [categorical("kind", "x", "y")], 2)], {
    epsilon: "1.0",
  });
  const orders = [[], [{ kind: "x" }], [{ kind: "x" }, { kind: "y" }], [{ kind: "y" }, { kind: "y" }, { kind: "x" }]];
  const laws = [];
  for (const flag of ["a", "b"])
    for (const rows of orders)
      laws.push(
        await lawOf(async (draws) => {
          const client = collection.client({ memory: new ProcessStore(), randbelow: draws });
          const sent = [...(await client.reports("users", [{ flag }])), ...(await client.reports("orders", rows))];
          assert.equal((await client.reports("orders", rows))[0].toHex(), sent[1].toHex()); // asked again, it draws nothing
          return sent.map((report) => report.toHex()).join("");
        }),
      );
  assert.ok(laws.every((law) => [...law.keys()].every((sent) => sent.length === 128)));
  assert.ok(isWithin(worstRatio(laws), 1));
});

test("an ε that is not shared out would be noticed", async () => {
  const alone = worstRatio(await lawsOf(await collectionOf([FLAGS], { design: "mg" }), "users", USER_ROWS));
  assert.ok(isWithin(alone, 1.5));
  assert.ok(!isWithin(times(alone, alone), 1.5));
});

test("the number and the bounds of draws are the same for all rows, sound or odd, through the whole client", async () => {
  for (const [name, everybody] of [
    [
      "users",
      [
        [{ age: 31, marital: "single" }],
        [{ age: 95, marital: "married" }],
        [{}],
        [{ age: "x", marital: null }],
        [{ age: 1e300, marital: 4 }],
      ],
    ],
    ["orders", [[], [{ amount: 7 }], Array(300).fill({ amount: 500 }), [{ amount: NaN }, { amount: 3 }]]],
  ]) {
    const asked = new Set();
    for (const rows of everybody) {
      const bounds = [],
        collection = await Collection.fromJson(SHOP);
      const randbelow = (bound) => (bounds.push(bound), bound / 2n); // the same views for all
      await collection.client({ memory: new ProcessStore(), randbelow }).reports(name, rows);
      asked.add(bounds.join());
    }
    assert.equal(asked.size, 1);
  }
});

test("a coin compares all digits of its probability", async () => {
  const scripted = (...numbers) => new Draws(() => numbers.shift());
  const first = (1n << 64n) / 3n; // of 1/3, again and again
  assert.equal(await scripted(first - 1n).coin([1n, 3n]), true);
  assert.equal(await scripted(first + 1n).coin([1n, 3n]), false);
  assert.equal(await scripted(first, first, first - 1n).coin([1n, 3n]), true);
  assert.equal(await scripted(first, first, first + 1n).coin([1n, 3n]), false);
  assert.equal(await scripted((1n << 64n) - 1n).coin([1n, 1n]), true);
  assert.equal(await scripted((1n << 128n) - 1n).secretCoin([1n, 1n]), true);
  assert.equal(await scripted(0n).secretCoin([0n, 1n]), false);
  assert.equal(await scripted((1n << 128n) - 1n).secretBelow(7), 6);
});
