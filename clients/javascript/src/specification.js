// A specification: the tables of all services, one promise over all of them, and its identity. Only the canonical form
// is read, as `collection.json` and a collector have it; whatever else it says is refused.
import { DESIGNS, gridParts, PRODUCTS } from "./designs.js";
import { check } from "./errors.js";
import { checkEpsilon, checkNoise, floatBelow, fraction, isLess, over, plus, times } from "./exact.js";
import { checkDistinct, checkField, checkName, fieldsOf, floatOf, integerOf, listOf, oneOf, within } from "./fields.js";
import { gridViews } from "./grid_views.js";
import { MemoisedResponse } from "./memoised_response.js";
import { oracleFor } from "./oracles.js";
import { sha256, sha256Hex } from "./randomness.js";
import { Rounds } from "./rounds.js";
import { canonicalJson, readJson } from "./strict_json.js";
import { Table } from "./table.js";

const FORMAT = 2,
  MOST_TABLES = 1_000,
  MOST_PRODUCT_ATTRIBUTES = 32,
  LARGEST_FANOUT = 2 ** 16,
  LARGEST_SHARE = 1e300;
const VIEW_NUMBERS = 2 ** 32,
  SLOT_NUMBERS = 2 ** 16,
  MOST_MEMOISED_VIEWS = 2 ** 14;
const FIELDS = ["deniable", "name", "epsilon", "design", "fanout", "oracle", "coins", "shares", "tables"];
const WHOLE = [1n, 1n];

export class Specification {
  #responses = new Map();

  /** A specification from the text of its canonical form. */
  static async fromJson(text) {
    return this.fromEntries(readJson(text));
  }

  /** A specification from what `readJson` gave. */
  static async fromEntries(entries) {
    const made = within("the specification", () => new this(entries));
    made.sha256 = await sha256Hex(canonicalJson(entries));
    return Object.freeze(made);
  }

  constructor(entries) {
    const fields = fieldsOf(entries, FIELDS, ["grids", "rounds", "owners", "ids"]);
    check(!fields.ids, "ids", "are pseudonyms", "Report in Python.");
    integerOf(fields.deniable, FORMAT, FORMAT);
    this.name = fields.name === null ? null : checkName(fields.name);
    this.epsilon = floatOf(fields.epsilon);
    checkEpsilon(this.epsilon);
    checkField(this.epsilon < Infinity);
    this.design = oneOf(fields.design, [...Object.keys(DESIGNS), "grid"]);
    this.fanout = integerOf(fields.fanout, 2, LARGEST_FANOUT);
    this.oracles = oneOf(fields.oracle, ["auto", "subset", "olh"]);
    this.assigned = oneOf(fields.coins, ["drawn", "assigned"]) === "assigned";
    const all = listOf(fields.tables, MOST_TABLES).map((entry) => new Table(entry)),
      names = all.map(({ name }) => name),
      tables = all.filter(({ key }) => key === undefined);
    checkDistinct(names);
    // Tables of another population are reported by their owners, in Python, and cost people nothing.
    checkField(tables.length);
    this.tableNames = tables.map(({ name }) => name);
    this.tables = new Map(tables.map((table) => [table.name, table]));
    this.rounds = fields.rounds === undefined ? null : within("rounds", () => new Rounds(fields.rounds));
    this.shares = fields.shares === null ? null : within("shares", () => this.#readShares(fields.shares, names));
    this.parts = new Map();
    const isGrid = this.design === "grid";
    checkField(isGrid === (fields.grids !== undefined));
    if (isGrid) fieldsOf(fields.grids, names);
    for (const table of tables) within(`table '${table.name}'`, () => this.#readParts(table, fields.grids));
    for (const name of this.tableNames) checkNoise(this.epsilonPerReport(name));
    if (this.rounds) within("rounds", () => this.#checkRounds());
  }

  #readShares(entry, names) {
    const fields = fieldsOf(entry, names),
      shares = this.tableNames.map((name) => [name, floatOf(fields[name])]);
    checkField(shares.every(([, share]) => share <= LARGEST_SHARE));
    return new Map(shares.map(([name, share]) => [name, fraction(share)]));
  }

  #readParts(table, grids) {
    const { name, domains } = table;
    checkField(!PRODUCTS.includes(this.design) || domains.length <= MOST_PRODUCT_ATTRIBUTES);
    this.parts.set(
      name,
      grids ? gridParts(table, gridViews(table, grids[name])) : DESIGNS[this.design](table, this.fanout),
    );
    this.groups(name).reduce((count, group) => (group.firstView = count) + group.views, 0);
    checkField(this.views(name) <= VIEW_NUMBERS && this.reportsPerUser(name) <= SLOT_NUMBERS);
  }

  #checkRounds() {
    const { permanent, isMemoised, changesArePublic } = this.rounds;
    checkField(this.name !== null);
    for (const { names } of this.tables.values()) checkField(!names.some((name) => name.toLowerCase() === "round"));
    if (!isMemoised) return;
    checkField(permanent >= this.epsilon);
    for (const name of this.tableNames) {
      checkField(this.views(name) <= MOST_MEMOISED_VIEWS);
      const isQuiet = this.responses(name).every(({ step }) => step !== null && !isLess(WHOLE, step));
      checkField(isQuiet || changesArePublic);
    }
  }

  // What is sent -----------------------------------------------------------------------------------------------------

  table(name) {
    const table = this.tables.get(name);
    check(table, "table", "is not in this collection", "Check its name.");
    return table;
  }

  groups(name) {
    return this.parts.get(name).flat();
  }

  views(name) {
    return this.groups(name).reduce((count, { views }) => count + views, 0);
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
    const share = permanent === Infinity ? permanent : floatBelow(times(this.#share(name), fraction(permanent)));
    return Math.max(share, this.epsilonPerReport(name));
  }

  #share(name) {
    const count = (...names) => names.reduce((sum, each) => sum + this.reportsPerUser(each), 0);
    const [share, reports] = this.shares
      ? [over(this.shares.get(name), [...this.shares.values()].reduce(plus)), count(name)]
      : [WHOLE, count(...this.tableNames)];
    return over(share, [BigInt(reports * (this.rounds?.answers ?? 1)), 1n]);
  }

  /** The different ways in which views of a table answer in memoised rounds. */
  responses(name) {
    if (!this.#responses.has(name)) {
      const outcomes = new Set();
      for (const group of this.groups(name))
        for (let local = 0; local < group.views; local++)
          outcomes.add(this.oracle(name, group.cells(group.choice(local))).outcomes);
      outcomes.delete(1);
      const [epsilon, permanent] = [this.epsilonPerReport(name), this.permanentPerReport(name)];
      this.#responses.set(
        name,
        [...outcomes].map((k) => new MemoisedResponse(epsilon, permanent, k)),
      );
    }
    return this.#responses.get(name);
  }

  oracle(name, cells) {
    return oracleFor(this.epsilonPerReport(name), cells, this.oracles, this.rounds);
  }

  // Identity ---------------------------------------------------------------------------------------------------------

  /** The identity of a table: reports carry its first eight bytes. */
  digest(name) {
    return sha256(`${this.sha256}:${name}`);
  }
}
