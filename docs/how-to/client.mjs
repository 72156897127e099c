// A client for tables in JavaScript: the reports of one user, for every design. It imports only SHA-256 and random
// bytes. `below(n)` draws an integer from 0 to n - 1; numbers that decide anything are BigInt. Dates and times of a
// row are Date objects, read in UTC. In a collection with rounds, the caller keeps what was sent, and a secret where
// `needsSecret` says so: a second draw would spend again.
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

// The largest float that is at most ε·n/d, so that all reports together never exceed ε.
export function share(epsilon, n, d) {
  const [a, b] = fraction(epsilon), rounded = (epsilon * Number(n)) / Number(d);
  const bits = new BigUint64Array(new Float64Array([rounded]).buffer), value = () => new Float64Array(bits.buffer)[0];
  const within = () => {
    const [m, e] = fraction(value());
    return m * d * b <= a * n * e;
  };
  while (within()) bits[0] += 1n;
  while (!within()) bits[0] -= 1n;
  return value();
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

// The hash of cells: 32-bit arithmetic. A cell enters with a key and with an odd factor.
const multiply = (x, y) => Math.imul(x, y) >>> 0;
function mix(x) {
  x = multiply(x ^ (x >>> 16), 0x85ebca6b);
  x = multiply(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}
const mixed = (x) => mix((x + 0x9e3779b9) >>> 0);
function bucket(seed, cell, buckets) {
  const key = mixed(Number(cell & 0xffffffffn));
  let x = multiply(seed ^ key, mixed(key) | 1);
  x = multiply(x ^ (x >>> 15), 0xac4c1b51);
  x = multiply(x ^ (x >>> 15), 0x31848bab);
  return (BigInt(x) * BigInt(buckets)) >> 32n;
}

// Axes and designs. An axis has a tree: level 0 is one cell, and each level cuts every cell into `fanout` parts.
function newAxis(kind, size, fanout, attribute = -1, places = null) {
  let levels = 1;
  for (let reach = 1; reach < size; reach *= fanout) levels++;
  return { kind, size: BigInt(size), fanout: BigInt(fanout), levels, attribute, places };
}
const width = (axis, level) => axis.fanout ** BigInt(axis.levels - 1 - level);
const cellsOf = (axis, level) => (axis.size + width(axis, level) - 1n) / width(axis, level);

const numbers = (count, of) => Array.from({ length: count }, (_, number) => of(number));
function gridAxis(attribute, size, { cells, points }) {
  const steps = Math.max(points - 1, 1), rounded = (n) => Math.floor((2 * n * (size - 1) + steps) / (2 * steps));
  const even = cells === undefined ? numbers(points, rounded) : numbers(cells, (n) => Math.floor((n * size) / cells));
  const given = cells ?? points, places = Array.isArray(given) ? given : even;
  return newAxis(cells === undefined ? "points" : "cells", places.length, Math.max(places.length, 2), attribute, places);
}

// The parts of a design. Each part has groups, and each group has axes, with all levels or only the last ones.
function parts(table, specification, domains, names) {
  const many = table.many !== null, last = many ? [newAxis("weight", 2, 2)] : [], { fanout } = specification;
  const values = domains.map(({ size, ordinal }, attribute) => newAxis("value", size, ordinal ? fanout : size, attribute));
  const sums = domains.flatMap(({ summed }, attribute) => (summed ? [attribute] : []));
  const rounded = (attribute) => newAxis("rounded", 2, 2, attribute);
  const augmented = (attribute) => (many ? newAxis("weight and rounded", 4, 4, attribute) : rounded(attribute));
  const embedded = (attribute) => newAxis("embedded", 2 * domains[attribute].size, fanout, attribute);
  const swapped = (attribute) => values.map((axis, i) => (i === attribute ? embedded(i) : axis));
  let design = specification.design;
  if (!sums.length) design = { ahio: "hio", ehio: "hio", amg: "mg" }[design] ?? design;
  const groups = {
    hio: () => [[[...values, ...last]]],
    mg: () => [[[...values, ...last]]],
    sc: () => [...values, ...last].map((axis) => [[axis]]),
    "sr-hio": () => [[[...values, ...sums.map(rounded), ...last]]],
    ahio: () => [sums.map((attribute) => [...values, augmented(attribute)])],
    amg: () => [sums.map((attribute) => [...values, augmented(attribute)])],
    ehio: () => [sums.map((attribute) => [...swapped(attribute), ...last])],
    grid: () => [specification.grids[table.name].map(({ axes }) => {
      const cut = names.flatMap((name, i) => (name in axes ? [gridAxis(i, domains[i].size, axes[name])] : []));
      return [...cut, ...last];
    })],
  }[design]();
  const weights = design === "grid" ? specification.grids[table.name].map(({ weight }) => weight) : null;
  return { groups, weights, leaves: ["mg", "amg", "grid"].includes(design) };
}

// Domains. A position is null for a value outside its domain, of another type, or missing.
const tenths = (text) => {
  const [, sign, whole, rest = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(String(text));
  const exponent = Number(power) - rest.length, digits = BigInt(sign + whole + rest);
  return exponent < 0 ? [digits, 10n ** BigInt(-exponent)] : [digits * 10n ** BigInt(exponent), 1n];
};
const floorDiv = (a, b) => a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n);
// The nearest grid point of a value, and whether the value is on it; null for another type.
function numberPosition(low, step, round) {
  const [a, b] = tenths(low), [c, d] = tenths(step), unit = Number(c) / Number(d), fine = 10n ** 12n;
  return (value) => {
    if (typeof value !== "number" || !Number.isFinite(value)) return null;
    const [p, q] = tenths(value), n = (p * b - a * q) * d, m = q * b * c; // (p/q - a/b) / (c/d)
    // A float such as 0.1 + 0.2 may lie a hair off its grid point.
    const spacing = 2 ** (Math.floor(Math.log2(Math.abs(value) || 1)) - 52);
    const slack = Number.isInteger(value) ? 0 : Math.min(Math.max(1e-6, (2 * spacing) / unit), 0.25);
    const hair = round ? BigInt(Math.round(slack * 1e12)) : 0n;
    const nearest = floorDiv((2n * n + m) * fine + 2n * m * hair, 2n * m * fine), apart = n - nearest * m;
    return [Number(nearest), round || Number(apart < 0n ? -apart : apart) <= slack * Number(m)];
  };
}
const DAY = 86_400_000;
function timePosition(low, step) {
  const start = Date.parse(low.includes("T") ? `${low}Z` : low), span = 1000 * Number(step.slice(0, -2));
  return (value) => {
    if (!(value instanceof Date) || Number.isNaN(value.getTime())) return null;
    const time = low.includes("T") ? value.getTime() : Math.floor(value.getTime() / DAY) * DAY;
    return [Math.floor((time - start) / span), true];
  };
}
// Rules of the specification decide what becomes of values without a place: outside, round, missing, map, other.
export function domainOf({ kind, values, low, high, step, summed = true, outside, round, missing, map = {}, other }) {
  const absent = (v) => v === undefined || v === null || Number.isNaN(v);
  if (kind === "categorical") {
    const listed = (v) => (typeof v === typeof values[0] ? values.indexOf(v) : null);
    const position = (v) => {
      if (absent(v)) return missing === undefined ? null : listed(missing);
      const code = listed(typeof v === "string" && Object.hasOwn(map, v) ? map[v] : v);
      return code !== -1 ? code : other === undefined ? null : listed(other);
    };
    return { size: values.length, position, summed: false };
  }
  const times = typeof low === "string" && low.slice(1).includes("-");
  const read = (text) => (times ? new Date(text.includes("T") ? `${text}Z` : text) : Number(text));
  const nearest = times ? timePosition(low, step) : numberPosition(low, step, round);
  const size = nearest(read(high))[0] + 1;
  const position = (v) => {
    if (absent(v)) return missing === undefined ? null : nearest(read(missing))[0];
    const [code, fits] = nearest(v) ?? [null, false];
    if (code === null || (code >= 0 && code < size)) return fits ? code : null;
    return outside === "clip" ? (code < 0 ? 0 : size - 1) : null;
  };
  return { size, ordinal: true, summed: summed && !times, position };
}
function positionsOf(row, names, domains) {
  try {
    const positions = domains.map((domain, i) => domain.position(row[names[i]]));
    return positions.every((v, i) => v !== null && v >= 0 && v < domains[i].size) ? positions.map(BigInt) : null;
  } catch {
    return null; // whatever a value does when it is read: silence would reveal that it is odd
  }
}

// An infinite ε, or one above 64, sends the data unprotected. That is for simulations, which devices never run.
export function checkNoise(epsilon) {
  if (!(epsilon > 0 && epsilon <= 64)) throw new Error("epsilon must be above 0 and at most 64. Nothing was sent.");
}

// ε of a report: an even share, or by `shares` of the tables; the largest float that is not above it. Rounds that rotate
// divide it among a person's answers.
function epsilonOf(specification, shape, name, all = specification.epsilon) {
  const answers = BigInt(specification.rounds?.answers ?? 1);
  const count = ({ table, groups }) => table.tau * groups.length, mine = count(shape.find(({ table }) => table.name === name));
  if (specification.shares === null) return share(all, 1n, answers * BigInt(shape.reduce((sum, each) => sum + count(each), 0)));
  const shares = Object.entries(specification.shares).map(([table, value]) => [table, fraction(value)]);
  const whole = shares.reduce((product, [, [, d]]) => product * d, 1n);
  const scaled = ([n, d]) => (n * whole) / d, total = shares.reduce((sum, [, value]) => sum + scaled(value), 0n);
  return share(all, scaled(shares.find(([table]) => table === name)[1]), total * answers * BigInt(mine));
}

const sha = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
const digestOf = (sha256, name) => sha(`${sha256}:${name}`);

// Public numbers that follow from 32 bytes, a purpose, a number, a slot and the user id.
function hashedBelow(first, purpose, number, slot, user) {
  const rest = Buffer.alloc(34);
  rest.write(purpose), rest.writeBigUInt64BE(BigInt(number), 24), rest.writeUInt16BE(slot, 32);
  const words = sha(first, rest, String(user));
  let next = 0;
  return (n) => (words.readBigUInt64BE(8 * next++) * n) >> 64n;
}

// Rounds ---------------------------------------------------------------------------------------------------------------

// A secret of 32 bytes, drawn once for a collection and kept for life, where turns or answers must come out the same.
export const needsSecret = ({ rounds, coins }) =>
  Boolean(rounds) && (rounds.mode === "memoised" || (rounds.mode === "rotating" && coins !== "assigned"));
export const newSecret = (below = secureBelow) =>
  Buffer.from(below(1n << 256n).toString(16).padStart(64, "0"), "hex");

// The rounds in which a person answers, where rounds rotate.
export function turnsOf({ rounds, coins }, sha256, user, secret) {
  const assigned = coins === "assigned", chosen = [];
  for (let answer = 0; answer < rounds.answers; answer++) {
    const first = assigned ? digestOf(sha256, "") : secret;
    const left = hashedBelow(first, "deniable turns", 0, answer, assigned ? user : "");
    let turn = Number(left(BigInt(rounds.count - answer)));
    for (const earlier of [...chosen].sort((a, b) => a - b)) turn += turn >= earlier ? 1 : 0;
    chosen.push(turn);
  }
  return chosen.map((turn) => turn + 1);
}

// Draws that come again: SHA-256 of the secret and a label. They are for what is kept for life.
const sticky = (secret, table) => (label) => {
  let count = 0;
  return (n) => {
    const room = 1n << 256n;
    for (;;) {
      const drawn = BigInt("0x" + sha(secret, `${table}:${label}:${count++}`).toString("hex"));
      if (drawn < room - (room % n)) return drawn % n;
    }
  };
};

// An instantaneous answer on top of a permanent one, which is drawn again and comes out the same.
function memoised(outcome, k, e, permanent, again, below) {
  const unit = 1n << 64n, kept = response(outcome, k, permanent, again);
  const whole = permanent + (k - 1n) * unit, alone = e + (k - 1n) * unit;
  let [keep, of] = [e * whole - unit * alone, alone * (permanent - unit)];
  if (keep > of) keep = of;
  const repeats = coin(keep, of, below), other = below(k - 1n);
  return repeats ? kept : other + (other >= kept ? 1n : 0n);
}

function checkRound({ rounds }, round) {
  if (!rounds && round !== null) throw new Error("this collection has no rounds. Nothing was sent.");
  if (rounds && !(Number.isInteger(round) && round >= 1 && round <= rounds.count))
    throw new Error(`round must be an integer from 1 to ${rounds.count}. Nothing was sent.`);
}

// Where a row lies on an axis. All coins that the axis may need are tossed, whatever the row is.
function coordinate({ kind, size, attribute, places }, row, domains, weight, below) {
  let v = attribute < 0 ? 0n : row[attribute], from = 0n, top = attribute < 0 ? 1n : BigInt(domains[attribute].size - 1);
  if (places) {
    let index = places.findLastIndex((start) => BigInt(start) <= v);
    if (kind === "points") {
      index = Math.min(index, places.length - 2);
      [from, top] = [v - BigInt(places[index]), BigInt(places[index + 1] - places[index])];
    }
    v = BigInt(index);
  } else from = v;
  const up = ["rounded", "embedded", "weight and rounded", "points"].includes(kind) ? secretCoin(from, top, below) : 0n;
  const heavy = kind.startsWith("weight") ? secretCoin(...weight, below) : 0n;
  if (kind === "value" || kind === "cells") return v;
  if (kind === "points") return v + up;
  if (kind === "embedded") return up ? size / 2n + v : size / 2n - 1n - v;
  return kind === "weight and rounded" ? 2n * heavy + up : heavy + up;
}

// The reports of a user: none in a round that is not hers, or covers of the same size that say so.
export function reports(specification, sha256, name, rows, below = secureBelow, user = null, round = null, secret = null) {
  const shape = specification.tables.map((table) => {
    const private_ = table.attributes.filter(({ kind }) => kind !== "public"), domains = private_.map(domainOf);
    const names = private_.map(({ name }) => name);
    return { table, domains, names, ...parts(table, specification, domains, names) };
  });
  const { table, domains, names, groups: each, weights, leaves } = shape.find(({ table }) => table.name === name);
  const { rounds } = specification;
  checkRound(specification, round);
  if (needsSecret(specification) && secret?.length !== 32) throw new Error("a secret of 32 bytes is missing. Nothing was sent.");
  const epsilon = Number.isFinite(specification.epsilon) ? epsilonOf(specification, shape, name) : NaN;
  checkNoise(epsilon);
  const e = expBelow(epsilon), digest = digestOf(sha256, name), life = rounds?.mode === "memoised" ? sticky(secret, name) : null;
  const permanent = life && expBelow(Math.max(epsilonOf(specification, shape, name, rounds.permanent), epsilon));
  const assigned = specification.coins === "assigned";
  if (assigned && user === null) throw new Error("this collection assigns coins: pass the user id. Nothing was sent.");
  if (table.many === null && rows.length !== 1) throw new Error("this table takes exactly one row. Nothing was sent.");

  const packed = (slot, view, seed, y) => {
    const bytes = Buffer.alloc(32);
    bytes.writeUInt8(2, 0), bytes.writeUInt8(assigned ? 1 : 0, 1), bytes.writeUInt16BE(slot, 2), bytes.writeUInt32BE(round ?? 0, 4);
    digest.copy(bytes, 8, 0, 8);
    bytes.writeUInt32BE(view, 16), bytes.writeUInt32BE(seed, 20), bytes.writeBigUInt64BE(y, 24);
    return bytes.toString("hex");
  };
  if (rounds?.mode === "rotating" && !turnsOf(specification, sha256, user, secret).includes(round))
    return rounds.cover ? numbers(table.tau * each.length, (slot) => packed(slot, 0, 0, (1n << 64n) - 1n)) : [];

  // Truncation: `tau` rows with replacement, of at most `many`; a user without rows sends random ones of weight zero.
  // All draws are made, whatever the rows are.
  const pool = rows.map((row) => positionsOf(row, names, domains)).filter((positions) => positions !== null);
  if (life) pool.sort((a, b) => a.map((v, i) => Number(v - b[i])).find((apart) => apart) ?? 0); // in any order, the same
  const used = Math.min(pool.length, table.many ?? 1), numbered = new Map(), forRows = life ? life("rows") : below;
  const chosen = Array.from({ length: table.tau }, () => {
    const dummy = domains.map(({ size }) => forRows(BigInt(size)));
    if (table.many === null) return pool[0] ?? dummy;
    const number = secretBelow(used || 1, forRows), index = secretBelow(pool.length || 1, forRows);
    if (used && !numbered.has(number)) numbered.set(number, pool.splice(index, 1)[0]);
    return used ? numbered.get(number) : dummy;
  });
  const weight = [BigInt(table.many === null ? 1 : used), BigInt(table.many ?? 1)];
  const views = (axes) => (leaves ? 1 : axes.reduce((n, { levels }) => n * levels, 1));

  const sent = [];
  for (const row of chosen)
    each.forEach((groups, part) => {
      const slot = sent.length, before = life ? life(slot) : below, turn = rounds && !life ? round + 1 : 0;
      const choose = assigned ? hashedBelow(digest, "deniable coins", turn, slot, user) : before;
      const seeds = life && !assigned ? life(`${slot}:seed`) : choose;
      const chances = groups.map((_, i) => BigInt(weights ? weights[i] : 1));
      let group = 0, drawn = choose(chances.reduce((sum, chance) => sum + chance, 0n));
      for (; drawn >= chances[group]; group++) drawn -= chances[group];
      const axes = groups[group], local = Number(choose(BigInt(views(axes))));
      const view = local + [...each.slice(0, part).flat(), ...groups.slice(0, group)].reduce((n, axes) => n + views(axes), 0);
      const coordinates = axes.map((axis) => coordinate(axis, row, domains, weight, before));
      let rest = local, cells = 1n, number = 0n;
      const nodes = [];
      for (let i = axes.length - 1; i >= 0; i--) {
        const level = leaves ? axes[i].levels - 1 : rest % axes[i].levels;
        rest = Math.floor(rest / axes[i].levels);
        nodes.unshift(coordinates[i] / width(axes[i], level));
        number += cells * nodes[0];
        cells *= cellsOf(axes[i], level);
      }
      if (cells > 1n << 32n) // more than can be numbered: folded into 32 bits
        number = BigInt(nodes.reduce((folded, node) => mixed((folded + Number(node & 0xffffffffn)) >>> 0), 0));
      const few = specification.oracle === "auto" && Number(cells) < 3 * Math.exp(epsilon) + 2;
      const answer = (outcome, k) =>
        life ? memoised(outcome, k, e, permanent, life(`${slot}:answer to ${outcome}`), below) : response(outcome, k, e, below);
      let seed = 0, y = 0n;
      if (cells > 1n && few) y = answer(number, cells);
      else if (cells > 1n) {
        const buckets = Math.min(Math.round(Math.exp(epsilon) + 1), 65_536);
        seed = Number(seeds(1n << 32n));
        y = answer(bucket(seed, number, buckets), BigInt(buckets));
      }
      sent.push(packed(slot, view, seed, y));
    });
  return sent;
}
