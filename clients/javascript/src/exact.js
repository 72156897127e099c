// Exact numbers: fractions of BigInt, e^x from below, and coins that compare random digits with those of a probability.
//
// A fraction is a pair [numerator, denominator] with a positive denominator. Some draws come from SHA-256, which is
// asynchronous in browsers, so all draws are awaited.
import { check } from "./errors.js";

export const UNIT = 1n << 64n;
const SECRET = 1n << 128n;
const POWER_BITS = 256n;
export const POWER_UNIT = 1n << POWER_BITS;

// Fractions ----------------------------------------------------------------------------------------------------------

/** A float as an exact fraction. */
export function fraction(x) {
  let denominator = 1n;
  for (; !Number.isInteger(x); x *= 2) denominator *= 2n;
  return [BigInt(x), denominator];
}

export const plus = ([a, b], [c, d]) => reduced(a * d + c * b, b * d);
export const minus = (x, [c, d]) => plus(x, [-c, d]);
export const times = ([a, b], [c, d]) => reduced(a * c, b * d);
export const over = ([a, b], [c, d]) => (c < 0n ? reduced(-a * d, -b * c) : reduced(a * d, b * c));
/** Whether the first fraction is below the second. */
export const isLess = ([a, b], [c, d]) => a * d < c * b;
export const larger = (x, y) => (isLess(x, y) ? y : x);

export const abs = (n) => (n < 0n ? -n : n);

/** A fraction in lowest terms. */
export function reduced(n, d) {
  let [a, b] = [abs(n), d];
  while (b) [a, b] = [b, a % b];
  return a > 1n ? [n / a, d / a] : [n, d];
}

export const floorDivision = (a, b) => a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n);

/** The nearest integer, and the even one of two that are equally near. */
export function rounded([n, d]) {
  const low = floorDivision(n, d),
    twice = 2n * (n - low * d);
  return twice > d || (twice === d && low % 2n) ? low + 1n : low;
}

const bitLength = (n) => n.toString(2).length;

/** The largest float that is not above a positive fraction. */
export function floatBelow([n, d]) {
  const shift = BigInt(64 - bitLength(n) + bitLength(d));
  const quotient = shift < 0n ? n / (d << -shift) : (n << shift) / d,
    extra = bitLength(quotient) - 53;
  return Number(quotient >> BigInt(extra)) * 2 ** (extra - Number(shift));
}

/** About the logarithm of a positive fraction. */
export function logarithm([n, d]) {
  const log = (x) => {
    const extra = Math.max(bitLength(x) - 60, 0);
    return Math.log(Number(x >> BigInt(extra))) + extra * Math.LN2;
  };
  return log(n) - log(d);
}

/** A fraction that is not below the logarithm of another, and above it by less than one part in 10^12. */
export function logAbove([n, d]) {
  const size = 0.7 * (bitLength(n) + bitLength(d));
  return plus(fraction(logarithm([n, d])), fraction(1e-14 * (1 + size)));
}

// Powers -------------------------------------------------------------------------------------------------------------

const SMALLEST_EPSILON = 1e-9,
  LARGEST_EPSILON = 700,
  LARGEST_RELEASE_EPSILON = 64,
  USUAL = "Use 0.1 to 10.";

export function checkEpsilon(epsilon, what = "epsilon") {
  const fits = epsilon === Infinity || (epsilon >= SMALLEST_EPSILON && epsilon <= LARGEST_EPSILON);
  check(typeof epsilon === "number" && fits, what, "must be a positive number", USUAL);
}

/** Refuse an ε without noise. Such data leave only in simulations, which devices never run. */
export function checkNoise(epsilon) {
  checkEpsilon(epsilon);
  check(epsilon <= LARGEST_RELEASE_EPSILON, "epsilon", `is above ${LARGEST_RELEASE_EPSILON} for a report`, USUAL);
}

const powers = new Map();

/** e^x for x ≥ 0 in units of 2^-256, slightly below the true value. */
export function power(x) {
  if (!powers.has(x)) {
    const [n, d] = fraction(x);
    let sum = 0n;
    for (let k = 1n, term = POWER_UNIT; term; k++) [sum, term] = [sum + term, (term * n) / d / k];
    if (powers.size > 1000) powers.clear();
    powers.set(x, sum);
  }
  return powers.get(x);
}

/** e^x in units of 2^-64, rounded down: every randomiser uses it in place of e^ε. */
export const expBelow = (x) => power(x) >> (POWER_BITS - 64n);

/** e^x as the nearest float. `Math.exp` may differ in its last bit, and oracles change over where that bit decides. */
export const exp = (x) => Number(power(x)) / 2 ** Number(POWER_BITS);

// Draws --------------------------------------------------------------------------------------------------------------

/** All that is ever drawn, from one function that gives a uniform BigInt below a bound. */
export class Draws {
  constructor(below) {
    this.below = below;
  }

  static from(source) {
    return source instanceof Draws ? source : new Draws(source);
  }

  /** One exact coin of a public probability, by 64 digits at a time. */
  async coin([numerator, denominator]) {
    for (;;) {
      const threshold = (numerator << 64n) / denominator,
        drawn = await this.below(UNIT);
      if (drawn !== threshold) return drawn < threshold;
      numerator = (numerator << 64n) % denominator;
    }
  }

  /** One draw, whatever the chance is: for what depends on data before it is randomised. */
  async secretCoin([n, d]) {
    return (await this.below(SECRET)) < (n << 128n) / d;
  }

  /** One of `count` numbers from 0 on, by one draw whose bound is the same for every count. */
  async secretBelow(count) {
    return Number(((await this.below(SECRET)) * BigInt(count)) >> 128n);
  }
}
