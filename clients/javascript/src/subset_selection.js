// Subset selection: report ω of k cells as bits, the true one more often among them than any other.
import { expBelow, isLess, UNIT } from "./exact.js";

/** A report has one bit for every cell, and columns of reports hold signed integers of 64 bits. */
const MOST_CELLS = 63;

/** C(n, i). */
function binomial(n, i) {
  let count = i <= n ? 1n : 0n;
  for (let j = 0; j < i; j++) count = (count * BigInt(n - j)) / BigInt(j + 1);
  return count;
}

/** How many cells a report names: the ω of lowest mean variance; 1 where randomized response is better, or k too large. */
export function subsetSize(epsilon, cells) {
  if (cells > MOST_CELLS || cells < 3) return 1;
  const power = expBelow(epsilon),
    k = BigInt(cells);
  const whole = (size) => size * power + (k - size) * UNIT;
  const meanSpread = (size) => [whole(size) ** 2n, size * (k - size)];
  /** The variance of a cell that nobody holds. */
  const spread = (size) => {
    const other = whole(size) - power;
    return [other * (whole(size) * (k - 1n) - size * other), size * (k - size) ** 2n];
  };
  const least = (k * UNIT) / (power + UNIT) || 1n,
    next = least + 1n,
    best = next < k && isLess(meanSpread(next), meanSpread(least)) ? next : least;
  return isLess(spread(best), spread(1n)) ? Number(best) : 1;
}

/** The probability that a report names the true cell, as a fraction. */
export function subsetChance(epsilon, cells, size) {
  const named = BigInt(size) * expBelow(epsilon);
  return [named, named + BigInt(cells - size) * UNIT];
}

/** The set of `size` of so many cells with this rank, as bits. */
function unranked(rank, size, cells) {
  let mask = 0n;
  for (let cell = cells - 1; cell >= 0 && size; cell--) {
    const before = binomial(cell, size);
    if (rank >= before) [mask, rank, size] = [mask | (1n << BigInt(cell)), rank - before, size - 1];
  }
  return mask;
}

/** The report of a cell. The others are drawn for both answers of the coin, whatever it says. */
export async function drawSubset(cell, cells, size, p, draws) {
  const others = cells - 1,
    isNamed = await draws.coin(p),
    withIt = await draws.below(binomial(others, size - 1)),
    without = await draws.below(binomial(others, size)),
    mask = isNamed ? unranked(withIt, size - 1, others) : unranked(without, size, others),
    place = BigInt(cell),
    below = mask & ((1n << place) - 1n);
  return ((mask - below) << 1n) | ((isNamed ? 1n : 0n) << place) | below;
}
