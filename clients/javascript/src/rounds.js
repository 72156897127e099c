// Rounds of a collection: how often people are asked, and in which rounds they answer.
import { check } from "./errors.js";
import { checkField, fieldsOf, floatOf, integerOf } from "./fields.js";
import { momentOf } from "./scalars.js";

const MOST_ROUNDS = 100_000,
  MOST_BUCKETS = 2 ** 16,
  HOUR_MS = 3_600_000;
const PERIODS = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 168 * HOUR_MS, month: null };
const FIELDS = { rotating: ["answers", "cover"], fresh: [], memoised: ["permanent", "changes_are_public"] };

export class Rounds {
  constructor(entry) {
    const mode = entry?.mode,
      isKnown = typeof mode === "string" && Object.hasOwn(FIELDS, mode);
    checkField(isKnown, "rounds: mode");
    const fields = fieldsOf(
      "rounds",
      entry,
      ["count", "every", "mode", ...FIELDS[mode]],
      ["start", ...(mode === "memoised" ? ["buckets"] : [])],
    );
    this.mode = mode;
    this.count = integerOf("rounds: count", fields.count, 1, MOST_ROUNDS);
    this.every = fields.every;
    checkField(typeof this.every === "string" && Object.hasOwn(PERIODS, this.every), "rounds: every");
    const flag = (name) => {
      checkField(fields[name] === undefined || typeof fields[name] === "boolean", `rounds: ${name}`);
      return fields[name] === true;
    };
    [this.cover, this.changesArePublic] = [flag("cover"), flag("changes_are_public")];
    this.answers = mode === "rotating" ? integerOf("rounds: answers", fields.answers, 1, this.count) : 1;
    this.permanent = mode === "memoised" ? floatOf("rounds: permanent", fields.permanent) : null;
    this.buckets = fields.buckets === undefined ? null : integerOf("rounds: buckets", fields.buckets, 2, MOST_BUCKETS);
    this.start = fields.start === undefined ? null : momentOf(fields.start);
    checkField(fields.start === undefined || this.start?.kind === "date", "rounds: start");
  }

  /** In how many rounds a person answers, at most. */
  get answered() {
    return this.mode === "rotating" ? this.answers : this.count;
  }

  /** Refuse a number that is not of a round that has begun. */
  check(number, nowMs) {
    const isRound = Number.isInteger(number) && number >= 1 && number <= this.count;
    check(isRound, "round", `must be an integer from 1 to ${this.count}`, "Rounds are numbered from 1 on.");
    const hasBegun = !this.start || nowMs >= this.begins(number);
    check(hasBegun, "round", `${number} has not begun`, "Answer when it has, or set the clock right.");
  }

  /** When a round begins, in milliseconds, if there is a start. The 31st of a shorter month lies in the next. */
  begins(number) {
    const first = new Date(Number(this.start.at / 1000n));
    if (this.every !== "month") return first.getTime() + (number - 1) * PERIODS[this.every];
    return first.setUTCMonth(first.getUTCMonth() + number - 1);
  }
}
