// What tests share: the vectors' files, specifications, and stores that fail.
import { readFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Collection } from "../src/node.js";

export const ROOT = new URL("../../../", import.meta.url);
export const PACKAGE = new URL("../", import.meta.url);
const golden = (name) => readFileSync(new URL(`tests/golden/${name}.json`, ROOT), "utf8");
export const vectorTexts = () => ({
  reports: golden("reports"),
  rounds: golden("rounds"),
  streams: golden("stream_reports"),
});

export const folder = () => mkdtemp(join(tmpdir(), "deniable-"));

/** A specification in canonical form: tables, and what differs from the defaults. Numbers in `floats` get a point. */
export function specificationText(tables, { epsilon = "1.5", ...settings } = {}) {
  const defaults = {
    deniable: 2,
    name: null,
    design: "hio",
    fanout: 2,
    oracle: "auto",
    coins: "drawn",
    shares: null,
    tables,
  };
  return JSON.stringify({ epsilon: "EPSILON", ...defaults, ...settings })
    .replace('"EPSILON"', epsilon)
    .replace(/"FLOAT ([^"]*)"/g, "$1");
}
export const collectionOf = (tables, settings) => Collection.fromJson(specificationText(tables, settings));

export const table = (name, attributes, many = null, tau = 1) => ({ name, many, tau, attributes });
export const ordinal = (name, low, high, rules = {}) => ({ name, kind: "ordinal", low, high, step: 1, ...rules });
export const categorical = (name, ...values) => ({ name, kind: "categorical", values });

export const USERS = table("users", [ordinal("age", 1, 95), categorical("marital", "married", "single")]);
export const ORDERS = table("orders", [ordinal("amount", 0, 500)], 10, 2);
export const SHOP = specificationText([USERS, ORDERS], { epsilon: "4.0", fanout: 5, name: "shop" });
