// A client for streams without trust in JavaScript: the one report of one user, in either phase.
import { createHash } from "node:crypto";
import { checkNoise, coin, expBelow, fraction, power, response, secretCoin, secureBelow } from "./client.mjs";

const UNIT = 1n << 64n, SCALE = 1n << 256n;

// The size of a grid on which a window that covers the share n/d of it spans enough outputs; and that window's width.
function windowOf(n, d) {
  let grid = 1n << 16n;
  while (grid < 1n << 30n && grid * n < 2048n * d) grid *= 2n;
  const width = (2n * grid * n + d) / (2n * d);
  return [grid, width || 1n];
}

// One of inputs + width - 1 outputs: each of the `width` from `index` on is e^ε times as likely as any other.
function slide(index, inputs, width, e, below) {
  const inside = coin(e * width, (inputs + width - 1n) * UNIT + (e - UNIT) * width, below);
  const near = below(width), other = below(inputs - 1n);
  return inside ? index + near : other + (other >= index ? width : 0n);
}

// The square wave of the value's position on a logarithmic scale: first reports.
function wave(value, bound, epsilon, below) {
  const [n, d] = fraction(epsilon), e = power(epsilon);
  const above = (n * e) / d - e + SCALE, beneath = (e * (e - SCALE - (n * SCALE) / d)) / SCALE;
  const [cells, width] = windowOf(above, beneath);
  const position = Math.min(Math.log1p((2047 * value) / bound) / Math.log1p(2047), 1);
  const cell = Math.min(Math.floor(position * Number(cells)), Number(cells) - 1);
  return slide(BigInt(cell), cells, width, e >> 192n, below);
}

// The hybrid mechanism on [0, θ]: second reports.
function hybrid(value, theta, epsilon, below) {
  const e = expBelow(epsilon), half = expBelow(epsilon / 2);
  const [n, d] = fraction(value), [m, f] = fraction(theta), top = n * f, bottom = d * m; // value/θ
  if (!coin(epsilon > 0.61 ? half - UNIT : 0n, half, below)) return response(secretCoin(top, bottom, below), 2n, e, below);
  const [steps, width] = windowOf(UNIT, half), scaled = top * steps;
  const point = scaled / bottom < steps - 1n ? scaled / bottom : steps - 1n;
  return 2n + slide(point + secretCoin(scaled - point * bottom, bottom, below), steps + 1n, width, e, below);
}

// The first two bytes of the SHA-256 of the settings, as Python writes them in JSON (names in ASCII, floats with a point).
function tag({ epsilon, bound, name }) {
  const float = (x) => (Number.isInteger(x) ? `${x}.0` : `${x}`);
  const settings =
    `{"topl": {"bound": ${float(bound)}, "epsilon": ${float(epsilon)}, "grid": null, "mechanism": "hybrid", ` +
    `"name": ${JSON.stringify(name)}, "scale": "log"}}`;
  return createHash("sha256").update(settings).digest().readUInt16BE(0);
}

export function streamReport(settings, value, theta = null, below = secureBelow) {
  checkNoise(settings.epsilon);
  const { epsilon, bound } = settings, cut = Math.min(Math.max(Number.isNaN(value) ? 0 : value, 0), bound);
  const y = theta === null ? wave(cut, bound, epsilon, below) : hybrid(Math.min(cut, theta), theta, epsilon, below);
  const bytes = Buffer.alloc(16);
  bytes.writeUInt8(129, 0), bytes.writeUInt8(theta === null ? 1 : 2, 1), bytes.writeUInt16BE(tag(settings), 2);
  bytes.writeUInt32BE(Number(y), 4), bytes.writeDoubleBE(theta ?? 0, 8);
  return bytes.toString("hex");
}
