// What one service collects: one row per user, or up to `many`, of which `tau` are reported.
import { categorical, ordinal } from "./attributes.js";
import { check } from "./errors.js";
import { checkDistinct, checkField, checkName, fieldsOf, integerOf, listOf, within } from "./fields.js";

const LARGEST_TAU = 2 ** 15,
  MOST_ATTRIBUTES = 1_000;

export class Table {
  constructor(entry) {
    const { name, many, tau, attributes, key } = fieldsOf(
      entry,
      ["name", "many", "tau", "attributes"],
      ["owner", "key"],
    );
    this.name = checkName(name);
    within(`table '${name}'`, () => {
      this.many = many === null ? null : integerOf(many, 1, LARGEST_TAU);
      this.tau = integerOf(tau, 1, this.many ?? 1);
      this.names = listOf(attributes, MOST_ATTRIBUTES).map((attribute) => checkName(attribute?.name));
      checkDistinct(this.names);
      this.private = attributes.map((attribute) => this.#read(attribute)).filter(({ domain }) => domain);
      this.domains = this.private.map(({ domain }) => domain);
      checkField(this.domains.length);
      /** The column of ids of another population, about which somebody else reports. */
      this.key = key;
    });
  }

  #read(entry) {
    const { name, kind } = entry;
    return within(`attribute '${name}' of table '${this.name}'`, () => {
      checkField(name.toLowerCase() !== "uid" && name !== "many" && name !== "tau");
      if (kind === "ordinal") return { name, domain: ordinal(entry) };
      if (kind === "categorical") return { name, domain: categorical(entry) };
      check(kind === "public", name, "is of another kind", "Report in Python.");
      fieldsOf(entry, ["name", "kind"]);
      return { name };
    });
  }
}
