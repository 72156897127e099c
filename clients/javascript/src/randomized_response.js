// Randomized response: say the truth with probability e^ε/(e^ε + k − 1), else one of the others.
import { expBelow, UNIT } from "./exact.js";

/** The probabilities p of the true cell and q of each other, as fractions. */
export function responseLaw(epsilon, k) {
  if (epsilon === Infinity) return { p: [1n, 1n], q: [0n, 1n] };
  const e = expBelow(epsilon),
    whole = e + BigInt(k - 1) * UNIT;
  return { p: [e, whole], q: [UNIT, whole] };
}

/** The cell with probability p, else one of the k − 1 others. Both draws are made, whatever comes out. */
export async function respond(cell, k, p, draws) {
  const keeps = await draws.coin(p),
    other = await draws.below(BigInt(k - 1));
  return keeps ? cell : Number(other) + (Number(other) >= cell ? 1 : 0);
}
