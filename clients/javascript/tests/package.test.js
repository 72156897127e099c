// The package as npm would publish it: its types, its size, its files, its speed.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { sourcesHash, SURVEY } from "../build_survey.js";
import * as deniable from "../src/node.js";
import { PACKAGE, SHOP, vectorTexts } from "./helpers.js";
import { repeatVectors } from "./vector_suite.js";

const cwd = fileURLToPath(PACKAGE),
  skip = existsSync(new URL("node_modules/.bin/tsc", PACKAGE)) ? false : "npm install was not possible";
const run = (command, ...options) =>
  execFileSync(command, options, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const LARGEST = 15_000;

test("types are sound, and a program that uses them is checked", { skip }, () => {
  const tsc = fileURLToPath(new URL("node_modules/.bin/tsc", PACKAGE));
  run(
    tsc,
    "--strict",
    "--noEmit",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--lib",
    "es2023,dom",
    "deniable.d.ts",
    "tests/types.ts",
  );
});

test("types name what the package exports, and its methods", () => {
  const text = readFileSync(new URL("deniable.d.ts", PACKAGE), "utf8");
  const named = [...text.matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name).sort();
  assert.deepEqual(Object.keys(deniable).sort(), named);
  for (const [, name, body] of text.matchAll(/^export class (\w+)[^{]*\{([^]*?)\n\}/gm))
    for (const [, isStatic, method] of body.matchAll(/^ {2}(static )?(\w+)(?:<\w+>)?\(/gm))
      if (method !== "constructor")
        assert.equal(
          typeof (isStatic ? deniable[name] : deniable[name].prototype)[method],
          "function",
          `${name}.${method}`,
        );
});

test("minified and compressed it is small, and does the same", { skip }, async () => {
  const printed = run("node", "build.js").trim(),
    file = new URL("dist/deniable.min.js", PACKAGE);
  console.log(printed);
  const sizes = printed
    .split("\n")
    .map((line) => /^(.*): (\d+) bytes with gzip, (\d+) with brotli$/.exec(line).slice(1));
  const built = readFileSync(file);
  assert.deepEqual(sizes[0], [
    "everything",
    `${gzipSync(built, { level: 9 }).length}`,
    `${brotliCompressSync(built).length}`,
  ]);
  assert.equal(sizes.length, 4);
  // All that there is fits with brotli, every page that uses a part of it also with gzip.
  for (const [what, gzip, brotli] of sizes) assert.ok((what === "everything" ? brotli : gzip) <= LARGEST, what);
  assert.deepEqual(await repeatVectors(await import(file), vectorTexts()), { tables: 95, rounds: 18, streams: 16 });
});

test("the survey in the Python package was built from these sources", () => {
  const [note] = readFileSync(new URL("survey.js", SURVEY), "utf8").split("\n");
  assert.ok(note.endsWith(sourcesHash()), "run: node build_survey.js");
});

test("npm packs what package.json says, and needs nothing else", { skip }, () => {
  const about = JSON.parse(readFileSync(new URL("package.json", PACKAGE), "utf8"));
  const [{ name, files }] = JSON.parse(run("npm", "pack", "--dry-run", "--json", "--ignore-scripts")),
    paths = files.map(({ path }) => path);
  assert.equal(name, "deniable");
  assert.equal(about.dependencies, undefined);
  assert.deepEqual([...new Set(paths.map((path) => path.split("/")[0]))].sort(), [
    "LICENSE",
    "README.md",
    "deniable.d.ts",
    "dist",
    "package.json",
    "src",
  ]);
  for (const path of [about.types, about.exports["."].node, about.exports["."].default, about.exports["./min"].default])
    assert.ok(paths.includes(path.slice(2)), path);
});

test("only Web Crypto, and nothing of Node.js outside the file store", () => {
  for (const file of paths("src")) {
    const text = readFileSync(new URL(`src/${file}`, PACKAGE), "utf8");
    if (file !== "file_store.js") assert.ok(!/node:|\bBuffer\b|process\.|require\(/.test(text), file);
    assert.ok(!/Math\.random/.test(text), file);
    assert.ok(text.split("\n").length <= 400, file);
  }
});
const paths = (folder) =>
  execFileSync("ls", [fileURLToPath(new URL(folder, PACKAGE))], { encoding: "utf8" })
    .trim()
    .split("\n");

test("how long a report takes", async () => {
  const shop = await deniable.Collection.fromJson(SHOP),
    count = 300;
  const report = () =>
    shop.client({ memory: new deniable.ProcessStore() }).report("users", { age: 31, marital: "single" });
  for (let warm = 0; warm < 50; warm++) await report();
  const begun = process.cpuUsage();
  for (let made = 0; made < count; made++) await report();
  const { user, system } = process.cpuUsage(begun);
  console.log(`a report takes ${((user + system) / 1000 / count).toFixed(2)} ms of processor time`); // printed, not asserted
});
