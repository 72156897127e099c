// Specifications with another population: its tables have an owner and a key, and are not for people to report.
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

test("people report their own tables, and what others report costs them nothing", async () => {
  const made = await Specification.fromJson(text()),
    alone = await Specification.fromJson(text({ tables: [USERS], owners: undefined }));
  assert.deepEqual(made.tableNames, ["users"]);
  assert.equal(made.epsilonPerReport("users"), 2.5);
  assert.deepEqual(spends(made), spends(alone));
  assert.throws(() => made.table("products"), /not in this collection/);
});

test("without a table of people, or with what is not known, it is refused", async () => {
  for (const changes of [
    { tables: [PRODUCTS] },
    { tables: [USERS, { ...PRODUCTS, name: "users" }] },
    { tables: [USERS, { ...PRODUCTS, price: 3 }] },
  ])
    await assert.rejects(Specification.fromJson(text(changes)), JSON.stringify(changes));
});

test("pseudonyms are refused in words", async () => {
  await assert.rejects(Specification.fromJson(text({ ids: "pseudonym" })), /ids are pseudonyms.*Report in Python/);
  await assert.rejects(Specification.fromJson(text({ ids: "user" })));
});
