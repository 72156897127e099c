// What a specification costs, for a ledger. Memoised rounds cost the worst case over any two lifetimes: enumerated over
// the first rounds; later ones add at most ε_i each.
import { fraction, larger, plus, times } from "./exact.js";

const ENUMERATED_ROUNDS = 4,
  SLACK = 1e-9;
const asFloat = ([n, d]) => Number((n << 80n) / d) / 2 ** 80;

/** What all reports of a user for a table cost, over so many rounds that she answers: a fraction, or null if infinite. */
export function spentOn(specification, name, answered = 1) {
  const reports = [BigInt(specification.reportsPerUser(name)), 1n];
  if (specification.rounds?.mode !== "memoised")
    return times(times(fraction(specification.epsilonPerReport(name)), reports), [BigInt(answered), 1n]);
  const worst = specification.responses(name).map((response) => anyLifetimes(response, answered));
  return worst.includes(null) ? null : times(worst.reduce(larger, [0n, 1n]), reports);
}

/** What all reports of a user in all tables and rounds cost together: a fraction, or null if infinite. */
export function spends(specification) {
  const parts = [...specification.tables.keys()].map((name) =>
    spentOn(specification, name, specification.rounds?.answered ?? 1),
  );
  return parts.includes(null) ? null : parts.reduce(plus);
}

/** A bound for any two lifetimes of so many rounds; null if there is none. */
export function anyLifetimes(response, rounds) {
  if (rounds === 0) return [0n, 1n];
  if (rounds === 1) return fraction(response.epsilon);
  if (!response.q[0]) return null;
  const first = Math.min(rounds, ENUMERATED_ROUNDS),
    rest = times(response.step, [BigInt(rounds - first), 1n]);
  return plus(enumerated(response, first), rest);
}

/** The worst log-ratio over all pairs of lifetimes and all answers, rounded up. Names of outcomes do not matter. */
function enumerated({ kept, p, q, k }, rounds) {
  const chances = [kept.p, kept.q, p, q].map(asFloat);
  let worst = 1;
  for (const answers of patterns(rounds, k)) {
    const outcomes = Math.min(k, Math.max(...answers) + 1 + rounds);
    const taken = Array.from({ length: outcomes }, (_, outcome) =>
      Array.from({ length: 1 << rounds }, (_, rows) =>
        chanceOf(
          outcome,
          answers.filter((_, t) => (rows >> t) & 1),
          k,
          chances,
        ),
      ),
    );
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

/** The largest or smallest chance over all ways to give every round to one outcome. */
function extreme(chances, rounds, best) {
  const whole = (1 << rounds) - 1;
  let reached = new Map([[0, 1]]);
  for (const mine of chances) {
    const following = new Map(reached);
    for (const [done, chance] of reached) {
      const rest = whole & ~done;
      for (let taken = rest; taken; taken = (taken - 1) & rest) {
        const key = done | taken,
          value = chance * mine[taken];
        following.set(key, following.has(key) ? best(following.get(key), value) : value);
      }
    }
    reached = following;
  }
  return reached.get(whole);
}

/** Sequences of answers in which each new answer has the next number. */
function patterns(rounds, k, pattern = []) {
  if (pattern.length === rounds) return [pattern];
  const known = Math.min(Math.max(-1, ...pattern) + 2, k);
  return Array.from({ length: known }, (_, answer) => patterns(rounds, k, [...pattern, answer])).flat();
}
