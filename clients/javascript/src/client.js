// The client on one device: truncate, round, randomise, remember.
//
//     rows ── truncation ──▶ tau rows with a weight ── per part ──▶ view ── rounding ──▶ cell ── oracle ──▶ report
//
// Number, size and order of the reports follow from the specification. How many random numbers are drawn, and below
// which bounds, follows from the specification and the views: it is the same for every row, for any number of rows, and
// for every answer. Nothing leaves before the memory holds it and, where there is a ledger, before it is charged.
import { Unplaceable } from "./attributes.js";
import { assignedCoins, turnsOf } from "./coins.js";
import { check, Failure, InvalidData } from "./errors.js";
import { Draws } from "./exact.js";
import { isObject } from "./fields.js";
import { Lifetime } from "./lifetimes.js";
import { withMemory } from "./memory.js";
import { drawReport } from "./oracles.js";
import { fromHex, randbelow as secureRandbelow, sha256Hex, wordAt } from "./randomness.js";
import { checkUser, COVER, Report } from "./report.js";
import { checkStore } from "./stores.js";

const SECRET_ROOM = 1n << 256n;

export class Client {
  #memory;
  #ledger;
  #draws;
  #clock;

  /** `user` is the id under which reports are sent; where coins are assigned, it decides views and seeds. */
  constructor(collection, { memory, user = null, ledger = null, randbelow = secureRandbelow, clock = Date.now } = {}) {
    this.#memory = checkStore(memory, "memory", ledger);
    if (user !== null || collection.assigned) checkUser(user);
    [this.#ledger, this.#draws, this.#clock] = [ledger, Draws.from(randbelow), clock];
    /** How many rows had values without a position, by reason. It stays on the device. */
    this.rejected = {};
    Object.defineProperties(this, { collection: { value: collection }, user: { value: user } });
  }

  /** The report for a table that takes one report per user; null in a round that is not hers. */
  async report(table, row, round = null) {
    const isSingle = this.collection.reportsPerUser(table) === 1;
    check(isSingle, `table '${table}'`, "takes several reports per user", "Use client.reports.");
    return (await this.reports(table, [row], round))[0] ?? null;
  }

  /** All reports of a user for a table: always the same number, whatever the rows are. Asked again, the same bytes. */
  async reports(name, rows, round = null) {
    const { collection, user } = this,
      { rounds, assigned, sha256 } = collection,
      table = collection.table(name),
      slots = [...Array(collection.reportsPerUser(name)).keys()];
    check(rounds || round === null, "round", "is given, and this collection has no rounds", "Leave it out.");
    rounds?.check(round, this.#clock());
    check(Array.isArray(rows), "rows", "must be a list", "Pass a list of objects.");
    if (table.many === null && rows.length !== 1)
      throw new InvalidData(`table '${name}' takes exactly one row per user`, "Pass that row.");
    const number = round ?? 0,
      digest = await collection.digest(name),
      tag = wordAt(digest, 0);
    const packed = ([view, seed, y], slot) =>
      Report.of({ isAssigned: assigned, slot, round: number, tag, view, seed, y: BigInt(y) });

    return withMemory(this.#memory, async (memory) => {
      const key = `${sha256}:${name}${number ? `:${number}` : ""}`,
        needsSecret = rounds?.isMemoised || (rounds?.isRotating && !assigned),
        secret = needsSecret ? await this.#secret(memory) : null;
      if (rounds?.isRotating && !(await turnsOf(collection, user, secret)).has(number))
        return rounds.cover ? slots.map((slot) => packed([0, 0, COVER], slot)) : [];
      const life = rounds?.isMemoised ? new Lifetime(collection, name, secret) : null,
        drawCoins = (slot) => assignedCoins(collection, digest, user, slot, number),
        coins = assigned ? await Promise.all(slots.map(drawCoins)) : null;
      /** What was sent, from memory; drawn and remembered the first time. */
      const answer = async () => {
        const sent = memory.get(key);
        if (sent !== undefined && coins) await checkSender(collection, name, coins, reportsOf(sent));
        if (sent !== undefined) return sent;
        const positions = rows.map((row) => this.#encoded(table, row)).filter((codes) => codes);
        const drawn = await randomise(collection, table, positions, this.#draws, coins, life);
        return memory.set(key, drawn.map((fields, slot) => packed(fields, slot).toHex()).join(""));
      };
      if (!this.#ledger) return reportsOf(await answer());
      const charge = {
        what: `collection ${collection.name ?? sha256.slice(0, 8)}, table '${name}'`,
        specification: sha256,
        group: life ? await sha256Hex(`${sha256}:${name}\0`, secret) : "",
        collection,
        table: name,
      };
      return reportsOf(await this.#ledger.charged(memory, key, charge, answer));
    });
  }

  /** What everything is drawn from that must come out the same in every round. It is kept before it is used. */
  async #secret(memory) {
    const key = `${this.collection.sha256}:life`,
      digits = async () => (await this.#draws.below(SECRET_ROOM)).toString(16).padStart(64, "0");
    return fromHex(memory.get(key) ?? (await memory.set(key, await digits())));
  }

  /** The row as positions in the domains; null if a value has none. */
  #encoded(table, row) {
    const known = table.names.join(", ");
    if (!isObject(row))
      throw new InvalidData(`a row of table '${table.name}' is not an object`, `Give ${known} by name.`);
    if (!Object.keys(row).every((name) => table.names.includes(name)))
      throw new InvalidData(`a row of table '${table.name}' has an unknown attribute`, `It has ${known}.`);
    try {
      return table.private.map(({ name, domain }) => domain.encode(Object.hasOwn(row, name) ? row[name] : null));
    } catch (problem) {
      // Whatever a value does when it is read: silence would reveal that it is odd.
      const reason = problem instanceof Unplaceable ? problem.message : "of the wrong type";
      this.rejected[reason] = (this.rejected[reason] ?? 0) + 1;
      return null;
    }
  }
}

const reportsOf = (sent) => sent.match(/.{64}/g).map((digits) => Report.fromHex(digits));

/** Refuse to repeat what was sent for another user: a second answer would spend ε again. */
async function checkSender(collection, name, coins, reports) {
  const parts = collection.parts.get(name).length;
  for (const { slot, view, seed } of reports) {
    const drawn = await drawnView(collection, name, slot % parts, null, coins[slot]);
    if (view !== drawn.view || seed !== Number(coins[slot].seed(drawn.oracle.seeds)))
      throw new Failure("the memory holds reports of another user. Nothing was sent. Use one memory per user.");
  }
}

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
  const weight = [used, table.many ?? 1],
    parts = specification.parts.get(table.name).length,
    sent = [];
  for (let slot = 0; slot < chosen.length * parts; slot++) {
    const before = life ? life.of(`${slot}`) : draws,
      mine = coins?.[slot],
      row = chosen[Math.floor(slot / parts)];
    const { view, group, levels, oracle } = await drawnView(specification, table.name, slot % parts, before, mine);
    const coordinates = [];
    for (const axis of group.axes) coordinates.push(await axis.coordinate(row, weight, before));
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
  const groups = specification.parts.get(name)[part],
    total = groups.reduce((sum, { chance }) => sum + chance, 0);
  let drawn = Number(await (coins?.group ?? draws.below)(BigInt(total)));
  const group = groups.find(({ chance }) => (drawn -= chance) < 0),
    local = Number(await (coins?.view ?? draws.below)(BigInt(group.views))),
    levels = group.choice(local);
  return { view: group.firstView + local, group, levels, oracle: specification.oracle(name, group.cells(levels)) };
}
