// The client on one device: truncate, round, randomise, remember.
//
//     rows ── truncation ──▶ tau rows with a weight ── per part ──▶ view ── rounding ──▶ cell ── oracle ──▶ report
//
// Number, size and order of the reports follow from the specification. How many random numbers are drawn, and below
// which bounds, follows from the specification and the views: it is the same for every row, for any number of rows, and
// for every answer. Nothing leaves before the memory holds it and, where there is a ledger, before it is charged.
import { Unplaceable, WRONG_TYPE } from "./attributes.js";
import { assignedCoins, turnsOf } from "./coins.js";
import { check, Failure, InvalidData } from "./errors.js";
import { Draws } from "./exact.js";
import { Lifetime } from "./lifetimes.js";
import { withMemory } from "./memory.js";
import { drawReport } from "./oracles.js";
import { fromHex, randbelow as secureRandbelow, sha256Hex } from "./randomness.js";
import { checkUser, COVER, Report, REPORT_BYTES } from "./report.js";
import { checkStore } from "./stores.js";

const SECRET_ROOM = 1n << 256n;

export class Client {
  #collection;
  #memory;
  #user;
  #ledger;
  #draws;
  #clock;

  /** `user` is the id under which reports are sent; where coins are assigned, it decides views and seeds. */
  constructor(collection, { memory, user = null, ledger = null, randbelow = secureRandbelow, clock = Date.now } = {}) {
    this.#collection = collection;
    this.#memory = checkStore(memory, "memory");
    check(!ledger?.isKeptIn(memory), "ledger", "and memory lie in one store", "Give each a store of its own.");
    if (user !== null || collection.assigned) checkUser(user);
    this.#user = user;
    this.#ledger = ledger;
    this.#draws = randbelow instanceof Draws ? randbelow : new Draws(randbelow);
    this.#clock = clock;
    /** How many rows had values without a position, by reason. It stays on the device. */
    this.rejected = {};
  }

  get collection() {
    return this.#collection;
  }

  get user() {
    return this.#user;
  }

  /** The report for a table that takes one report per user; null in a round that is not hers. */
  async report(table, row, round = null) {
    const isSingle = this.#collection.reportsPerUser(table) === 1;
    check(isSingle, `table '${table}'`, "takes several reports per user", "Use client.reports.");
    return (await this.reports(table, [row], round))[0] ?? null;
  }

  /** All reports of a user for a table: always the same number, whatever the rows are. Asked again, the same bytes. */
  async reports(name, rows, round = null) {
    const table = this.#collection.table(name),
      number = this.#checkedRound(round);
    check(Array.isArray(rows), "rows", "must be a list", "Pass a list of objects.");
    if (table.many === null && rows.length !== 1)
      throw new InvalidData(`table '${name}' takes exactly one row per user`, "Pass that row.");
    return withMemory(this.#memory, async (memory) => {
      const asked = {
        key: this.#key(name, number),
        name,
        table,
        rows,
        number,
        digest: await this.#collection.digest(name),
      };
      if (!(await this.#isHerTurn(memory, number))) return this.#covers(asked);
      const coins = this.#collection.assigned ? await this.#coinsOf(asked) : null;
      const answer = () => this.#answer(memory, { ...asked, coins });
      return readReports(await (this.#ledger ? this.#charged(memory, asked, answer) : answer()));
    });
  }

  #checkedRound(round) {
    const { rounds } = this.#collection;
    check(rounds || round === null, "round", "is given, and this collection has no rounds", "Leave it out.");
    rounds?.check(round, this.#clock());
    return round ?? 0;
  }

  /** The name of something in the memory; what belongs to no round has no number. */
  #key(...parts) {
    return [this.#collection.sha256, ...parts.filter((part) => part)].join(":");
  }

  /** What everything is drawn from that must come out the same in every round. It is kept before it is used. */
  async #secret(memory) {
    const key = this.#key("life"),
      digits = async () => (await this.#draws.below(SECRET_ROOM)).toString(16).padStart(64, "0");
    return fromHex(memory.get(key) ?? (await memory.set(key, await digits())));
  }

  async #isHerTurn(memory, number) {
    const { rounds, assigned } = this.#collection;
    if (rounds?.mode !== "rotating") return true;
    const turns = await turnsOf(this.#collection, this.#user, assigned ? null : await this.#secret(memory));
    return turns.has(number);
  }

  /** What is sent in a round that is not hers: nothing, or reports of the same size that say so. */
  #covers({ name, number, digest }) {
    const { rounds, assigned } = this.#collection,
      count = rounds.cover ? this.#collection.reportsPerUser(name) : 0;
    const cover = (slot) => Report.of({ assigned, slot, round: number, digest, view: 0, seed: 0, y: COVER });
    return Array.from({ length: count }, (_, slot) => cover(slot));
  }

  #coinsOf({ name, number, digest }) {
    const slots = Array.from({ length: this.#collection.reportsPerUser(name) }, (_, slot) => slot);
    return Promise.all(slots.map((slot) => assignedCoins(this.#collection, digest, this.#user, slot, number)));
  }

  async #charged(memory, { key, name }, answer) {
    const { sha256, name: label, rounds } = this.#collection,
      what = `collection ${label ?? sha256.slice(0, 8)}, table '${name}'`;
    const group =
      rounds?.mode === "memoised" ? await sha256Hex(`${this.#key(name)}\0`, await this.#secret(memory)) : "";
    return this.#ledger.charged(
      memory,
      key,
      sha256,
      (account) => ({ what, ...account.costOf(this.#collection, name, group) }),
      answer,
    );
  }

  /** What was sent, from memory; drawn and remembered the first time. */
  async #answer(memory, asked) {
    const sent = memory.get(asked.key);
    if (sent === undefined) return memory.set(asked.key, await this.#drawn(memory, asked));
    if (asked.coins) await this.#checkUser(asked, readReports(sent));
    return sent;
  }

  async #drawn(memory, { name, table, rows, number, coins, digest }) {
    const specification = this.#collection,
      { rounds, assigned } = specification;
    const positions = rows.map((row) => this.#encoded(table, row)).filter((codes) => codes !== null);
    const life =
      rounds?.mode !== "memoised"
        ? null
        : new Lifetime(
            name,
            specification.epsilonPerReport(name),
            specification.permanentPerReport(name),
            await this.#secret(memory),
          );
    const drawn = await randomise(specification, table, positions, this.#draws, coins, life);
    const reports = drawn.map(([view, seed, y], slot) =>
      Report.of({ assigned, slot, round: number, digest, view, seed, y }),
    );
    return reports.map((report) => report.toHex()).join("");
  }

  /** Refuse to repeat what was sent for another user: a second answer would spend ε again. */
  async #checkUser({ name, coins }, sent) {
    const parts = this.#collection.parts.get(name);
    for (const report of sent) {
      const { view, oracle } = await drawnView(
        this.#collection,
        name,
        report.slot % parts.length,
        null,
        coins[report.slot],
      );
      if (report.view !== view || report.seed !== Number(coins[report.slot].seed(oracle.seeds)))
        throw new Failure("the memory holds reports of another user. Nothing was sent. Use one memory per user.");
    }
  }

  /** The row as positions in the domains; null if a value has none. */
  #encoded(table, row) {
    checkRow(table, row);
    try {
      return table.private.map(({ name, domain }) => domain.encode(Object.hasOwn(row, name) ? row[name] : null));
    } catch (problem) {
      // Whatever a value does when it is read: silence would reveal that it is odd.
      const reason = problem instanceof Unplaceable ? problem.reason : WRONG_TYPE;
      this.rejected[reason] = (this.rejected[reason] ?? 0) + 1;
      return null;
    }
  }
}

/** Refuse mistakes in the program: what is not a row, or attributes that the table does not have. */
function checkRow(table, row) {
  if (row === null || typeof row !== "object" || Array.isArray(row))
    throw new InvalidData(`a row of table '${table.name}' is not an object`, `Give ${table.names.join(", ")} by name.`);
  if (!Object.keys(row).every((name) => table.names.includes(name)))
    throw new InvalidData(
      `a row of table '${table.name}' has an unknown attribute`,
      `It has ${table.names.join(", ")}.`,
    );
}

const readReports = (sent) =>
  Array.from({ length: sent.length / (2 * REPORT_BYTES) }, (_, i) => Report.fromHex(sent.slice(64 * i, 64 * (i + 1))));

/** `tau` rows, drawn with replacement from at most `many`, and how many those were. Every draw is made, needed or not. */
async function truncate(table, rows, draws) {
  const left = [...rows],
    used = table.many === null ? 1 : Math.min(rows.length, table.many),
    numbered = new Map(),
    chosen = [];
  for (let count = 0; count < table.tau; count++) {
    const dummy = [];
    for (const { size } of table.domains) dummy.push(await draws.below(BigInt(size)));
    if (table.many === null) return { chosen: [rows[0] ?? dummy.map(Number)], used };
    const number = await draws.secretBelow(used || 1),
      index = await draws.secretBelow(left.length || 1);
    if (used && !numbered.has(number)) numbered.set(number, left.splice(index, 1)[0]);
    chosen.push(used ? numbered.get(number) : dummy.map(Number));
  }
  return { chosen, used };
}

const inOrder = (a, b) => a.map((value, i) => value - b[i]).find((apart) => apart) ?? 0;

/** [view, seed, y] of every report, in the order of their slots. In memoised rounds, `life` is what stays the same. */
export async function randomise(specification, table, rows, draws, coins, life) {
  const ordered = life ? rows.toSorted(inOrder) : rows; // the same rows in another order are chosen alike
  const { chosen, used } = await truncate(table, ordered, life ? life.of("rows") : draws);
  const weight = [BigInt(used), BigInt(table.many ?? 1)],
    parts = specification.parts.get(table.name).length,
    sent = [];
  for (let slot = 0; slot < chosen.length * parts; slot++) {
    const before = life ? life.of(`${slot}`) : draws,
      mine = coins?.[slot],
      row = chosen[Math.floor(slot / parts)];
    const { view, group, levels, oracle } = await drawnView(specification, table.name, slot % parts, before, mine);
    const coordinates = [];
    for (const axis of group.axes) coordinates.push(await axis.coordinate(row, table.domains, weight, before));
    const cell = group.number(levels, coordinates);
    const seeds = mine ? mine.seed : life?.of(`${slot}:seed`).below,
      seed = seeds && Number(await seeds(oracle.seeds));
    const answer = life
      ? life.answer(slot, oracle, cell, seed, draws)
      : drawReport(oracle, specification.epsilonPerReport(table.name), cell, draws, seed);
    sent.push([view, ...(await answer)]);
  }
  return sent;
}

/** The view of a report, by its assigned coins or by two draws. */
async function drawnView(specification, name, part, draws, coins) {
  const parts = specification.parts.get(name),
    groups = parts[part];
  let index = 0,
    drawn = await (coins?.group ?? draws.below)(groups.reduce((sum, { chance }) => sum + BigInt(chance), 0n));
  for (; drawn >= BigInt(groups[index].chance); index++) drawn -= BigInt(groups[index].chance);
  const group = groups[index],
    local = Number(await (coins?.view ?? draws.below)(BigInt(group.views)));
  const earlier = [...parts.slice(0, part).flat(), ...groups.slice(0, index)];
  const levels = group.choice(local),
    view = earlier.reduce((count, { views }) => count + views, local);
  return { view, group, levels, oracle: specification.oracle(name, group.cells(levels)) };
}
