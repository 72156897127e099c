// The mechanisms of streams: square wave for first reports; hybrid, piecewise or rounding for numbers in [0, θ].
import { expBelow, fraction, minus, over, power, POWER_UNIT, times, UNIT } from "./exact.js";
import { respond, responseLaw } from "./randomized_response.js";
import { slide, windowFor } from "./sliding_window.js";

const SWITCH = 0.61,
  BITS = 2n;

/** The square wave of a position in [0, 1]. */
export function wave(position, epsilon, grid, draws) {
  const e = [power(epsilon), POWER_UNIT],
    exact = fraction(epsilon),
    one = [1n, 1n];
  // 2b = (ε·e^ε − e^ε + 1)/(e^ε(e^ε − 1 − ε))
  const share = over(minus(times(exact, e), minus(e, one)), times(e, minus(minus(e, one), exact)));
  const { size, width } = windowFor(share, grid);
  const cell = Math.min(Math.floor(position * Number(size)), Number(size) - 1);
  return slide(BigInt(cell), size, width, epsilon, draws);
}

/** One bit: the value rounded to an end, through randomized response. */
export async function rounding([n, d], epsilon, grid, draws) {
  const bit = Number(await draws.secretCoin([n, d]));
  return BigInt(await respond(bit, 2, responseLaw(epsilon, 2).p, draws));
}

/** A point of a grid that reaches beyond the range on both sides. */
export async function piecewise([n, d], epsilon, grid, draws) {
  const { size, width } = windowFor([UNIT, expBelow(epsilon / 2)], grid);
  const low = (n * size) / d,
    point = low < size - 1n ? low : size - 1n;
  const up = await draws.secretCoin([n * size - point * d, d]);
  return slide(point + (up ? 1n : 0n), size + 1n, width, epsilon, draws);
}

/** The piecewise mechanism or rounding, chosen without looking at the value. */
export async function hybrid(share, epsilon, grid, draws) {
  const half = expBelow(epsilon / 2);
  const isPiecewise = await draws.coin(epsilon > SWITCH ? [half - UNIT, half] : [0n, 1n]);
  return isPiecewise ? BITS + (await piecewise(share, epsilon, grid, draws)) : rounding(share, epsilon, grid, draws);
}
