// Deliveries to a collector that fails in every way: nothing is lost, nothing is queued twice.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { Collection, FileStore, ProcessStore, Uploader } from "../src/node.js";
import { waitMs } from "../src/uploader.js";
import { collectionOf, folder, ordinal, SHOP, table } from "./helpers.js";

const ROW = { age: 31, marital: "single" };

/** A collector that answers as it is told, and notes the bodies and the tokens. */
async function pretend(...answers) {
  const seen = [],
    server = createServer(async (request, response) => {
      const parts = [];
      for await (const part of request) parts.push(part);
      seen.push({
        lines: Buffer.concat(parts)
          .toString()
          .split("\n")
          .map((line) => JSON.parse(line)),
        token: request.headers.authorization,
        path: request.url,
      });
      const {
        status = 200,
        headers = {},
        body = { accepted: 1, failed: [] },
        drop = false,
      } = answers.length > 1 ? answers.shift() : answers[0];
      if (drop) return request.socket.destroy();
      response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
    });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    seen,
    url: `http://127.0.0.1:${server.address().port}/collect/`,
    close: () => server.close(server.closeAllConnections()),
  };
}

async function uploaderFor(url, settings = {}) {
  const client = (await Collection.fromJson(SHOP)).client({ memory: new ProcessStore(), user: 7 });
  return new Uploader(client, url, { queue: new ProcessStore(), ...settings });
}

test("what is not answered stays in the queue, through restarts, and is sent again as the same bytes", async () => {
  const collector = await pretend(
    { drop: true },
    { status: 503, headers: { "Retry-After": "0" } },
    { body: "half an ans" },
    {},
  );
  const path = join(await folder(), "queue.json"),
    first = await uploaderFor(collector.url, { queue: new FileStore(path) });
  await first.add("users", [ROW], { public: { city: "Rome", odd: Symbol.iterator, big: 1e20 } });
  await first.add("users", [{ age: 90, marital: "married" }], { public: { city: "Rome", odd: null, big: 1e20 } });
  assert.equal(await first.waiting(), 1);
  const again = await uploaderFor(collector.url, { queue: new FileStore(path) });
  for (const expected of [false, false, false, true]) assert.equal(await again.send(), expected);
  assert.equal(await again.waiting(), 0);
  const lines = collector.seen.map(({ lines: [line] }) => JSON.stringify(line));
  assert.equal(new Set(lines).size, 1);
  assert.deepEqual(collector.seen[0].lines[0].public, { city: "Rome", odd: null, big: 1e20 });
  assert.equal(collector.seen[0].path, "/collect/v1/collections/shop/reports");
  collector.close();
});

test("batches have at most 100 reports", async () => {
  const collector = await pretend({}),
    orders = table("orders", [ordinal("amount", 0, 500)], 200, 150);
  const client = (await collectionOf([orders], { name: "shop" })).client({ memory: new ProcessStore() });
  const uploader = new Uploader(client, collector.url, { user: "ann", queue: new ProcessStore() });
  await uploader.add("orders", []);
  assert.equal(await uploader.send(), true);
  assert.deepEqual(
    collector.seen.map(({ lines }) => lines.length),
    [100, 50],
  );
  collector.close();
});

test("a queue belongs to one collection until it is empty", async () => {
  const collector = await pretend({}),
    queue = new ProcessStore();
  const of = async (name) => {
    const client = (await collectionOf([table("users", [ordinal("age", 1, 95)])], { name })).client({
      memory: new ProcessStore(),
    });
    return new Uploader(client, collector.url, { user: 7, queue });
  };
  const [shop, bank] = [await of("shop"), await of("bank")];
  await shop.add("users", [{ age: 31 }]);
  for (const refused of [
    () => bank.add("users", [{ age: 31 }]),
    () => bank.send(),
    () => bank.deliver(1),
    () => bank.waiting(),
  ])
    await assert.rejects(refused(), /holds reports of another collection. Nothing was sent/);
  assert.equal(bank.flush(), false);
  assert.equal(collector.seen.length, 0);
  assert.equal(await shop.send(), true);
  await bank.add("users", [{ age: 31 }]);
  assert.equal(await bank.send(), true);
  await assert.doesNotReject(shop.waiting());
  assert.deepEqual(
    collector.seen.map(({ path }) => path.split("/")[4]),
    ["shop", "bank"],
  );
  collector.close();
});

test("refusals are counted and forgotten, tokens are fetched anew", async () => {
  let tokens = 0;
  const collector = await pretend({ body: { accepted: 0, failed: [{ index: 0, reason: "conflict" }] } });
  const uploader = await uploaderFor(collector.url, { token: async () => `v${++tokens}` });
  await uploader.add("orders", [{ amount: 7 }]);
  assert.equal(await uploader.deliver(), true);
  assert.deepEqual(uploader.refused, { conflict: 1 });
  assert.deepEqual(
    collector.seen.map(({ token, lines }) => [token, lines.length]),
    [["Bearer v1", 2]],
  );
  collector.close();
});

test("a refused token and an unknown answer are said, and reports stay", async () => {
  for (const [status, words] of [
    [401, /refused the token. Reports stay/],
    [404, /status 404. Reports stay/],
  ]) {
    const collector = await pretend({ status, body: "{}" }),
      uploader = await uploaderFor(collector.url);
    await uploader.add("users", [ROW]);
    await assert.rejects(uploader.send(), words);
    assert.equal(await uploader.waiting(), 1);
    collector.close();
  }
});

test("in the background it delivers what is added, and keeps trying", async () => {
  const collector = await pretend({ status: 503, headers: { "Retry-After": "0" } }, {}),
    uploader = (await uploaderFor(collector.url)).start();
  await uploader.add("users", [ROW]);
  for (let tries = 0; (await uploader.waiting()) && tries < 200; tries++)
    await new Promise((wake) => setTimeout(wake, 20));
  assert.equal(await uploader.waiting(), 0);
  uploader.stop();
  collector.close();
});

test("a damaged queue stops the uploader, and mistakes are refused", async () => {
  const queue = new ProcessStore(),
    uploader = await uploaderFor("https://collector.example", { queue });
  await queue.write("[]");
  await assert.rejects(uploader.waiting(), /queue is damaged.*nothing is spent/);
  await assert.rejects(uploaderFor("ftp://collector.example"), /url is not an address/);
  await assert.rejects(uploaderFor("https://collector.example", { user: 8 }), /user is not the client's/);
});

test("pauses grow, are random, and follow what the collector asks for", () => {
  for (let failures = 0; failures < 40; failures++)
    assert.ok(waitMs(failures) <= Math.min(1000 * 2 ** failures, 3_600_000));
  assert.ok(waitMs(0, 5000) >= 5000 && waitMs(0, 5000) <= 6000);
  assert.ok(new Set(Array.from({ length: 20 }, () => waitMs(20))).size > 15);
});
