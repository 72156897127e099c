// What tests in a browser share: Chromium, a server of pages, and a live collector.
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { folder, PACKAGE, ROOT, SHOP } from "../helpers.js";

const DENIABLE = fileURLToPath(new URL(".venv/bin/deniable", ROOT)),
  PYTHON = fileURLToPath(new URL(".venv/bin/python", ROOT));
const TYPES = { ".js": "text/javascript", ".html": "text/html", ".json": "application/json", ".css": "text/css" };
const PAGE =
  '<!doctype html><meta charset="utf-8"><title>shop</title><script type="module">window.deniable = await import("/src/index.js");</script>';

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });

/** Serves this package and a page on a free port. Other paths are passed to `more`, or are files of the repository. */
export async function servePages(more = {}) {
  const posts = [],
    server = createServer(async (request, response) => {
      if (request.method === "POST") {
        const parts = [];
        for await (const part of request) parts.push(part);
        posts.push({ path: request.url, type: request.headers["content-type"], body: Buffer.concat(parts).toString() });
        return response.writeHead(503).end();
      }
      const path = new URL(request.url, "http://localhost").pathname;
      try {
        const content =
          path === "/"
            ? PAGE
            : (more[path] ??
              (await readFile(new URL(`.${path}`, /^\/(examples|clients)\//.test(path) ? ROOT : PACKAGE))));
        response.setHeader("Content-Type", TYPES[extname(path)] ?? "text/html");
        response.end(content);
      } catch {
        response.writeHead(404).end();
      }
    });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    posts,
    origin: `http://127.0.0.1:${server.address().port}`,
    close: () => server.close(server.closeAllConnections()),
  };
}

/** A collector for the shop, which pages of these origins may use. It can be stopped and started again. */
export async function makeCollector(python, origins, specification = SHOP, streams = null) {
  const path = await folder();
  await writeFile(join(path, "shop.json"), specification);
  await python.ask({ make: join(path, "shop.json"), folder: join(path, "collected"), streams });
  const collector = { url: null, folder: join(path, "collected"), process: null };
  collector.start = async () => {
    const port = collector.url ? new URL(collector.url).port : "0";
    const options = [
      "serve",
      collector.folder,
      "--port",
      port,
      ...origins.flatMap((origin) => ["--allow-origin", origin]),
    ];
    collector.process = spawn(DENIABLE, options, { stdio: ["ignore", "ignore", "pipe"] });
    for await (const line of createInterface({ input: collector.process.stderr })) {
      const match = /listening on (\S+)/.exec(line);
      if (match) {
        collector.url = match[1];
        break;
      }
    }
    collector.process.stderr.resume();
  };
  collector.stop = () =>
    new Promise((ended) => {
      if (!collector.process || collector.process.exitCode !== null) return ended();
      collector.process.once("exit", ended);
      collector.process.kill("SIGTERM");
    });
  await collector.start();
  return collector;
}

/** A collector inside that Python, which starts faster. */
export async function makeQuickCollector(python, origins, specification) {
  const path = await folder(),
    collected = join(path, "collected");
  await writeFile(join(path, "shop.json"), specification);
  await python.ask({ make: join(path, "shop.json"), folder: collected, streams: null });
  return { url: await python.ask({ serve: collected, origins }), folder: collected };
}

/** A Python that makes folders of collectors, serves some, and lists [table, user, slot] of all reports in one. */
export function startPython() {
  const python = spawn(PYTHON, ["-c", HELP], { stdio: ["pipe", "pipe", process.env.DEBUG ? "inherit" : "ignore"] });
  const lines = createInterface({ input: python.stdout })[Symbol.asyncIterator]();
  let last = Promise.resolve();
  const ask = (asked) =>
    (last = last.then(async () => {
      python.stdin.write(`${JSON.stringify(asked)}\n`);
      return JSON.parse((await lines.next()).value);
    }));
  return { ask, list: (folder) => ask({ list: folder }), close: () => python.stdin.end() };
}

const HELP = `
import json, queue, sys, threading
from pathlib import Path
from deniable.collection import Collection
from deniable.engines.collecting.stored_reports import collector_folder
from deniable.service.collector import init_folder
from deniable.service.serving import serve
from deniable.service.settings import ServeSettings

def served(path, origins):
    started = queue.Queue()
    settings = ServeSettings(port=0, origins=tuple(origins))
    threading.Thread(target=serve, args=(path, settings, started.put), daemon=True).start()
    return started.get(timeout=60)

def listed(path):
    folder = collector_folder(path)
    store = folder.open_store()
    try:
        return [
            [table.name, str(uid), int.from_bytes(bytes(report)[2:4], "big")]
            for table in folder.collection.tables for rows in store.read(table.name, 0)
            for uid, report in zip(rows.uids, rows.reports)
        ]
    finally:
        store.close()

for line in sys.stdin:
    asked = json.loads(line)
    if "make" in asked:
        init_folder(Collection.load(asked["make"]), Path(asked["folder"]), simulation=False, database=None, streams=asked["streams"])
    if "serve" in asked:
        answer = served(Path(asked["serve"]), asked["origins"])
    else:
        answer = listed(Path(asked.get("list") or asked["folder"]))
    print(json.dumps(answer), flush=True)`;
