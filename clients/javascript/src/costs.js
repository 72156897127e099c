// What a specification costs, for a ledger. Memoised rounds cost the worst case over any two lifetimes: enumerated over
// the first rounds; later ones add at most ε_i each.
import { fraction, larger, minus, plus, times } from "./exact.js";

const ENUMERATED_ROUNDS = 4,
  SLACK = 1e-9,
  NOTHING = [0n, 1n];
const asFloat = ([n, d]) => Number((n << 80n) / d) / 2 ** 80;
const whole = (n) => [BigInt(n), 1n];

/** What all reports of a user for a table cost, over so many rounds that she answers: a fraction, or null if infinite. */
function spentOn(specification, name, answered) {
  const reports = whole(specification.reportsPerUser(name));
  if (!specification.rounds?.isMemoised)
    return times(times(fraction(specification.epsilonPerReport(name)), reports), whole(answered));
  const worst = specification.responses(name).map((response) => anyLifetimes(response, answered));
  return worst.includes(null) ? null : times(worst.reduce(larger, NOTHING), reports);
}

/** What the next answer for a table adds, after so many others. */
export function nextCost(specification, name, known) {
  const [after, before] = [known + 1, known].map((answered) => spentOn(specification, name, answered));
  return after && minus(after, before);
}

/** What all reports of a user in all tables and rounds cost together: a fraction, or null if infinite. */
export function spends(specification) {
  const parts = specification.tableNames.map((name) =>
    spentOn(specification, name, specification.rounds?.answered ?? 1),
  );
  return parts.includes(null) ? null : parts.reduce(plus);
}

/** A bound for any two lifetimes of so many rounds; null if there is none. */
export function anyLifetimes(response, rounds) {
  if (rounds === 0) return NOTHING;
  if (rounds === 1) return fraction(response.epsilon);
  if (!response.q[0]) return null;
  const first = Math.min(rounds, ENUMERATED_ROUNDS),
    rest = times(response.step, whole(rounds - first));
  return plus(enumerated(response, first), rest);
}

/** The worst log-ratio over all pairs of lifetimes and all answers, rounded up. Names of outcomes do not matter. */
function enumerated({ kept, p, q, k }, rounds) {
  const chances = [kept.p, kept.q, p, q].map(asFloat);
  let worst = 1;
  for (const answers of patterns(rounds, k)) {
    const outcomes = Math.min(k, Math.max(...answers) + 1 + rounds);
    const taken = Array.from({ length: outcomes }, (_, outcome) => (rows) => {
      const mine = answers.filter((_, t) => (rows >> t) & 1);
      return chanceOf(outcome, mine, k, chances);
    });
    worst = Math.max(worst, extreme(taken, rounds, Math.max) / extreme(taken, rounds, Math.min));
  }
  return fraction(Math.log(worst) + SLACK);
}

/** The chance of answers that come from one permanent answer. */
function chanceOf(outcome, answers, k, [keptP, keptQ, p, q]) {
  const named = new Set([...answers, outcome]);
  let total = (k - named.size) * keptQ * q ** answers.length;
  for (const kept of named) {
    const repeats = answers.filter((answer) => answer === kept).length;
    total += (kept === outcome ? keptP : keptQ) * p ** repeats * q ** (answers.length - repeats);
  }
  return total;
}

/** The largest or smallest chance over all ways to give every round to one outcome. Sets of rounds are bit masks. */
function extreme(chances, rounds, best) {
  let reached = [1, ...Array((1 << rounds) - 1).fill(best())];
  for (const chance of chances)
    reached = reached.map((found, rows) => {
      for (let taken = rows; taken; taken = (taken - 1) & rows)
        found = best(found, reached[rows ^ taken] * chance(taken));
      return found;
    });
  return reached.at(-1);
}

/** Sequences of answers in which each new answer has the next number. */
function patterns(rounds, k, pattern = []) {
  if (pattern.length === rounds) return [pattern];
  const known = Math.min(Math.max(-1, ...pattern) + 2, k);
  return Array.from({ length: known }, (_, answer) => patterns(rounds, k, [...pattern, answer])).flat();
}
