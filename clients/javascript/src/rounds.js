// Rounds of a collection: how often people are asked, and in which rounds they answer.
import { check } from "./errors.js";
import { checkField, fieldsOf, floatOf, integerOf, oneOf } from "./fields.js";
import { scalarOf } from "./scalars.js";

const MOST_ROUNDS = 100_000,
  MOST_BUCKETS = 2 ** 16,
  HOUR_MS = 3_600_000;
const PERIODS = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 168 * HOUR_MS, month: 0 };
const FIELDS = { rotating: ["answers", "cover"], fresh: [], memoised: ["permanent", "changes_are_public"] };

export class Rounds {
  constructor(entry) {
    this.mode = oneOf(entry?.mode, Object.keys(FIELDS));
    this.isMemoised = this.mode === "memoised";
    this.isRotating = this.mode === "rotating";
    const needed = ["count", "every", "mode", ...FIELDS[this.mode]],
      fields = fieldsOf(entry, needed, ["start", ...(this.isMemoised ? ["buckets"] : [])]);
    this.count = integerOf(fields.count, 1, MOST_ROUNDS);
    this.every = oneOf(fields.every, Object.keys(PERIODS));
    const flag = (name) => {
      checkField([undefined, true, false].includes(fields[name]));
      return fields[name];
    };
    [this.cover, this.changesArePublic] = [flag("cover"), flag("changes_are_public")];
    this.answers = this.isRotating ? integerOf(fields.answers, 1, this.count) : 1;
    if (this.isMemoised) this.permanent = floatOf(fields.permanent);
    if (fields.buckets !== undefined) this.buckets = integerOf(fields.buckets, 2, MOST_BUCKETS);
    if (fields.start !== undefined) this.start = scalarOf(fields.start);
    checkField(fields.start === undefined || this.start?.kind === "date");
  }

  /** In how many rounds a person answers, at most. */
  get answered() {
    return this.isRotating ? this.answers : this.count;
  }

  /** Refuse a number that is not of a round that has begun. */
  check(number, nowMs) {
    const isRound = Number.isInteger(number) && number >= 1 && number <= this.count;
    check(isRound, "round", `must be an integer from 1 to ${this.count}`, "Pass its number.");
    const hasBegun = !this.start || nowMs >= this.begins(number);
    check(hasBegun, "round", `${number} has not begun`, "Answer then.");
  }

  /** When a round begins, in milliseconds, if there is a start. The 31st of a shorter month lies in the next. */
  begins(number) {
    const first = new Date(Number(this.start.at[0] / 1000n)),
      period = PERIODS[this.every];
    return period ? +first + (number - 1) * period : first.setUTCMonth(first.getUTCMonth() + number - 1);
  }
}
