// The frequency oracles of views: nothing where there is one cell, randomized response over few cells, subset selection
// over some dozens where the specification allows it, local hashing over many. Every view takes the one of lowest variance.
import { drawSubset, subsetLaw } from "./subset_selection.js";
import { exp } from "./exact.js";
import { bucket } from "./hashing.js";
import { respond, responseLaw } from "./randomized_response.js";
import { NUMBERED_CELLS } from "./views.js";

const LARGEST_G = 2 ** 16,
  LARGEST_G_FROM = 11.090339630053647; // ln(2^16 − 1)
const SEEDS = 1n << 32n;

/** The number of buckets of local hashing: e^ε + 1, rounded to the even one of two that are equally near. */
function bucketsFor(epsilon) {
  if (epsilon >= LARGEST_G_FROM) return LARGEST_G;
  const exact = exp(epsilon) + 1,
    low = Math.floor(exact);
  return exact - low > 0.5 || (exact - low === 0.5 && low % 2) ? low + 1 : low;
}

/** How a view of so many cells answers, by what its specification allows: over how many outcomes, and whether it hashes
 * cells to them, or names a `size` of cells. In memoised rounds it names one, and they may give the `buckets`. */
export function oracleFor(epsilon, cells, choice, rounds) {
  if (cells === 1) return { outcomes: 1, hashes: false, seeds: 1n };
  const buckets = rounds?.buckets,
    subset = choice === "subset" && !rounds?.isMemoised && subsetLaw(epsilon, cells);
  const isFew = choice !== "olh" && cells < NUMBERED_CELLS && cells <= (buckets ?? 3 * exp(epsilon) + 2);
  return isFew || subset
    ? { outcomes: cells, hashes: false, seeds: 1n, ...subset }
    : { outcomes: buckets ?? bucketsFor(epsilon), hashes: true, seeds: SEEDS };
}

/** The outcome that is the truth: the cell, or its bucket under the seed. */
export const outcomeOf = (oracle, cell, seed) => (oracle.hashes ? bucket(seed, cell, oracle.outcomes) : cell);

/** [seed, y] of a cell. The seed is the given one, or else drawn. */
export async function drawReport(oracle, epsilon, cell, draws, seed) {
  if (oracle.outcomes === 1) return [0, 0];
  const chosen = oracle.hashes ? (seed ?? Number(await draws.below(SEEDS))) : 0;
  if (oracle.size) return [chosen, await drawSubset(oracle, cell, draws)];
  const { p } = responseLaw(epsilon, oracle.outcomes);
  return [chosen, await respond(outcomeOf(oracle, cell, chosen), oracle.outcomes, p, draws)];
}
