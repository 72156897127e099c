// A client for tables in JavaScript: reports of one user, for every design but grids. Nothing is imported but SHA-256
// and random bytes. `below(n)` draws a whole number from 0 to n - 1; numbers that decide anything are BigInt.
import { createHash, randomBytes } from "node:crypto";

export function secureBelow(n) {
  const bytes = (n.toString(2).length + 7) >> 3, room = 1n << BigInt(8 * bytes);
  for (;;) {
    const drawn = BigInt("0x" + randomBytes(bytes).toString("hex"));
    if (drawn < room - (room % n)) return drawn % n;
  }
}

// A float as an exact fraction.
export function fraction(x) {
  let denominator = 1n;
  for (; !Number.isInteger(x); x *= 2) denominator *= 2n;
  return [BigInt(x), denominator];
}

// e^x in units of 2^-256, a little below; and as a whole number of 2^-64, rounded down.
export function power(x) {
  const [numerator, denominator] = fraction(x);
  let sum = 0n;
  for (let k = 1n, term = 1n << 256n; term > 0n; k++) [sum, term] = [sum + term, (term * numerator) / denominator / k];
  return sum;
}
export const expBelow = (x) => power(x) >> 192n;

// The float at or below ε/count, so that all reports together never exceed ε.
export function share(epsilon, count) {
  const rounded = epsilon / count, [n, d] = fraction(epsilon), [m, e] = fraction(rounded);
  if (m * BigInt(count) * d <= n * e) return rounded;
  const bits = new BigUint64Array(new Float64Array([rounded]).buffer);
  bits[0] -= 1n;
  return new Float64Array(bits.buffer)[0];
}

export function coin(numerator, denominator, below) {
  for (;;) {
    const threshold = (numerator << 64n) / denominator, drawn = below(1n << 64n);
    numerator = (numerator << 64n) % denominator;
    if (drawn !== threshold) return drawn < threshold ? 1n : 0n;
  }
}

// What depends on data is decided by one draw of 128 bits: the number of draws and their bounds must tell nothing.
export const secretCoin = (numerator, denominator, below) => (below(1n << 128n) < (numerator << 128n) / denominator ? 1n : 0n);
export const secretBelow = (count, below) => Number((below(1n << 128n) * BigInt(count)) >> 128n);

// Keep with chance e/(e + k - 1), e in units of 2^-64; else one of the others.
export function response(cell, k, e, below) {
  const keep = coin(e, e + ((k - 1n) << 64n), below), other = below(k - 1n);
  return keep ? cell : other + (other >= cell ? 1n : 0n);
}

const multiply = (x, y) => Math.imul(x, y) >>> 0;
function mix(x) {
  x = multiply(x ^ (x >>> 16), 0x85ebca6b);
  x = multiply(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}
const mixedCell = (cell) => mix(Number((cell + 0x9e3779b9n) & 0xffffffffn));

function axis(kind, size, fanout, attribute = -1) {
  let levels = 1;
  while (fanout ** (levels - 1) < size) levels++;
  return { kind, size: BigInt(size), fanout: BigInt(fanout), levels, attribute };
}
const width = (one, level) => one.fanout ** BigInt(one.levels - 1 - level);
const cellsOf = (one, level) => (one.size + width(one, level) - 1n) / width(one, level);

// The parts of a design: each has groups, each of which has axes, of all levels or of the last ones only.
function parts(table, design, fanout, domains) {
  const many = table.many !== null, last = many ? [axis("weight", 2, 2)] : [];
  const values = domains.map((one, place) => axis("value", one.size, one.ordinal ? fanout : one.size, place));
  const sums = domains.flatMap((one, place) => (one.summed ? [place] : []));
  const augmented = (place) => (many ? axis("weight and rounded", 4, 4, place) : axis("rounded", 2, 2, place));
  const embedded = (place) => axis("embedded", 2 * domains[place].size, fanout, place);
  if (!sums.length) design = { ahio: "hio", ehio: "hio", amg: "mg" }[design] ?? design;
  const groups = {
    hio: () => [[[...values, ...last]]],
    mg: () => [[[...values, ...last]]],
    sc: () => [...values, ...last].map((one) => [[one]]),
    "sr-hio": () => [[[...values, ...sums.map((place) => axis("rounded", 2, 2, place)), ...last]]],
    ahio: () => [sums.map((place) => [...values, augmented(place)])],
    amg: () => [sums.map((place) => [...values, augmented(place)])],
    ehio: () => [sums.map((place) => [...values.map((one, other) => (other === place ? embedded(place) : one)), ...last])],
  }[design]();
  return { groups, leaves: design === "mg" || design === "amg" };
}

// Domains of integers and texts; other steps, dates and decimals are counted in steps from `low` in the same way.
function domainOf(one) {
  if (one.kind === "categorical")
    return { size: one.values.length, place: (v) => one.values.indexOf(v), summed: one.values.every(Number.isInteger) };
  const size = (one.high - one.low) / one.step + 1;
  return { size, ordinal: true, summed: true, place: (v) => (v - one.low) / one.step };
}

// An infinite ε, or one above 64, lets the data out as they are: that is for simulations, which devices never run.
export function checkNoise(epsilon) {
  if (!(epsilon > 0 && epsilon <= 64)) throw new Error("epsilon must be above 0 and at most 64. Nothing was sent.");
}

export function reports(specification, sha256, name, rows, below = secureBelow) {
  const shape = specification.tables.map((table) => {
    const domains = table.attributes.filter((one) => one.kind !== "public").map(domainOf);
    return { table, domains, ...parts(table, specification.design, specification.fanout, domains) };
  });
  const { table, domains, groups: each, leaves } = shape.find((one) => one.table.name === name);
  if (specification.shares !== null || specification.oracle !== "auto") throw new Error("shares and oracles are not done here");
  const count = shape.reduce((sum, one) => sum + one.table.tau * one.groups.length, 0);
  checkNoise(specification.epsilon / count);
  const epsilon = share(specification.epsilon, count);
  const e = expBelow(epsilon), tag = createHash("sha256").update(`${sha256}:${name}`).digest()[0];
  const names = table.attributes.filter((one) => one.kind !== "public").map((one) => one.name);

  // Truncation: `tau` rows with replacement, of at most `many`; who has none sends random ones that weigh nothing.
  // All draws are made, whatever the rows are.
  const random = () => domains.map((one) => below(BigInt(one.size)));
  const known = (place, one) => Number.isInteger(place) && place >= 0 && place < one.size; // other rows do not count
  const pool = rows
    .map((row) => domains.map((one, place) => one.place(row[names[place]])))
    .filter((places) => places.every((place, i) => known(place, domains[i])))
    .map((places) => places.map(BigInt));
  const used = Math.min(pool.length, table.many ?? 1), numbered = new Map();
  const chosen = Array.from({ length: table.tau }, () => {
    const dummy = random();
    if (table.many === null) return pool[0] ?? dummy;
    const number = secretBelow(used || 1, below), place = secretBelow(pool.length || 1, below);
    if (used && !numbered.has(number)) numbered.set(number, pool.splice(place, 1)[0]);
    return used ? numbered.get(number) : dummy;
  });
  const weight = [BigInt(table.many === null ? 1 : used), BigInt(table.many ?? 1)];

  const sent = [];
  for (const row of chosen)
    each.forEach((groups, part) => {
      const before = each.slice(0, part).flat(), count = (axes) => (leaves ? 1 : axes.reduce((n, one) => n * one.levels, 1));
      const place = Number(below(BigInt(groups.length))), axes = groups[place], local = Number(below(BigInt(count(axes))));
      const view = local + [...before, ...groups.slice(0, place)].reduce((n, one) => n + count(one), 0);
      const coordinates = axes.map(({ kind, size, attribute }) => {
        const v = attribute < 0 ? 0n : row[attribute], top = attribute < 0 ? 1n : BigInt(domains[attribute].size - 1);
        const up = ["rounded", "embedded", "weight and rounded"].includes(kind) ? secretCoin(v, top, below) : 0n;
        const heavy = kind.startsWith("weight") ? secretCoin(...weight, below) : 0n;
        if (kind === "value") return v;
        if (kind === "embedded") return up ? size / 2n + v : size / 2n - 1n - v;
        return kind === "weight and rounded" ? 2n * heavy + up : heavy + up;
      });
      let rest = local, cells = 1n, number = 0n;
      for (let i = axes.length - 1; i >= 0; i--) {
        const level = leaves ? axes[i].levels - 1 : rest % axes[i].levels;
        rest = Math.floor(rest / axes[i].levels);
        number += cells * (coordinates[i] / width(axes[i], level));
        cells *= cellsOf(axes[i], level);
      }
      let seed = 0, y = 0n;
      if (cells > 1n && cells < BigInt(Math.ceil(3 * Math.exp(epsilon) + 2))) y = response(number, cells, e, below);
      else if (cells > 1n) {
        const buckets = Math.round(Math.exp(epsilon) + 1);
        seed = Number(below(1n << 32n));
        y = response((BigInt(mix(seed ^ mixedCell(number))) * BigInt(buckets)) >> 32n, BigInt(buckets), e, below);
      }
      const bytes = Buffer.alloc(16);
      bytes.writeUInt8(1, 0), bytes.writeUInt8(tag, 1), bytes.writeUInt16BE(sent.length, 2);
      bytes.writeUInt32BE(view, 4), bytes.writeUInt32BE(seed, 8), bytes.writeUInt32BE(Number(y), 12);
      sent.push(bytes.toString("hex"));
    });
  return sent;
}
