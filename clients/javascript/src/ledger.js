// The ledger of one person: what was spent, on what, and when. A charge is safe before what it pays for leaves. Refusing
// is a function of public settings and of earlier charges, never of data.
import { nextCost, spends } from "./costs.js";
import { BudgetExceeded, check, Failure } from "./errors.js";
import { fraction, isLess, minus, plus } from "./exact.js";
import { nameOfDraw } from "./memory.js";
import { randomHex } from "./randomness.js";
import { alone, checkStore, readContent, writeContent } from "./stores.js";

const FORMAT = "ledger",
  REPAIR = "Restore it: a new one would count from zero.",
  CLOCK_TOLERANCE_MS = 60_000,
  END_OF_DATES_MS = 253_402_300_800_000; // the year 10,000
const toText = ([n, d]) => `${n}/${d}`;
const fromText = (text) => text.split("/").map(BigInt);
const toFloat = ([n, d]) => Number((n * 1_000_000n + d / 2n) / d) / 1e6; // for people

/** A limit as it is kept; null if none is given. */
function kept(amount) {
  if (amount === null) return null;
  const isFine = typeof amount === "number" && amount > 0 && amount < Infinity;
  check(isFine, "limit or largest", "must be a finite number above 0", "Use 8.");
  return toText(fraction(amount));
}

// What a book of charges says -----------------------------------------------------------------------------------------

const limitOf = (book) => book.entries.findLast(({ limit }) => limit)?.limit ?? book.limit;
const spentIn = (book) => book.entries.map(({ epsilon }) => fromText(epsilon)).reduce(plus, [0n, 1n]);
const lastTime = (book) => Date.parse(book.entries.at(-1)?.time ?? "1970");

/** Refuse what would exceed a limit, before anything is drawn: at first with all that the specification may ever cost. */
function checkAffordable(book, { what, epsilon, specification, lifetime }) {
  const within = (asked, left, limit) => {
    if (asked === null || isLess(left, asked))
      throw new BudgetExceeded(what, asked === null ? "∞" : toFloat(asked), toFloat(left), limit);
  };
  if (book.largest) within(lifetime, fromText(book.largest), "the most that one collection may cost");
  const limit = fromText(limitOf(book)),
    isKnown = book.entries.some((entry) => entry.specification === specification);
  within(isKnown ? epsilon : lifetime, minus(limit, spentIn(book)), `what is left of ${toFloat(limit)}`);
}

export class Ledger {
  #store;
  #limit;
  #largest;
  #pins;
  #clock;

  /** The limit is needed to start a ledger. It caps all charges together, `largest` any one collection; with `pins`, no other specification is answered. */
  constructor(store, { limit = null, largest = null, pins = [], clock = Date.now } = {}) {
    this.#store = checkStore(store, "the store of the ledger");
    [this.#limit, this.#largest, this.#clock] = [kept(limit), kept(largest), clock];
    this.#pins = pins.map((pin) => pin?.sha256 ?? pin);
    const isHash = (pin) => typeof pin === "string" && /^[0-9a-f]{64}$/.test(pin);
    check(this.#pins.every(isHash), "pins", "must be collections or their hashes", "Use collection.sha256.");
  }

  /** Whether the ledger lies in this store: a memory needs another one. */
  isKeptIn(store) {
    return this.#store === store;
  }

  /**
   * The answer, once it is charged: the ledger is asked before a draw, and has the charge before this returns.
   * It costs `epsilon`, or what the next answer for a table of a collection adds: answers of one `group` cost together
   * what so many rounds cost. `draw()` gives the answer from memory, or draws and remembers it.
   */
  charged(memory, key, { what, specification, group = "", collection, table, ...given }, draw) {
    return this.#opened(async (book) => {
      const isPinned = !this.#pins.length || this.#pins.includes(specification);
      const name = `the specification ${specification.slice(0, 16)}`;
      check(isPinned, name, "is not one of those that this ledger pins", "Pin its hash if you agree.");
      const known = book.entries.filter((entry) => group && entry.group === group).length,
        epsilon = given.epsilon ?? nextCost(collection, table, known),
        charge = { what, epsilon, specification };
      if (memory.get(key) === undefined)
        this.#admit(book, { ...charge, lifetime: given.epsilon ?? spends(collection) });
      const drawn = await nameOfDraw(memory, key),
        sent = await draw();
      if (!book.entries.some((entry) => entry.key === drawn)) {
        this.#admit(book, { ...charge, lifetime: epsilon });
        await this.#append(book, { ...charge, epsilon: toText(epsilon), group, key: drawn });
      }
      return sent;
    });
  }

  /** Every charge, in the order in which they were made. */
  entries() {
    return this.#opened((book) => book.entries);
  }

  /** What was spent and what is left, as floats. Sums are exact inside. */
  balance() {
    return this.#opened((book) => {
      const [spent, limit] = [spentIn(book), fromText(limitOf(book))];
      return { spent: toFloat(spent), left: toFloat(minus(limit, spent)), limit: toFloat(limit) };
    });
  }

  /** Set a higher limit, which the ledger notes. */
  async raiseLimit(amount) {
    const limit = kept(amount);
    await this.#opened(async (book) => {
      const isLower = isLess(fromText(limit), fromText(limitOf(book)));
      check(!isLower, "limit", "is below the limit of this ledger", "A limit can only be raised.");
      const note = { what: "a higher limit", epsilon: "0/1", specification: "", group: "" };
      await this.#append(book, { ...note, key: randomHex(16), limit });
    });
    this.#limit = limit;
  }

  /** Run work that is alone with the book: ask, draw, remember and charge before anybody else does. */
  #opened(work) {
    return alone(this.#store, async () => {
      const known = await readContent(this.#store, FORMAT, REPAIR),
        book = known ?? { limit: this.#limit, largest: this.#largest, entries: [] };
      check(book.limit, "limit", "is missing, and there is no ledger yet", "Give a limit.");
      const isSame = [null, limitOf(book)].includes(this.#limit) && [null, book.largest].includes(this.#largest);
      const problem = "differs from what this ledger was started with";
      check(isSame, "limit or largest", problem, "Use raiseLimit.");
      if (!known) await writeContent(this.#store, FORMAT, book);
      return work(book);
    });
  }

  #admit(book, charge) {
    const now = this.#clock();
    if (!(now >= lastTime(book) - CLOCK_TOLERANCE_MS && now < END_OF_DATES_MS))
      throw new Failure("the clock was set back. Nothing was sent or charged. Set it right.");
    checkAffordable(book, charge);
  }

  async #append(book, entry) {
    const now = Math.max(this.#clock(), lastTime(book));
    book.entries.push({ time: new Date(now).toISOString(), ...entry });
    await writeContent(this.#store, FORMAT, book);
  }
}
