// The exact law of a whole client: run it once for every outcome of its draws, and add up probabilities.
import { Draws, plus, times } from "../src/exact.js";

const SEEDS = [0n, 2_654_435_769n]; // stand for all: each is as likely as the other, and the promise must hold given each
const uniform = (count) => Array.from({ length: count }, () => [1n, BigInt(count)]);

/** Map from results to probabilities of `run(draws)`. The result is a text. */
export async function lawOf(run) {
  const law = new Map(),
    open = [[]];
  while (open.length) {
    const path = open.pop(),
      taken = [];
    let weight = [1n, 1n];
    const choose = (chances) => {
      const possible = chances.flatMap(([n], outcome) => (n ? [outcome] : []));
      const outcome = taken.length < path.length ? path[taken.length] : possible[0];
      if (taken.length >= path.length) open.push(...possible.slice(1).map((other) => [...taken, other]));
      taken.push(outcome);
      weight = times(weight, chances[outcome]);
      return outcome;
    };
    const result = await run(new EnumeratedDraws(choose));
    law.set(result, plus(law.get(result) ?? [0n, 1n], weight));
  }
  const [n, d] = [...law.values()].reduce(plus);
  if (n !== d) throw new Error("probabilities do not add up to 1");
  return law;
}

/** Decided when somebody looks at it: a draw that is made for nothing opens no paths. */
class Lazy {
  constructor(decide) {
    let value;
    this.valueOf = () => (value ??= decide());
  }
}

/** Exact coins and uniform numbers. `asked` lists all that somebody with a stopwatch could learn about the draws. */
class EnumeratedDraws extends Draws {
  asked = [];

  constructor(choose) {
    super((bound) => {
      this.asked.push(bound);
      if (bound === 1n << 32n) return SEEDS[choose(uniform(SEEDS.length))];
      return new Lazy(() => BigInt(choose(uniform(Number(bound)))));
    });
    this.choose = choose;
  }

  async coin(chance) {
    this.asked.push(["coin", ...chance]);
    return this.choose([[chance[1] - chance[0], chance[1]], chance]) === 1;
  }

  async secretCoin(chance) {
    this.asked.push("128 bits");
    return this.choose([[chance[1] - chance[0], chance[1]], chance]) === 1;
  }

  async secretBelow(count) {
    this.asked.push("128 bits");
    return this.choose(uniform(count));
  }
}

/** The largest ratio of the probabilities of a result under two laws. Every result must be possible under all. */
export function worstRatio(laws) {
  let worst = [1n, 1n];
  for (const result of new Set(laws.flatMap((law) => [...law.keys()]))) {
    const chances = laws.map((law) => {
      if (!law.has(result)) throw new Error("a report is possible for some users only");
      return law.get(result);
    });
    for (const [a, b] of chances)
      for (const [c, d] of chances) if (a * d * worst[1] > worst[0] * c * b) worst = [a * d, b * c];
  }
  return worst;
}
