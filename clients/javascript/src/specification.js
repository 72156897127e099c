// A specification: the tables of all services, one promise over all of them, and its identity. Only the canonical form
// is read, as `collection.json` and a collector have it; whatever else it says is refused.
import { Table } from "./attributes.js";
import { DESIGNS, gridParts, PRODUCTS } from "./designs.js";
import { check } from "./errors.js";
import { checkEpsilon, checkNoise, floatBelow, fraction, isLess, over, plus, times } from "./exact.js";
import { checkDistinct, checkField, checkName, fieldsOf, floatOf, integerOf } from "./fields.js";
import { gridViews } from "./grid_views.js";
import { MemoisedResponse } from "./memoised_response.js";
import { oracleFor } from "./oracles.js";
import { sha256, sha256Hex } from "./randomness.js";
import { Rounds } from "./rounds.js";
import { canonicalJson, readJson } from "./strict_json.js";

const FORMAT = 2,
  MOST_TABLES = 1_000,
  LARGEST_FANOUT = 2 ** 16,
  LARGEST_SHARE = 1e300;
const VIEW_NUMBERS = 2 ** 32,
  SLOT_NUMBERS = 2 ** 16,
  MOST_MEMOISED_VIEWS = 2 ** 14;
const FIELDS = ["deniable", "name", "epsilon", "design", "fanout", "oracle", "coins", "shares", "tables"];
const WHOLE = [1n, 1n];

export class Specification {
  #mechanisms = new Map();

  /** A specification from the text of its canonical form. */
  static async fromJson(text) {
    return this.fromEntries(readJson(text));
  }

  /** A specification from what `readJson` gave. */
  static async fromEntries(entries) {
    const made = new this(entries);
    made.sha256 = await sha256Hex(canonicalJson(entries));
    return Object.freeze(made);
  }

  constructor(entries) {
    const fields = fieldsOf("the specification", entries, FIELDS, ["grids", "rounds"]);
    const choice = (name, words) => {
      checkField(typeof fields[name] === "string" && words.includes(fields[name]), name);
      return fields[name];
    };
    integerOf("deniable", fields.deniable, FORMAT, FORMAT);
    if (fields.name !== null) checkName("collection", fields.name);
    const { name, tables } = fields,
      isList = Array.isArray(tables) && tables.length && tables.length <= MOST_TABLES;
    checkField(isList, "tables");
    this.name = name;
    this.epsilon = floatOf("epsilon", fields.epsilon);
    checkEpsilon(this.epsilon);
    checkField(this.epsilon < Infinity, "epsilon");
    this.design = choice("design", [...Object.keys(DESIGNS), "grid"]);
    this.fanout = integerOf("fanout", fields.fanout, 2, LARGEST_FANOUT);
    this.adaptive = choice("oracle", ["auto", "olh"]) === "auto";
    this.assigned = choice("coins", ["drawn", "assigned"]) === "assigned";
    this.tables = new Map(tables.map((entry) => new Table(entry)).map((table) => [table.name, table]));
    checkDistinct(
      "tables",
      tables.map((table) => table.name),
    );
    this.rounds = fields.rounds === undefined ? null : new Rounds(fields.rounds);
    this.#readShares(fields.shares);
    this.#readParts(fields.grids);
    this.#checkRounds();
  }

  #readShares(entry) {
    this.shares = null;
    if (entry === null) return;
    const fields = fieldsOf("shares", entry, [...this.tables.keys()]);
    this.shares = new Map([...this.tables.keys()].map((name) => [name, floatOf(`shares of '${name}'`, fields[name])]));
    const fits = [...this.shares.values()].every((share) => share <= LARGEST_SHARE);
    checkField(fits, "shares");
  }

  #readParts(entry) {
    const isGrid = this.design === "grid";
    checkField(isGrid === (entry !== undefined), "grids");
    const grids = isGrid ? fieldsOf("grids", entry, [...this.tables.keys()]) : null;
    this.parts = new Map();
    for (const [name, table] of this.tables) {
      const fits = !PRODUCTS.includes(this.design) || table.private.length <= 32;
      checkField(fits, `table '${name}'`);
      const parts = isGrid ? gridParts(table, gridViews(table, grids[name])) : DESIGNS[this.design](table, this.fanout);
      this.parts.set(name, parts);
      checkField(this.views(name) <= VIEW_NUMBERS, `table '${name}'`);
      checkField(this.reportsPerUser(name) <= SLOT_NUMBERS, `table '${name}': tau`);
    }
    for (const name of this.tables.keys()) {
      checkEpsilon(this.epsilonPerReport(name));
      checkNoise(this.epsilonPerReport(name));
    }
  }

  #checkRounds() {
    if (!this.rounds) return;
    checkField(this.name !== null, "name");
    for (const table of this.tables.values()) {
      const isFree = !table.names.some((name) => name.toLowerCase() === "round");
      checkField(isFree, `table '${table.name}'`);
    }
    if (this.rounds.mode !== "memoised") return;
    checkField(this.rounds.permanent >= this.epsilon, "rounds: permanent");
    for (const name of this.tables.keys()) {
      checkField(this.views(name) <= MOST_MEMOISED_VIEWS, `table '${name}'`);
      const isQuiet = this.responses(name).every(({ step }) => step !== null && !isLess(WHOLE, step));
      checkField(isQuiet || this.rounds.changesArePublic, "rounds");
    }
  }

  // What is sent -----------------------------------------------------------------------------------------------------

  table(name) {
    const table = this.tables.get(name);
    check(table, "table", "is not in this collection", `It has ${[...this.tables.keys()].slice(0, 10).join(", ")}.`);
    return table;
  }

  views(name) {
    return this.parts
      .get(name)
      .flat()
      .reduce((count, { views }) => count + views, 0);
  }

  reportsPerUser(name) {
    return this.table(name).tau * this.parts.get(name).length;
  }

  /** What one report of a table spends: its share of ε, rounded down so that the sum stays within ε. */
  epsilonPerReport(name) {
    return floatBelow(times(this.#share(name), fraction(this.epsilon)));
  }

  /** The ε∞ of one report of a table in memoised rounds, or the ε of one round where that is larger. */
  permanentPerReport(name) {
    const { permanent } = this.rounds;
    const share = permanent === Infinity ? Infinity : floatBelow(times(this.#share(name), fraction(permanent)));
    return Math.max(share, this.epsilonPerReport(name));
  }

  #share(name) {
    const count = (...names) =>
      names.reduce((sum, each) => sum + BigInt(this.table(each).tau * this.parts.get(each).length), 0n);
    const answers = BigInt(this.rounds?.answers ?? 1);
    if (!this.shares) return [1n, count(...this.tables.keys()) * answers];
    const exact = new Map([...this.shares].map(([table, share]) => [table, fraction(share)]));
    const mine = over(exact.get(name), [...exact.values()].reduce(plus));
    return over(mine, [count(name) * answers, 1n]);
  }

  /** The different ways in which views of a table answer in memoised rounds. */
  responses(name) {
    if (!this.#mechanisms.has(name)) {
      const epsilon = this.epsilonPerReport(name),
        outcomes = new Set();
      for (const group of this.parts.get(name).flat())
        for (let local = 0; local < group.views; local++)
          outcomes.add(this.oracle(name, group.cells(group.choice(local))).outcomes);
      outcomes.delete(1);
      const made = [...outcomes].map((k) => new MemoisedResponse(epsilon, this.permanentPerReport(name), k));
      this.#mechanisms.set(name, made);
    }
    return this.#mechanisms.get(name);
  }

  oracle(name, cells) {
    return oracleFor(this.epsilonPerReport(name), cells, this.adaptive, this.rounds?.buckets);
  }

  // Identity ---------------------------------------------------------------------------------------------------------

  /** The identity of a table: reports carry its first eight bytes. */
  digest(name) {
    return sha256(`${this.sha256}:${name}`);
  }
}
