import assert from "node:assert/strict";
import { test } from "node:test";
import * as deniable from "../src/node.js";
import { vectorTexts } from "./helpers.js";
import { repeatVectors } from "./vector_suite.js";

test("all vectors are repeated, byte for byte and draw for draw", async () => {
  assert.deepEqual(await repeatVectors(deniable, vectorTexts()), { tables: 95, rounds: 18, streams: 16 });
});

test("a client that draws otherwise is noticed", async () => {
  const texts = vectorTexts();
  for (const [from, to] of [
    ['"age":31', '"age":32'],
    ['"epsilon":2.0', '"epsilon":2.5'],
    ['"fanout":5', '"fanout":4'],
  ])
    await assert.rejects(repeatVectors(deniable, { ...texts, reports: texts.reports.replaceAll(from, to) }));
});
