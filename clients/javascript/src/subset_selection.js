// Subset selection: report ω of k cells as bits, the true one more often among them than any other.
import { expBelow, UNIT } from "./exact.js";

/** A report has one bit for every cell, and columns of reports hold signed integers of 64 bits. */
const MOST_MASKED_CELLS = 63;

/** C(n, i). */
const binomial = (n, i) => (i ? (binomial(n - 1, i - 1) * BigInt(n)) / BigInt(i) : 1n);

/**
 * How many cells a report names, the ω of lowest mean variance, and the chance p that the true one is among them. False
 * where randomized response is better, or a report has too few bits.
 */
export function subsetLaw(epsilon, cells) {
  const power = expBelow(epsilon),
    unit = UNIT * UNIT,
    k = BigInt(cells);
  let size = 1n;
  while (cells <= MOST_MASKED_CELLS && size * (size + 1n) * (power * power - unit) < k * (k - 2n * size - 1n) * unit)
    size++;
  const rest = k - size,
    named = size * power,
    whole = named + rest * UNIT,
    isBetter = size > 1n && power * (whole - UNIT) < (k - 1n) * rest * unit;
  return isBetter && { size: Number(size), p: [named, whole] };
}

/** The report of a cell. The others are drawn for both answers of the coin, whatever it says, as the rank of their set. */
export async function drawSubset({ size, p, outcomes }, cell, draws) {
  const isNamed = await draws.coin(p),
    withIt = await draws.below(binomial(outcomes - 1, size - 1)),
    without = await draws.below(binomial(outcomes - 1, size));
  let rank = isNamed ? withIt : without,
    mask = BigInt(isNamed) << BigInt(cell);
  for (let other = outcomes - 2, left = size - isNamed; left; other--) {
    const before = binomial(other, left);
    if (rank < before) continue;
    mask |= 1n << BigInt(other + (other >= cell));
    left--;
    rank -= before;
  }
  return mask;
}
