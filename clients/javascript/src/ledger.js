// The ledger of one person: what was spent, on what, and when. A charge is safe before what it pays for leaves. Refusing
// is a function of public settings and of earlier charges, never of data.
import { spends, spentOn } from "./costs.js";
import { BudgetExceeded, check, Failure } from "./errors.js";
import { fraction, isLess, minus, plus } from "./exact.js";
import { nameOfDraw } from "./memory.js";
import { randomHex } from "./randomness.js";
import { alone, checkStore, readContent, writeContent } from "./stores.js";

const FORMAT = "ledger",
  REPAIR = "Restore it: a new one would count from zero.",
  CLOCK_TOLERANCE_MS = 60_000;
const toText = ([n, d]) => `${n}/${d}`;
const fromText = (text) => text.split("/").map(BigInt);
const toFloat = ([n, d]) => Number((n * 1_000_000n + d / 2n) / d) / 1e6; // for people

const checkAmount = (amount) =>
  check(
    typeof amount === "number" && amount > 0 && amount < Infinity,
    "limit or largest",
    "must be a finite number above 0",
    "Use 8.",
  );

export class Ledger {
  #store;
  #limit;
  #largest;
  #pins;
  #clock;

  /** The limit is needed to start a ledger. It caps all charges together, `largest` any one collection; with `pins`, no other specification is answered. */
  constructor(store, { limit = null, largest = null, pins = [], clock = Date.now } = {}) {
    this.#store = checkStore(store, "the store of the ledger");
    for (const amount of [limit, largest].filter((amount) => amount !== null)) checkAmount(amount);
    this.#pins = pins.map((pin) => pin?.sha256 ?? pin);
    const isHash = (pin) => typeof pin === "string" && /^[0-9a-f]{64}$/.test(pin);
    check(this.#pins.every(isHash), "pins", "must be collections or their hashes", "Use collection.sha256.");
    [this.#limit, this.#largest, this.#clock] = [limit, largest, clock];
  }

  /** Whether the ledger lies in this store: a memory needs another one. */
  isKeptIn(store) {
    return this.#store === store;
  }

  /**
   * The answer, once it is charged: the ledger is asked before a draw, and has the charge before this returns.
   * `chargeFor(account)` says what it costs, `draw()` gives the answer from memory or draws and remembers it.
   */
  charged(memory, key, specification, chargeFor, draw) {
    return this.account(async (account) => {
      account.checkPinned(specification);
      const charge = { specification, group: "", ...chargeFor(account) };
      if (memory.get(key) === undefined) account.admit(charge);
      const drawn = await nameOfDraw(memory, key),
        sent = await draw();
      await account.charge({ ...charge, key: drawn });
      return sent;
    });
  }

  /** Every charge, in the order in which they were made. */
  async entries() {
    return this.account(({ book }) => book.entries.map((entry) => ({ ...entry })));
  }

  /** What was spent and what is left, as floats. Sums are exact inside. */
  async balance() {
    return this.account((account) => {
      const [spent, limit] = [account.spent, account.limit];
      return { spent: toFloat(spent), left: toFloat(minus(limit, spent)), limit: toFloat(limit) };
    });
  }

  /** Set a higher limit, which the ledger notes. */
  async raiseLimit(limit) {
    checkAmount(limit);
    await this.account(async (account) => {
      check(
        !isLess(fraction(limit), account.limit),
        "limit",
        "is below the limit of this ledger",
        "A limit can only be raised.",
      );
      await account.append({
        what: "a higher limit",
        epsilon: "0/1",
        specification: "",
        group: "",
        key: randomHex(16),
        limit: toText(fraction(limit)),
      });
    });
    this.#limit = limit;
  }

  /** Run work that is alone with the ledger: ask, draw, remember and charge before anybody else does. */
  account(work) {
    return alone(this.#store, async () => {
      const kept = await readContent(this.#store, FORMAT, REPAIR);
      check(
        kept || this.#limit !== null,
        "limit",
        "is missing, and there is no ledger yet",
        "Give a limit to start it.",
      );
      const [limit, largest] = [this.#limit, this.#largest].map((amount) =>
        amount === null ? null : toText(fraction(amount)),
      );
      const book = kept ?? { limit, largest, entries: [] };
      const account = new Account(book, this.#pins, this.#clock, (content) =>
        writeContent(this.#store, FORMAT, content),
      );
      if (!kept) await account.save();
      const isSame = [null, toText(account.limit)].includes(limit) && [null, book.largest].includes(largest);
      check(
        isSame,
        "limit or largest",
        "differs from what this ledger was started with",
        "Give the same; raiseLimit raises a limit.",
      );
      return work(account);
    });
  }
}

/** A ledger that nobody else is looking at: what may be spent, and what is. */
class Account {
  #pins;
  #clock;
  #write;

  constructor(book, pins, clock, write) {
    this.book = book;
    [this.#pins, this.#clock, this.#write] = [pins, clock, write];
  }

  get limit() {
    return fromText(this.book.entries.findLast(({ limit }) => limit)?.limit ?? this.book.limit);
  }

  get spent() {
    return this.book.entries.map(({ epsilon }) => fromText(epsilon)).reduce(plus, [0n, 1n]);
  }

  save() {
    return this.#write(this.book);
  }

  checkPinned(specification) {
    const isFine = !this.#pins.length || this.#pins.includes(specification);
    check(
      isFine,
      `the specification ${specification.slice(0, 16)}`,
      "is not one of those that this ledger pins",
      "Pin its hash if you agree.",
    );
  }

  /** What the next answer about a table costs. Answers of one group cost together what so many rounds cost. */
  costOf(collection, table, group) {
    const known = group ? this.book.entries.filter((entry) => entry.group === group).length : 0;
    const after = spentOn(collection, table, known + 1),
      before = known ? spentOn(collection, table, known) : [0n, 1n];
    const epsilon = after === null || before === null ? null : minus(after, before);
    return { epsilon, group, lifetime: spends(collection) };
  }

  /** Refuse what would exceed a limit, before anything is drawn: at first with all that the specification may ever cost. */
  admit({ what, epsilon, specification, lifetime }) {
    this.#checkClock();
    const refuse = (asked, left, limit) => {
      throw new BudgetExceeded(what, asked === null ? "∞" : toFloat(asked), toFloat(left), limit);
    };
    const exceeds = (asked, left) => asked === null || isLess(left, asked);
    const largest = this.book.largest && fromText(this.book.largest),
      left = minus(this.limit, this.spent);
    if (largest && exceeds(lifetime, largest)) refuse(lifetime, largest, "the most that one collection may cost");
    const isKnown = this.book.entries.some((entry) => entry.specification === specification);
    const asked = isKnown ? epsilon : lifetime;
    if (exceeds(asked, left)) refuse(asked, left, `what is left of ${toFloat(this.limit)}`);
  }

  /** Write the charge down, unless this draw was charged before. */
  async charge({ what, epsilon, specification, group, key }) {
    if (this.book.entries.some((entry) => entry.key === key)) return;
    this.admit({ what, epsilon, specification, lifetime: epsilon });
    await this.append({ what, epsilon: toText(epsilon), specification, group, key });
  }

  async append(entry) {
    const last = this.book.entries.at(-1),
      now = Math.max(this.#clock(), last ? Date.parse(last.time) : 0);
    this.book.entries.push({ time: new Date(now).toISOString(), ...entry });
    await this.save();
  }

  #checkClock() {
    const last = this.book.entries.at(-1),
      now = this.#clock();
    if (!Number.isFinite(now) || (last && now < Date.parse(last.time) - CLOCK_TOLERANCE_MS))
      throw new Failure("the clock was set back. Nothing was sent or charged. Set it right.");
  }
}
