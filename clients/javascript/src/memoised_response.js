// Randomized response with a memory: a permanent answer for life, and an instantaneous one on top of it every round.
import { checkEpsilon, isLess, logAbove, minus, over, times } from "./exact.js";
import { respond, responseLaw } from "./randomized_response.js";

export class MemoisedResponse {
  constructor(epsilon, permanent, k) {
    checkEpsilon(permanent, "rounds: permanent");
    Object.assign(this, { epsilon, k, kept: responseLaw(permanent, k) });
    const alone = responseLaw(epsilon, k).p,
      { p, q } = this.kept;
    const ratio = over(minus(alone, q), minus(p, q));
    /** Probability that a round repeats the permanent answer; and that it gives a certain other one. */
    this.p = isLess([1n, 1n], ratio) ? [1n, 1n] : ratio;
    this.q = times(minus([1n, 1n], this.p), [1n, BigInt(k - 1)]);
  }

  /** What every round adds to the worst case: null if rounds repeat the permanent answer as it is. */
  get step() {
    return this.q[0] ? logAbove(over(this.p, this.q)) : null;
  }

  drawPermanent(outcome, draws) {
    return respond(outcome, this.k, this.kept.p, draws);
  }

  drawInstantaneous(answer, draws) {
    return respond(answer, this.k, this.p, draws);
  }
}
