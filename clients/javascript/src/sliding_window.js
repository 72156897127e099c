// The sliding window: the one law behind the piecewise and the square-wave mechanism, on integers.
//
// Input i of {0, …, inputs − 1} is reported as one of inputs + width − 1 outputs. The `width` outputs from i on are
// each e^ε times as likely as any other.
import { expBelow, rounded, UNIT } from "./exact.js";

const COARSEST_GRID = 1n << 16n,
  FINEST_GRID = 1n << 30n,
  ENOUGH_WIDTH = 2048n;

/** The grid on which a window that covers this share of it spans enough outputs, unless it is given; and its width. */
export function windowFor(share, grid) {
  let size = grid === null ? COARSEST_GRID : BigInt(grid);
  while (grid === null && size < FINEST_GRID && size * share[0] < ENOUGH_WIDTH * share[1]) size *= 2n;
  const width = rounded([size * share[0], share[1]]);
  return { size, width: width || 1n };
}

/** One report. All three draws are made, whatever comes out. */
export async function slide(index, inputs, width, epsilon, draws) {
  const e = expBelow(epsilon),
    inside = [e * width, (inputs + width - 1n) * UNIT + (e - UNIT) * width];
  const keeps = await draws.coin(inside),
    near = await draws.below(width),
    other = await draws.below(inputs - 1n);
  return keeps ? index + BigInt(near) : BigInt(other) + (BigInt(other) >= index ? width : 0n);
}
