// Specifications with another population: its tables have an owner, a key and an ε of their own.
import assert from "node:assert/strict";
import { test } from "node:test";

import { spends } from "../src/costs.js";
import { Specification } from "../src/specification.js";

const PRICE = { name: "price", kind: "ordinal", low: 0, high: 4, step: 1 };
const AGE = { name: "age", kind: "ordinal", low: 1, high: 95, step: 1 };
const USERS = { name: "users", many: null, tau: 1, attributes: [AGE] };
const PRODUCTS = { name: "products", owner: "shop", key: "pid", many: null, tau: 1, attributes: [PRICE] };
const STOCKS = { ...PRODUCTS, name: "stocks" };

const text = (changes) =>
  JSON.stringify({
    deniable: 2,
    name: null,
    epsilon: 2.5,
    design: "hio",
    fanout: 5,
    oracle: "auto",
    coins: "drawn",
    shares: null,
    tables: [USERS, PRODUCTS, STOCKS],
    owners: { shop: 1.5 },
    ...changes,
  });

test("each population has its own epsilon", async () => {
  const made = await Specification.fromJson(text());
  assert.deepEqual(
    made.tableNames.map((name) => made.epsilonPerReport(name)),
    [2.5, 0.75, 0.75],
  );
  const other = await Specification.fromJson(text({ tables: [USERS, PRODUCTS] }));
  assert.deepEqual(spends(made), spends(other));
  const [above, below] = spends(made, "shop");
  assert.equal(Number(above) / Number(below), 1.5);
});

test("what is half said is refused", async () => {
  for (const changes of [
    { owners: undefined },
    { owners: { shop: 1.5, other: 1.5 } },
    { tables: [USERS] },
    { tables: [PRODUCTS] },
    { tables: [USERS, { ...PRODUCTS, owner: undefined }] },
    { tables: [USERS, { ...PRODUCTS, many: 2 }] },
    { tables: [USERS, { ...PRODUCTS, key: "price" }] },
    { tables: [USERS, PRODUCTS, { ...STOCKS, key: "sid" }] },
  ])
    await assert.rejects(Specification.fromJson(text(changes)), JSON.stringify(changes));
});
