// What one service collects: one row per user, or up to `many`, of which `tau` are reported.
import { categorical, ordinal } from "./attributes.js";
import { checkDistinct, checkField, checkName, fieldsOf, integerOf, listOf, within } from "./fields.js";

const LARGEST_TAU = 2 ** 15,
  MOST_ATTRIBUTES = 1_000;
/** Names of arguments in Python, which no table can have. */
const ARGUMENTS = "key out everyone source simulation engine spill ledger round memory max_rejected".split(" ");

const OWNERSHIP = ["owner", "key"];

export class Table {
  constructor(entry) {
    const { name, many, tau, attributes, owner, key } = fieldsOf(entry, ["name", "many", "tau", "attributes"], OWNERSHIP);
    this.name = checkName(name);
    within(`table '${name}'`, () => {
      checkField(!ARGUMENTS.includes(name));
      this.many = many === null ? null : integerOf(many, 1, LARGEST_TAU);
      this.tau = integerOf(tau, 1, this.many ?? 1);
      this.names = listOf(attributes, MOST_ATTRIBUTES).map((attribute) => checkName(attribute?.name));
      checkDistinct(this.names);
      this.private = attributes.map((attribute) => this.#read(attribute)).filter(({ domain }) => domain);
      this.domains = this.private.map(({ domain }) => domain);
      checkField(this.domains.length);
      this.#readOwnership(owner, key);
    });
  }

  /** Who reports the rows, if not the users themselves, and the column of ids: one row for each of them. */
  #readOwnership(owner, key) {
    [this.owner, this.key] = [null, null];
    checkField((owner === undefined) === (key === undefined));
    if (owner === undefined) return;
    [this.owner, this.key] = [checkName(owner), checkName(key)];
    checkField(this.many === null);
    checkField(!this.names.some((name) => name.toLowerCase() === key.toLowerCase() || OWNERSHIP.includes(name)));
  }

  #read(entry) {
    const { name, kind } = entry;
    return within(`attribute '${name}' of table '${this.name}'`, () => {
      checkField(name.toLowerCase() !== "uid" && name !== "many" && name !== "tau");
      if (kind === "ordinal") return { name, domain: ordinal(entry) };
      if (kind === "categorical") return { name, domain: categorical(entry) };
      checkField(kind === "public");
      fieldsOf(entry, ["name", "kind"]);
      return { name };
    });
  }
}
