import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { link, readFile, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { Collection, Failure, FileStore, Ledger, ProcessStore } from "../src/node.js";
import { folder, PACKAGE, SHOP } from "./helpers.js";

const ROW = { age: 31, marital: "single" };
const hexOf = (reports) => reports.map((report) => report.toHex()).join();

/** A store that keeps every text that was written, and fails where it is told to. */
class WatchedStore {
  texts = [];
  failsAt = Infinity;
  async read() {
    return this.texts.at(-1) ?? null;
  }
  async write(text) {
    if (this.texts.length >= this.failsAt) throw new Error("the disk is full");
    this.texts.push(text);
  }
}

test("asked again, in another life, about other rows: the same bytes", async () => {
  const path = join(await folder(), "memory.json"),
    shop = await Collection.fromJson(SHOP);
  for (const memory of [
    () => new FileStore(path),
    (
      (store) => () =>
        store
    )(new WatchedStore()),
  ]) {
    const first = hexOf(await shop.client({ memory: memory() }).reports("orders", [{ amount: 7 }]));
    assert.equal(hexOf(await shop.client({ memory: memory() }).reports("orders", [])), first);
    assert.notEqual(hexOf(await shop.client({ memory: new ProcessStore() }).reports("orders", [])), first);
  }
  assert.ok(!(await readFile(path, "utf8")).includes("amount"));
});

test("clients that answer at once answer alike", async () => {
  const shop = await Collection.fromJson(SHOP),
    memory = new WatchedStore(),
    ages = Array.from({ length: 20 }, (_, i) => 20 + i);
  const sent = await Promise.all(
    ages.map((age) => shop.client({ memory }).report("users", { age, marital: "single" })),
  );
  assert.equal(new Set(sent.map((report) => report.toHex())).size, 1);
  assert.equal(memory.texts.length, 1);
});

test("processes that answer at once answer alike, and a lock of a dead process is removed", async () => {
  const path = join(await folder(), "memory.json");
  await writeFile(`${path}.lock`, "999999999 1 gone");
  const program = `
    const { Collection, FileStore } = await import(${JSON.stringify(new URL("src/node.js", PACKAGE).href)});
    const shop = await Collection.fromJson(${JSON.stringify(SHOP)});
    const client = shop.client({ memory: new FileStore(${JSON.stringify(path)}) });
    console.log((await client.report("users", { age: Number(process.argv[1]), marital: "single" })).toHex());`;
  const run = (age) => promisify(execFile)(process.execPath, ["--input-type=module", "-e", program, String(age)]);
  const printed = await Promise.all([30, 40, 50, 60].map(run));
  assert.equal(new Set(printed.map(({ stdout }) => stdout)).size, 1);
});

test("a lock of a living process is waited for, then refused", async () => {
  const path = join(await folder(), "memory.json"),
    shop = await Collection.fromJson(SHOP);
  const stat = await readFile("/proc/self/stat", "utf8").catch(() => "");
  await writeFile(`${path}.lock`, `${process.pid} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "?"} me`);
  const client = shop.client({ memory: new FileStore(path, { waitMs: 60 }) });
  await assert.rejects(client.report("users", ROW), /memory.json.lock is held by another process. Nothing was sent/);
});

test("a memory is one whatever name it is reached by, and a second hard link is refused", async () => {
  const inside = await folder(),
    shop = await Collection.fromJson(SHOP),
    [path, before, after, second] = ["memory", "before", "after", "second"].map((name) => join(inside, name)),
    ask = (name) => shop.client({ memory: new FileStore(name) }).report("users", ROW);
  await symlink("memory", before);
  const first = (await ask(before)).toHex();
  await symlink(path, after);
  for (const name of [path, after, before]) assert.equal((await ask(name)).toHex(), first);
  await link(path, second);
  await assert.rejects(ask(second), /second has 2 names \(hard links\).*Nothing was sent/);
  await symlink("endless", join(inside, "endless"));
  await assert.rejects(ask(join(inside, "endless")), /endless cannot be reached. Nothing was sent/);
});

test("a process that is killed at any call leaves one answer, its charge, and nobody locked out", async () => {
  const inside = await folder(),
    shop = await Collection.fromJson(SHOP),
    program = `
    import fs from "node:fs/promises";
    import { syncBuiltinESMExports } from "node:module";
    let left = Number(process.argv[1]);
    for (const name of ["open", "link", "rename", "rm"]) {
      const call = fs[name];
      fs[name] = (...given) => (left-- ? call(...given) : process.kill(process.pid, "SIGKILL"));
    }
    syncBuiltinESMExports();
    const { Collection, FileStore, Ledger } = await import(${JSON.stringify(new URL("src/node.js", PACKAGE).href)});
    const shop = await Collection.fromJson(${JSON.stringify(SHOP)}), path = process.argv[2];
    const ledger = new Ledger(new FileStore(path + ".ledger"), { limit: 8 });
    const client = shop.client({ memory: new FileStore(path), ledger });
    console.log((await client.report("users", { age: 40, marital: "single" })).toHex());`;
  const run = (calls, path) =>
    promisify(execFile)(process.execPath, ["--input-type=module", "-e", program, String(calls), path]).then(
      ({ stdout }) => stdout.trim(),
      ({ signal }) => assert.equal(signal, "SIGKILL") ?? null,
    );
  let sent = null,
    calls = 0;
  for (; sent === null; calls++) {
    const path = join(inside, `${calls}.json`);
    sent = await run(calls, path);
    // Its heir is killed as well, with the first name that it takes, and just before it takes the lock.
    for (const more of sent === null && calls % 8 === 2 ? [3, 4] : []) assert.equal(await run(more, path), null);
    const ledger = new Ledger(new FileStore(`${path}.ledger`), { limit: 8 }),
      again = (await shop.client({ memory: new FileStore(path), ledger }).report("users", ROW)).toHex();
    assert.equal(again, sent ?? again);
    assert.equal((await ledger.balance()).spent, 1.333333);
    assert.ok(!(await readdir(inside)).some((name) => /lock$|heir$/.test(name)));
  }
  assert.ok(calls > 20);
});

test("a damaged memory stops the client: not a byte of it can change", async () => {
  const shop = await Collection.fromJson(SHOP),
    memory = new WatchedStore();
  await shop.client({ memory }).report("users", ROW);
  const [text] = memory.texts,
    step = Math.ceil(text.length / 60);
  const changed = Array.from({ length: 60 }, (_, i) => i * step)
    .filter((i) => i < text.length)
    .map((i) => text.slice(0, i) + (text[i] === "7" ? "8" : "7") + text.slice(i + 1));
  for (const damaged of [...changed, "", "{", "null", "{}", text.slice(0, -1), text.replace('"memory"', '"queue"')]) {
    const drawn = [],
      store = { read: async () => damaged, write: async () => assert.fail("nothing may be written") };
    const client = shop.client({ memory: store, randbelow: (bound) => drawn.push(bound) });
    await assert.rejects(
      client.report("users", ROW),
      (problem) => problem instanceof Failure && /memory is damaged.*spend ε a second time/.test(problem.message),
    );
    assert.equal(drawn.length, 0);
  }
});

test("nothing is sent that is not written, and a crash at any write is survived", async () => {
  const shop = await Collection.fromJson(SHOP);
  const memory = new WatchedStore();
  memory.failsAt = 0;
  await assert.rejects(shop.client({ memory }).reports("orders", []), /disk is full/);
  memory.failsAt = Infinity;
  const sent = hexOf(await shop.client({ memory }).reports("orders", []));
  assert.ok(memory.texts.at(-1).includes(sent.split(",")[0]));
  const broken = {
    read: async () => {
      throw new Error("cannot be read");
    },
    write: async () => undefined,
  };
  await assert.rejects(shop.client({ memory: broken }).reports("orders", []), /cannot be read/);
});

test("a memory belongs to one user, and mistakes in the program are refused before anything is drawn", async () => {
  const assigned = await Collection.fromJson(SHOP.replace('"coins":"drawn"', '"coins":"assigned"')),
    memory = new ProcessStore();
  const drawn = [];
  await assigned.client({ memory, user: "ann" }).reports("orders", []);
  await assert.rejects(assigned.client({ memory, user: "bob" }).reports("orders", []), /reports of another user/);
  assert.throws(() => assigned.client({ memory }), /user must be/);
  assert.throws(() => assigned.client({ memory, user: "\ud800" }), /user must be/);
  assert.throws(() => assigned.client({ user: "ann" }), /memory is not a store/);
  const client = (await Collection.fromJson(SHOP)).client({
    memory: new ProcessStore(),
    randbelow: (bound) => drawn.push(bound),
  });
  await assert.rejects(client.reports("users", []), /takes exactly one row/);
  await assert.rejects(client.reports("users", [{ ...ROW, height: 3 }]), /unknown attribute/);
  await assert.rejects(client.reports("users", [null]), /is not an object/);
  await assert.rejects(client.reports("nobody", [{}]), /is not in this collection/);
  await assert.rejects(client.report("users", ROW, 1), /has no rounds/);
  await assert.rejects(client.report("orders", {}), /takes several reports/);
  assert.equal(drawn.length, 0);
});

test("odd values do not silence the device, and are counted there", async () => {
  const client = (await Collection.fromJson(SHOP)).client({ memory: new ProcessStore() });
  const odd = {
    get age() {
      throw new Error("never read me");
    },
    marital: "single",
  };
  assert.equal((await client.report("users", odd)).bytes.length, 32);
  assert.deepEqual(client.rejected, { "of the wrong type": 1 });
});
