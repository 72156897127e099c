// The hash of local hashing: 32-bit arithmetic that a phone, a browser and a server compute alike.

const multiply = (x, y) => Math.imul(x, y) >>> 0;
const CELL_OFFSET = 0x9e3779b9;

function mix(x) {
  x = multiply(x ^ (x >>> 16), 0x85ebca6b);
  x = multiply(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}
const mixed = (x) => mix((x + CELL_OFFSET) >>> 0);

/** The bucket of a cell under a seed. */
export function bucket(seed, cell, buckets) {
  const key = mixed(cell);
  let x = multiply(seed ^ key, mixed(key) | 1);
  x = multiply(x ^ (x >>> 15), 0xac4c1b51);
  x = multiply(x ^ (x >>> 15), 0x31848bab);
  return Math.floor((x * buckets) / 2 ** 32); // below 2^53: exact
}

/** Many node numbers as a single one of 32 bits. */
export const fold = (nodes) => nodes.reduce((number, node) => mixed((number + node) >>> 0), 0);
