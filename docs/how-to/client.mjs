// A client for tables in JavaScript: the reports of one user, for every design except grids. It imports only SHA-256
// and random bytes. `below(n)` draws an integer from 0 to n - 1; numbers that decide anything are BigInt.
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

// e^x in units of 2^-256, slightly below the true value; and as an integer in units of 2^-64, rounded down.
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

// What depends on data is decided by one draw of 128 bits: the number of draws and their bounds must reveal nothing.
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

function newAxis(kind, size, fanout, attribute = -1) {
  let levels = 1;
  while (fanout ** (levels - 1) < size) levels++;
  return { kind, size: BigInt(size), fanout: BigInt(fanout), levels, attribute };
}
const width = (axis, level) => axis.fanout ** BigInt(axis.levels - 1 - level);
const cellsOf = (axis, level) => (axis.size + width(axis, level) - 1n) / width(axis, level);

// The parts of a design. Each part has groups, and each group has axes, with all levels or only the last ones.
function parts(table, design, fanout, domains) {
  const many = table.many !== null, last = many ? [newAxis("weight", 2, 2)] : [];
  const values = domains.map(({ size, ordinal }, attribute) => newAxis("value", size, ordinal ? fanout : size, attribute));
  const sums = domains.flatMap(({ summed }, attribute) => (summed ? [attribute] : []));
  const rounded = (attribute) => newAxis("rounded", 2, 2, attribute);
  const augmented = (attribute) => (many ? newAxis("weight and rounded", 4, 4, attribute) : rounded(attribute));
  const embedded = (attribute) => newAxis("embedded", 2 * domains[attribute].size, fanout, attribute);
  if (!sums.length) design = { ahio: "hio", ehio: "hio", amg: "mg" }[design] ?? design;
  const groups = {
    hio: () => [[[...values, ...last]]],
    mg: () => [[[...values, ...last]]],
    sc: () => [...values, ...last].map((axis) => [[axis]]),
    "sr-hio": () => [[[...values, ...sums.map(rounded), ...last]]],
    ahio: () => [sums.map((attribute) => [...values, augmented(attribute)])],
    amg: () => [sums.map((attribute) => [...values, augmented(attribute)])],
    ehio: () => [sums.map((attribute) => [...values.map((axis, i) => (i === attribute ? embedded(i) : axis)), ...last])],
  }[design]();
  return { groups, leaves: design === "mg" || design === "amg" };
}

// Domains of integers and texts. Other steps, dates and decimals are counted in steps from `low` in the same way.
function domainOf({ kind, values, low, high, step }) {
  if (kind === "categorical")
    return { size: values.length, position: (v) => values.indexOf(v), summed: values.every(Number.isInteger) };
  return { size: (high - low) / step + 1, ordinal: true, summed: true, position: (v) => (v - low) / step };
}

// An infinite ε, or one above 64, sends the data unprotected. That is for simulations, which devices never run.
export function checkNoise(epsilon) {
  if (!(epsilon > 0 && epsilon <= 64)) throw new Error("epsilon must be above 0 and at most 64. Nothing was sent.");
}

// The public draws of a report where coins are assigned: group, view and seed follow from the user id and the slot.
function assignedBelow(digest, slot, user) {
  const purpose = Buffer.alloc(34);
  purpose.write("deniable coins"), purpose.writeUInt16BE(slot, 32);
  const coins = createHash("sha256").update(digest).update(purpose).update(String(user)).digest();
  let next = 0;
  return (n) => (coins.readBigUInt64BE(8 * next++) * n) >> 64n;
}

export function reports(specification, sha256, name, rows, below = secureBelow, user = null) {
  const shape = specification.tables.map((table) => {
    const domains = table.attributes.filter(({ kind }) => kind !== "public").map(domainOf);
    return { table, domains, ...parts(table, specification.design, specification.fanout, domains) };
  });
  const { table, domains, groups: each, leaves } = shape.find(({ table }) => table.name === name);
  if (specification.shares !== null || specification.oracle !== "auto")
    throw new Error("this client supports neither shares nor a fixed oracle");
  const count = shape.reduce((sum, { table, groups }) => sum + table.tau * groups.length, 0);
  checkNoise(specification.epsilon / count);
  const epsilon = share(specification.epsilon, count);
  const e = expBelow(epsilon), digest = createHash("sha256").update(`${sha256}:${name}`).digest();
  const assigned = specification.coins === "assigned";
  if (assigned && user === null) throw new Error("this collection assigns coins: pass the user id. Nothing was sent.");
  const names = table.attributes.filter(({ kind }) => kind !== "public").map(({ name }) => name);

  // Truncation: `tau` rows with replacement, of at most `many`; a user without rows sends random ones of weight zero.
  // All draws are made, whatever the rows are.
  const random = () => domains.map(({ size }) => below(BigInt(size)));
  const known = (position, { size }) => Number.isInteger(position) && position >= 0 && position < size; // other rows do not count
  const pool = rows
    .map((row) => domains.map((domain, i) => domain.position(row[names[i]])))
    .filter((positions) => positions.every((position, i) => known(position, domains[i])))
    .map((positions) => positions.map(BigInt));
  const used = Math.min(pool.length, table.many ?? 1), numbered = new Map();
  const chosen = Array.from({ length: table.tau }, () => {
    const dummy = random();
    if (table.many === null) return pool[0] ?? dummy;
    const number = secretBelow(used || 1, below), index = secretBelow(pool.length || 1, below);
    if (used && !numbered.has(number)) numbered.set(number, pool.splice(index, 1)[0]);
    return used ? numbered.get(number) : dummy;
  });
  const weight = [BigInt(table.many === null ? 1 : used), BigInt(table.many ?? 1)];

  const sent = [];
  for (const row of chosen)
    each.forEach((groups, part) => {
      const before = each.slice(0, part).flat(), count = (axes) => (leaves ? 1 : axes.reduce((n, { levels }) => n * levels, 1));
      const choose = assigned ? assignedBelow(digest, sent.length, user) : below;
      const group = Number(choose(BigInt(groups.length))), axes = groups[group], local = Number(choose(BigInt(count(axes))));
      const view = local + [...before, ...groups.slice(0, group)].reduce((n, axes) => n + count(axes), 0);
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
        seed = Number(choose(1n << 32n));
        y = response((BigInt(mix(seed ^ mixedCell(number))) * BigInt(buckets)) >> 32n, BigInt(buckets), e, below);
      }
      const bytes = Buffer.alloc(32);
      bytes.writeUInt8(2, 0), bytes.writeUInt8(assigned ? 1 : 0, 1), bytes.writeUInt16BE(sent.length, 2);
      digest.copy(bytes, 8, 0, 8);
      bytes.writeUInt32BE(view, 16), bytes.writeUInt32BE(seed, 20), bytes.writeBigUInt64BE(y, 24);
      sent.push(bytes.toString("hex"));
    });
  return sent;
}
