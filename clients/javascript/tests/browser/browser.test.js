// In a real browser, against a live collector: exactly one set of reports per user, whatever happens on the way.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { PACKAGE, ROOT, SHOP, vectorTexts } from "../helpers.js";
import { launch, makeCollector, makeQuickCollector, servePages, startPython } from "./browsing.js";

const WORKER = `
import { BrowserStore, Collection, Ledger, Uploader } from "/src/index.js";
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("message", (event) => event.waitUntil((async () => {
  const { url, user, age } = event.data, shop = await Collection.fetch(url, "shop");
  const ledger = new Ledger(new BrowserStore("ledger"), { limit: 4 });
  const client = shop.client({ memory: new BrowserStore("memory"), ledger, user });
  const uploader = new Uploader(client, url, { queue: new BrowserStore("queue") });
  if (age) {
    await uploader.add("users", [{ age, marital: "single" }]);
    await uploader.add("orders", []);
    uploader.start().stop(); // events of pages do not exist here
  }
  const queued = await uploader.waiting();
  event.source.postMessage({ queued, all: await uploader.send(), waiting: await uploader.waiting(),
    isWorker: !globalThis.document && globalThis instanceof ServiceWorkerGlobalScope,
    reports: (await client.reports("users", [{ age: 1, marital: "married" }])).map((report) => report.toHex()),
    balance: await ledger.balance() });
})()));`;

/** What a service worker of the tab answers to a message. */
async function askWorker(tab, message) {
  await tab.evaluate(() => navigator.serviceWorker.register("/worker.js", { type: "module" }));
  return tab.evaluate(async (asked) => {
    const { active } = await navigator.serviceWorker.ready;
    const answered = new Promise((resolve) =>
      navigator.serviceWorker.addEventListener("message", ({ data }) => resolve(data)),
    );
    active.postMessage(asked);
    return answered;
  }, message);
}

let browser, pages, collector, python;

before(async () => {
  python = startPython();
  pages = await servePages({ "/worker.js": WORKER });
  [browser, collector] = await Promise.all([
    launch(),
    makeCollector(python, [pages.origin], SHOP, { baskets: { epsilon: 1.0, bound: 500 } }),
  ]);
});
after(async () => {
  await browser?.close();
  await collector?.stop();
  pages?.close();
  python?.close();
});

/** A page of a person: tabs of one context share their storage, as in a browser. */
async function openTab(context) {
  const tab = await context.newPage();
  await tab.goto(pages.origin);
  await tab.waitForFunction(() => window.deniable);
  await tab.evaluate(() => {
    window.uploaderFor = async (url, text, user) => {
      const { BrowserStore, Collection, Ledger, Uploader } = window.deniable;
      const shop = await Collection.fromJson(text),
        ledger = new Ledger(new BrowserStore("ledger"), { limit: 4 });
      window.ledger = ledger;
      window.client = shop.client({ memory: new BrowserStore("memory"), ledger, user });
      return (window.uploader ??= new Uploader(window.client, url, { queue: new BrowserStore("queue") }));
    };
  });
  return tab;
}

const addAll = (tab, user, age, url = collector.url) =>
  tab.evaluate(
    async ([url, text, user, age]) => {
      const uploader = await window.uploaderFor(url, text, user);
      await uploader.add("users", [{ age, marital: "single" }]);
      await uploader.add("orders", age > 40 ? [] : [{ amount: age }, { amount: 7 }]);
    },
    [url, SHOP, user, age],
  );

const sendAll = (tab) => tab.evaluate(() => window.uploader.deliver(3));
const waiting = (tab) => tab.evaluate(() => window.uploader.waiting());

/** Looks again and again, for a while. */
async function until(isDone) {
  for (let tries = 0; tries < 200; tries++) {
    if (await isDone()) return;
    await new Promise((wake) => setTimeout(wake, 50));
  }
  assert.fail("it did not happen in ten seconds");
}

/** Each user's reports: one for users, two for orders. */
async function assertOneSet(...users) {
  const stored = await python.list(collector.folder),
    slots = stored.map(([table, user, slot]) => `${table} ${user} ${slot}`);
  assert.equal(new Set(slots).size, slots.length);
  for (const user of users)
    assert.deepEqual(slots.filter((slot) => slot.split(" ")[1] === user).sort(), [
      `orders ${user} 0`,
      `orders ${user} 1`,
      `users ${user} 0`,
    ]);
}

test("Chromium repeats all vectors", async () => {
  const tab = await (await browser.newContext()).newPage();
  await tab.goto(pages.origin);
  await tab.waitForFunction(() => window.deniable);
  for (const build of ["/src/index.js", "/dist/deniable.min.js"]) {
    const counts = await tab.evaluate(
      async ([build, texts]) => {
        const { repeatVectors } = await import("/tests/vector_suite.js");
        return repeatVectors(await import(build), texts);
      },
      [build, vectorTexts()],
    );
    assert.deepEqual(counts, { tables: 95, rounds: 18, streams: 16 });
  }
  await tab.context().close();
});

test("two tabs answer at once: one answer, charged once, and one set of reports", async () => {
  const context = await browser.newContext(),
    tabs = await Promise.all([openTab(context), openTab(context)]);
  await Promise.all(tabs.map((tab, index) => addAll(tab, "ann", 31 + 30 * index)));
  assert.equal(await waiting(tabs[0]), 3);
  assert.deepEqual(await Promise.all(tabs.map(sendAll)), [true, true]);
  assert.deepEqual(await tabs[1].evaluate(() => window.ledger.balance()), { spent: 4, left: 0, limit: 4 });
  assert.deepEqual(await tabs[0].evaluate(() => window.uploader.refused), {});
  await assertOneSet("ann");
  await context.close();
});

test("offline, reloaded, and online again: what waited is delivered by itself", async () => {
  const context = await browser.newContext(),
    tab = await openTab(context);
  await context.setOffline(true);
  await addAll(tab, "bob", 25);
  assert.equal(await tab.evaluate(() => window.uploader.send()), false);
  await context.setOffline(false);
  await tab.reload(); // everything but the stores is gone
  const again = await openTab(context);
  await context.setOffline(true);
  await again.evaluate(
    async ([url, text]) => (await window.uploaderFor(url, text, "bob")).start(),
    [collector.url, SHOP],
  );
  assert.equal(await waiting(again), 3);
  await context.setOffline(false); // the event wakes the uploader
  await until(async () => (await waiting(again)) === 0);
  await assertOneSet("bob");
  await context.close();
});

test("closed mid-upload, and the collector restarted: sent again, counted once", async () => {
  const context = await browser.newContext(),
    tab = await openTab(context);
  let isFirst = true;
  await context.route("**/reports", async (route) => {
    if (!isFirst) return route.continue();
    isFirst = false;
    await route.fetch(); // it arrives, and nobody sees the answer
    await route.abort();
  });
  await addAll(tab, "cyd", 52);
  assert.equal(await tab.evaluate(() => window.uploader.send()), false);
  assert.equal(await waiting(tab), 3);
  await tab.close();
  await collector.stop();
  const again = await openTab(context);
  await addAll(again, "cyd", 19); // other rows by now: the same bytes, and none of them twice
  assert.equal(await waiting(again), 3);
  assert.equal(await again.evaluate(() => window.uploader.send()), false);
  await collector.start();
  assert.equal(await sendAll(again), true);
  assert.deepEqual(await again.evaluate(() => window.uploader.refused), {});
  await assertOneSet("ann", "bob", "cyd");
  await context.close();
});

test("a page that closes hands over what waits, and a service worker delivers what is left", async () => {
  const context = await browser.newContext(),
    tab = await openTab(context);
  await context.setOffline(true);
  await addAll(tab, "dora", 44);
  await tab.evaluate(() => {
    window.uploader.send = async () => false; // its first attempt could last until the device is online again
    window.uploader.start().stop(); // online again, it would deliver by itself
  });
  await context.setOffline(false);
  const arrived = async () => (await python.list(collector.folder)).filter(([, user]) => user === "dora").length;
  assert.equal(await tab.evaluate(() => window.uploader.flush()), true); // as on pagehide, with keepalive
  await tab.close({ runBeforeUnload: false });
  await until(async () => (await arrived()) === 3);
  await assertOneSet("dora");
  const other = await openTab(context);
  const { all, waiting: left } = await askWorker(other, { url: collector.url, user: "dora" });
  assert.deepEqual([all, left], [true, 0]);
  await assertOneSet("dora");
  await context.close();
});

test("a service worker reports, is charged and delivers; its page then repeats the same bytes", async () => {
  const context = await browser.newContext(),
    tab = await openTab(context);
  const {
    queued,
    all,
    waiting: left,
    isWorker,
    reports,
    balance,
  } = await askWorker(tab, {
    url: collector.url,
    user: "gus",
    age: 37,
  });
  assert.deepEqual([queued, all, left, isWorker], [3, true, 0, true]);
  assert.deepEqual(balance, { spent: 4, left: 0, limit: 4 });
  await addAll(tab, "gus", 81); // other rows, in the page
  const repeated = await tab.evaluate(async () => {
    const again = await window.client.reports("users", [{ age: 81, marital: "single" }]);
    return again.map((report) => report.toHex());
  });
  assert.deepEqual(repeated, reports);
  assert.equal(await sendAll(tab), true);
  await assertOneSet("gus");
  await context.close();
});

test("a page that is left sends what waits to its own origin by a beacon", async () => {
  const context = await browser.newContext(),
    tab = await openTab(context);
  await addAll(tab, "fay", 28, pages.origin);
  await tab.evaluate(() => {
    window.uploader.send = async () => false; // nothing but the beacon
    window.uploader.start();
  });
  const before = pages.posts.length;
  await tab.goto("about:blank");
  await until(async () => pages.posts.length > before);
  const { path, type, body } = pages.posts[before];
  assert.deepEqual([path, type, body.split("\n").length], ["/v1/collections/shop/reports", "application/x-ndjson", 3]);
  await context.close();
});

test("a damaged memory stops the page", async () => {
  const context = await browser.newContext(),
    tab = await openTab(context);
  await addAll(tab, "eve", 33);
  const refusal = await tab.evaluate(async () => {
    const store = new window.deniable.BrowserStore("memory"),
      text = await store.read();
    await store.write(
      text.replace(/[0-9a-f]{64}/, (digits) => digits.replace(/./, (digit) => (digit === "0" ? "1" : "0"))),
    );
    return window.uploader
      .add("users", [{ age: 33, marital: "single" }])
      .catch((problem) => `${problem.name}: ${problem.message}`);
  });
  assert.match(refusal, /^Failure: the memory is damaged.*spend ε a second time/);
  await context.close();
});

test("a page of an origin that is not listed cannot report, and keeps its reports", async () => {
  const strangers = await servePages(),
    context = await browser.newContext(),
    tab = await context.newPage();
  await tab.goto(strangers.origin);
  await tab.waitForFunction(() => window.deniable);
  const outcome = await tab.evaluate(
    async ([url, text]) => {
      const { BrowserStore, Collection, Uploader } = window.deniable,
        shop = await Collection.fromJson(text);
      const client = shop.client({ memory: new BrowserStore("memory"), user: "mal" });
      const uploader = new Uploader(client, url, { queue: new BrowserStore("queue") });
      await uploader.add("users", [{ age: 33, marital: "single" }]);
      const described = await Collection.fetch(url, "shop").catch((problem) => problem.message);
      return [await uploader.send(), await uploader.waiting(), described];
    },
    [collector.url, SHOP],
  );
  assert.deepEqual(outcome.slice(0, 2), [false, 1]);
  assert.match(outcome[2], /cannot be reached/);
  assert.equal((await python.list(collector.folder)).filter(([, user]) => user === "mal").length, 0);
  await context.close();
  strangers.close();
});

test("a stream's report arrives from a page, under the settings that the collector describes", async () => {
  const context = await browser.newContext(),
    tab = await openTab(context);
  const answer = await tab.evaluate(async (url) => {
    const { BrowserStore, ToPLClient } = window.deniable;
    const { settings, theta } = await ToPLClient.fetch(url, "shop", "baskets");
    const client = new ToPLClient({ ...settings, memory: new BrowserStore("memory") });
    const report = await client.report(31, theta);
    const response = await fetch(`${url}/v1/collections/shop/streams/baskets/reports`, {
      method: "POST",
      body: report.toJson("ann"),
      headers: { "Content-Type": "application/x-ndjson" },
    });
    return response.json();
  }, collector.url);
  assert.equal(answer.accepted, 1);
  await context.close();
});

test("the page of the README works when it is pasted, and is that of the docs", async () => {
  const blockOf = (path) => /```html\n([^]*?)```/.exec(readFileSync(new URL(path, ROOT), "utf8"))[1];
  const html = blockOf("clients/javascript/README.md");
  assert.equal(html, blockOf("docs/how-to/web-client.md"));
  const specification = /fromJson\(`([^`]*)`/.exec(html)[1],
    pasted = {};
  const site = await servePages(pasted),
    own = await makeQuickCollector(python, [site.origin], specification),
    context = await browser.newContext();
  pasted["/shop.html"] = html.replace("http://127.0.0.1:8710", own.url);
  pasted["/deniable.min.js"] = readFileSync(new URL("dist/deniable.min.js", PACKAGE));
  const tab = await context.newPage();
  for (let visit = 0; visit < 2; visit++) {
    await tab.goto(`${site.origin}/shop.html`);
    await tab.getByText('{"spent":2,"left":6,"limit":8}').waitFor();
  }
  await until(async () => (await python.list(own.folder)).length === 1);
  assert.deepEqual(await python.list(own.folder), [["users", "7", 0]]);
  await context.close();
  site.close();
});

test("the example shows every byte that left, and the collector has just these", async () => {
  const text = readFileSync(new URL("examples/web/survey.json", ROOT), "utf8"),
    site = await servePages();
  const own = await makeQuickCollector(python, [site.origin], text),
    context = await browser.newContext(),
    tab = await context.newPage();
  await tab.goto(`${site.origin}/examples/web/index.html?collector=${encodeURIComponent(own.url)}`);
  await tab.getByText("Nothing has left this browser.").waitFor();
  await tab.getByLabel("Days a week at work").fill("3");
  await tab.getByLabel("Mostly by").selectOption("train");
  await tab.getByLabel("How content are you").fill("8");
  await tab.getByRole("button", { name: "Answer" }).click();
  await tab.getByText("Delivered.").waitFor();
  const shown = (await tab.locator("#sent td:nth-child(2)").allTextContents()).join("").replaceAll(" ", "");
  assert.equal(shown.length, 64);
  const line = JSON.parse(await tab.locator("#line").textContent());
  assert.deepEqual([Object.keys(line), line.report], [["uid", "table", "report"], shown]);
  assert.match(await tab.locator("#kept").textContent(), /days3traveltraincontent8.*ε = 2 of 2/);
  await tab.getByLabel("Days a week at work").fill("6");
  await tab.getByRole("button", { name: "Answer" }).click();
  await tab
    .getByText("days6")
    .or(tab.locator("#kept", { hasText: "6" }))
    .first()
    .waitFor();
  assert.equal((await tab.locator("#sent td:nth-child(2)").allTextContents()).join("").replaceAll(" ", ""), shown);
  assert.deepEqual(
    (await python.list(own.folder)).map(([table, , slot]) => [table, slot]),
    [["answers", 0]],
  );
  await context.close();
  site.close();
});
