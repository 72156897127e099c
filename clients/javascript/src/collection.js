// A specification with its verbs, as pages and programs use it.
import { Client } from "./client.js";
import { describedBy } from "./collector.js";
import { check } from "./errors.js";
import { Specification } from "./specification.js";

export class Collection extends Specification {
  /** The collection that a collector describes. With `sha256`, no other specification is taken. */
  static async fetch(url, name, { sha256 = null } = {}) {
    const described = await describedBy(url, name),
      made = await this.fromEntries(described.specification);
    check(
      described.sha256 === made.sha256,
      "the specification",
      "has another hash than the collector says",
      "Report this.",
    );
    check(
      sha256 === null || sha256 === made.sha256,
      "the specification",
      "is not the one that is pinned",
      "Read it, then pin it.",
    );
    return made;
  }

  /** A client for one user. See `Client` for the settings. */
  client(settings) {
    return new Client(this, settings);
  }
}
