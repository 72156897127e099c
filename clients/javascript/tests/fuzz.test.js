// Random specifications, rows and draws through Python and through this client: equal bytes, or equal refusals.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Collection, DeniableError, ProcessStore, ToPLClient } from "../src/node.js";
import { ROOT } from "./helpers.js";

const PYTHON = process.env.DENIABLE_PYTHON ?? fileURLToPath(new URL(".venv/bin/python", ROOT));
const CASES = process.env.DENIABLE_FUZZ_CASES ?? "500",
  SEED = process.env.DENIABLE_FUZZ_SEED ?? "1";

/** The draws of a case: the same function as in Python. */
function caseDraws(name) {
  let count = 0;
  const bounds = createHash("sha256");
  const randbelow = (bound) => {
    const digest = createHash("sha256").update(`${name}:${count++}`).digest();
    bounds.update(`${bound},`);
    if (digest[0] < 16) return digest[0] < 8 ? 0n : bound - 1n;
    return BigInt(`0x${digest.toString("hex")}`) % bound;
  };
  return { randbelow, bounds: () => bounds.digest("hex") };
}

function untagged(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  if ("time" in value) return new Date(value.time);
  if ("float" in value) return Number(value.float);
  const integer = BigInt(value.integer);
  return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer;
}

async function tableCase({ specification, table, user, rounds, now, rows, draws }) {
  const collection = await Collection.fromJson(specification),
    { randbelow, bounds } = caseDraws(draws),
    reports = [];
  const client = collection.client({
    memory: new ProcessStore(),
    user: untagged(user),
    randbelow,
    clock: () => 1000 * now,
  });
  for (const [index, round] of rounds.entries()) {
    const held = rows[index].map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, untagged(value)])),
    );
    reports.push((await client.reports(table, held, round)).map((report) => report.toHex()));
  }
  return { sha256: collection.sha256, reports, bounds: bounds() };
}

async function streamCase({ stream, value, theta, draws }) {
  const { randbelow, bounds } = caseDraws(draws),
    client = new ToPLClient({ memory: new ProcessStore(), randbelow, ...stream });
  return { report: (await client.report(untagged(value), theta)).toHex(), bounds: bounds() };
}

async function repeated(work) {
  try {
    return await work();
  } catch (problem) {
    if (problem instanceof DeniableError) return { refused: true };
    throw problem;
  }
}

async function outcomeOf(line) {
  const entries = JSON.parse(line);
  if ("accepted" in entries) {
    const client = await repeated(async () =>
      (await Collection.fromJson(entries.specification)).client({ memory: new ProcessStore(), user: "ann" }),
    );
    return [{ accepted: !client.refused }, { accepted: entries.accepted }];
  }
  const { refused, sha256, reports, bounds, report } = entries;
  const expected = refused ? { refused } : entries.stream ? { report, bounds } : { sha256, reports, bounds };
  return [await repeated(() => (entries.stream ? streamCase(entries) : tableCase(entries))), expected];
}

test(
  `${CASES} random cases come out as in Python`,
  { skip: existsSync(PYTHON) ? false : "no Python with deniable" },
  async () => {
    const env = { ...process.env, PYTHONPATH: fileURLToPath(new URL("tests", ROOT)) };
    const python = spawn(PYTHON, ["-m", "fuzzing.client_cases", SEED, CASES], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const counts = { equal: 0, refused: 0, accepted: 0, differing: [] };
    let number = 0;
    for await (const line of createInterface({ input: python.stdout })) {
      const [made, expected] = await outcomeOf(line).catch((problem) => [{ failed: problem.stack }, {}]);
      if (JSON.stringify(made) !== JSON.stringify(expected))
        counts.differing.push(
          `case ${SEED}-${number}: ${JSON.stringify(made)} is not ${JSON.stringify(expected)}; ${line.slice(0, 1500)}`,
        );
      else
        counts[
          expected.refused || expected.accepted === false ? "refused" : expected.accepted ? "accepted" : "equal"
        ]++;
      number++;
    }
    assert.equal(
      counts.differing.length,
      0,
      `${counts.differing.length} cases differ:\n${counts.differing.slice(0, 3).join("\n")}`,
    );
    assert.equal(number, Number(CASES));
    assert.ok(counts.equal > number / 3 && counts.refused > number / 50);
    console.log(
      `fuzzing: ${counts.equal} equal reports, ${counts.refused} equal refusals, ${counts.accepted} changed specifications accepted by both`,
    );
  },
);
