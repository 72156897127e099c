// Draws that come again: what a device needs for answers that it keeps for life. All of them follow from SHA-256 of a
// secret, drawn once and kept in the memory, and a label.
import { Draws } from "./exact.js";
import { outcomeOf } from "./oracles.js";
import { hex, sha256 } from "./randomness.js";

const ROOM = 1n << 256n;

export class Lifetime {
  constructor(specification, table, secret) {
    Object.assign(this, { specification, table, secret });
  }

  /** Draws for one purpose, which begin with the same numbers in every round. */
  of(label) {
    let count = 0;
    return new Draws(async (bound) => {
      for (;;) {
        const drawn = BigInt(`0x${hex(await sha256(this.secret, `${this.table}:${label}:${count++}`))}`);
        if (drawn < ROOM - (ROOM % bound)) return drawn % bound;
      }
    });
  }

  /** [seed, y]: an instantaneous answer on top of the permanent one. */
  async answer(slot, oracle, cell, seed, draws) {
    if (oracle.outcomes === 1) return [0, 0];
    const outcome = outcomeOf(oracle, cell, seed);
    const response = this.specification.responses(this.table).find(({ k }) => k === oracle.outcomes);
    const kept = await response.drawPermanent(outcome, this.of(`${slot}:answer to ${outcome}`));
    return [seed, await response.drawInstantaneous(kept, draws)];
  }
}
