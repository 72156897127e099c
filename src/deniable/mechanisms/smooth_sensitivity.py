"""Smooth sensitivity: a private percentile with less noise where the data are dense.

The percentile of crowded data hardly moves when one value is replaced, but the amount by which it may move reveals
something about the data. Smooth sensitivity bounds that amount and itself changes by at most a factor e^b between
neighbours, so that noise of that scale gives away neither the percentile nor the scale.  [NRS07]
"""

from __future__ import annotations

import heapq
import math
import secrets
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

from deniable.accounting import Neighbours, Spending, Unit
from deniable.checks import check_flag, check_integer, check_number
from deniable.errors import InvalidData, InvalidParameter
from deniable.exact import RandBelow, check_epsilon, check_randbelow, exp_between
from deniable.mechanisms.admissible_noise import AdmissibleNoise, CauchyNoise, GaussianNoise, LaplaceNoise

if TYPE_CHECKING:
    from deniable.randomness import Source

DEFAULT_DELTA = 2.0**-40
"""1/n² for a stream of n = 2^20 values."""
DEFAULT_NOISE: AdmissibleNoise = LaplaceNoise()

_WEIGHT_UNIT = 2**96  # the weight e_0 of the present data; the other weights are integers on this scale
_RATE_BITS = 64


@dataclass(frozen=True, slots=True)
class SmoothPercentile:
    """A percentile of integers in {0, …, bound}, plus integer noise of scale S/a.

    (ε, δ)-DP when one value is replaced by another (ε-DP with `CauchyNoise`, where δ must be 0); the number of values
    is public. S is a b-smooth upper bound of the percentile's local sensitivity, at least 1:

        S = max(1, max_k e_k · max_{t = 0..k+1} [V(P + t) − V(P + t − k − 1)])    [NRS07, section 3; WCZ21, appendix B]

    V are the sorted values, 0 before the first and `bound` after the last, P is the rank of the percentile, and
    e_k ≈ e^(−bk). The weights are integers with e_{k+1} = ⌈e_k·E⌉ for a rational E ≥ e^(−b), so e_k ≤ e^b·e_{k+1}
    holds exactly; the inner maximum for k is at most a neighbour's for k + 1; so S(x) ≤ e^b·S(x'), exactly.
    With t up to k only, as in some public code, S does not bound anything when the data can only move upwards.

    `cap` clamps the result into [0, bound], which costs no privacy; cap=False is what [WCZ21] plots.
    Secret values decide how long the computation takes and how many words it draws, so do not let others measure it.
    65,536 values take some 0.1 s; the worst are evenly spaced ones in a domain wider than their number, at a small ε,
    where every value ties with the next: about 10 s.

    >>> SmoothPercentile(epsilon=math.inf, bound=10, percentile=0.5).perturb_one([1, 2, 9], simulation=True)
    2
    """

    epsilon: float
    bound: int
    percentile: float
    delta: float = DEFAULT_DELTA
    noise: AdmissibleNoise = DEFAULT_NOISE
    cap: bool = True

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_integer("bound", self.bound, 1, 2**53)
        problem, repair = "must be above 0 and at most 1", "Use 0.5 for the median."
        check_number("percentile", self.percentile, problem, repair, above=0, largest=1)
        if not isinstance(self.noise, (LaplaceNoise, GaussianNoise, CauchyNoise)):
            raise InvalidParameter("noise", "must be a law with a proof", "Use LaplaceNoise(), for example.")
        self.noise.check_delta(self.delta)
        check_flag("cap", self.cap, "Leave it out to keep results in the domain.")

    @property
    def stretch(self) -> Fraction:
        """a: the noise has scale S/a."""
        return self.noise.stretch(self.epsilon, self.delta)

    @property
    def smoothing(self) -> Fraction:
        """b: S changes by at most a factor e^b between neighbours."""
        return self.noise.smoothing(self.epsilon, self.delta)

    @property
    def spends(self) -> Spending:
        """(ε, δ) for one replaced value; δ is 0 with `CauchyNoise`."""
        return Spending(Unit.VALUE, Neighbours.REPLACED, self.epsilon, self.delta)

    def rank(self, count: int) -> int:
        """Which of `count` sorted values, from 1 on, is the percentile: ⌈p · count⌉, p read as a decimal."""
        return math.ceil(Fraction(repr(float(self.percentile))) * count)

    def sensitivity(self, values: Any) -> Fraction:
        """S, exactly. It is as secret as the values."""
        return self._sensitivity(_ordered(values, self.bound))

    def centre(self, values: Any) -> int:
        """Where the noise is added, as secret as the values: the percentile itself."""
        return self._centre_and_scale(_ordered(values, self.bound))[0]

    def scale(self, values: Any) -> Fraction:
        """Scale of the noise, as secret as the values; 0 at ε = ∞."""
        return self._centre_and_scale(_ordered(values, self.bound))[1]

    def perturb(self, values: Any, *, source: Source | None = None, simulation: bool = False) -> int:
        """The private percentile of all values."""
        from deniable.randomness import release_source

        source = release_source(source, simulation=simulation, epsilon=self.epsilon)
        return self.draw(values, source)

    def perturb_one(self, values: Any, *, randbelow: RandBelow = secrets.randbelow, simulation: bool = False) -> int:
        """The private percentile of all values, with the standard library only."""
        check_randbelow(randbelow, self.epsilon, simulation=simulation)
        return self.draw_one(values, randbelow)

    def draw(self, values: Any, source: Source) -> int:
        """`perturb` for a source that has been checked."""
        return self.draw_one(values, source.randbelow)

    def draw_one(self, values: Any, randbelow: RandBelow) -> int:
        """`perturb_one` for draws that have been checked."""
        centre, scale = self._centre_and_scale(_ordered(values, self.bound))
        result = centre + self.noise.draw(scale, randbelow) if scale else centre
        return min(max(result, 0), self.bound) if self.cap else result

    def estimate(self, output: int) -> float:
        """The output is its own estimate."""
        return float(output)

    def pmf(self, values: Any, output: int) -> float:
        """Probability of an output before it is clamped."""
        centre, scale = self._centre_and_scale(_ordered(values, self.bound))
        return self.noise.pmf(output - centre, scale) if scale else float(output == centre)

    def law(self, values: Any) -> tuple[float, ...]:
        """Probabilities of the clamped outputs 0..bound."""
        if not self.cap:
            raise InvalidParameter("cap", "must be True for a finite law", "Use pmf, output by output.")
        centre, scale = self._centre_and_scale(_ordered(values, self.bound))
        if not scale:
            result = min(max(centre, 0), self.bound)
            return tuple(float(output == result) for output in range(self.bound + 1))
        inner = (self.noise.pmf(output - centre, scale) for output in range(1, self.bound))
        return (self.noise.tail(centre, scale), *inner, self.noise.tail(self.bound - centre, scale))

    def variance(self, values: Any) -> float:
        """Variance of the noise before clamping. It is as secret as the values."""
        scale = self.scale(values)
        return self.noise.variance(scale) if scale else 0.0

    def _centre_and_scale(self, ordered: list[int]) -> tuple[int, Fraction]:
        centre = ordered[self.rank(len(ordered)) - 1]
        if math.isinf(self.epsilon):
            return centre, Fraction(0)
        return centre, self._sensitivity(ordered) / self.stretch

    def _sensitivity(self, ordered: list[int]) -> Fraction:
        rate = 0 if math.isinf(self.epsilon) else _rate(self.smoothing)
        rank = self.rank(len(ordered))
        weights = _weights(rate, self.bound, len(ordered) + 1)
        return Fraction(_widest_gap(ordered, rank, self.bound, weights), _WEIGHT_UNIT)


@lru_cache(maxsize=256)
def _rate(smoothing: Fraction) -> int:
    """The smallest multiple of 2^-64 that is provably ≥ e^(−b), in units of 2^-64."""
    unit = 1 << _RATE_BITS
    return min(math.ceil(exp_between(-smoothing)[1] * unit), unit)


@lru_cache(maxsize=8)
def _weights(rate: int, bound: int, count: int) -> tuple[int, ...]:
    """e_0, e_1, …, at most `count` of them, and none so small that e_k · bound ≤ e_0: S is at least 1 anyway."""
    weights, weight = [_WEIGHT_UNIT], _WEIGHT_UNIT
    while len(weights) < count:
        weight = -(-weight * rate >> _RATE_BITS)
        if weight * bound <= _WEIGHT_UNIT:
            break
        weights.append(weight)
    return tuple(weights)


def _widest_gap(ordered: list[int], rank: int, bound: int, weights: tuple[int, ...]) -> int:
    """The largest (V_j − V_i) · e_{j−i−1} over i ≤ rank ≤ j, i < j, but at least e_0.

    Branch and bound, the most promising block of pairs first: no pair of a block is better than its widest gap with
    its largest weight. The first single pair that leads the queue is the best of all.
    """
    reach = len(weights)
    left_ranks, left_values = _left_ends(ordered, rank, max(0, rank - reach))
    right_ranks, right_values = _right_ends(ordered, rank, min(len(ordered) + 1, rank + reach), bound)

    def ceiling(left: int, left_end: int, right: int, right_end: int) -> int:
        distance = right_ranks[right] - left_ranks[left_end - 1]
        if distance > reach:
            return 0
        return (right_values[right_end - 1] - left_values[left]) * weights[max(distance, 1) - 1]

    best = _WEIGHT_UNIT
    whole = (0, len(left_ranks), 0, len(right_ranks))
    queue = [(-ceiling(*whole), *whole)]
    while queue:
        top, left, left_end, right, right_end = heapq.heappop(queue)
        if -top <= best:
            break
        if left_end - left == 1 == right_end - right:
            return -top
        # The side that spans more ranks blurs the bound more, whether or not it has more candidates.
        left_span = left_ranks[left_end - 1] - left_ranks[left]
        right_span = right_ranks[right_end - 1] - right_ranks[right]
        if right_end - right == 1 or (left_end - left > 1 and left_span >= right_span):
            middle = (left + left_end) // 2
            halves = ((left, middle, right, right_end), (middle, left_end, right, right_end))
        else:
            middle = (right + right_end) // 2
            halves = ((left, left_end, right, middle), (left, left_end, middle, right_end))
        for half in halves:
            promise = ceiling(*half)
            if promise > best:
                heapq.heappush(queue, (-promise, *half))
    return best


def _left_ends(ordered: list[int], rank: int, first: int) -> tuple[list[int], list[int]]:
    """Left ends of gaps: of equal values up to the rank, only the last can be best. Rank 0 holds the value 0."""
    ranks, values = [], []
    position = rank
    while position >= max(first, 1):
        value = ordered[position - 1]
        ranks.append(position)
        values.append(value)
        position = bisect_left(ordered, value, 0, position)
    if first == 0 and (not values or values[-1] > 0):
        ranks.append(0)
        values.append(0)
    return ranks[::-1], values[::-1]


def _right_ends(ordered: list[int], rank: int, last: int, bound: int) -> tuple[list[int], list[int]]:
    """Right ends of gaps: of equal values from the rank on, only the first. The rank after the last holds `bound`."""
    ranks, values = [], []
    position = rank
    while position <= min(last, len(ordered)):
        value = ordered[position - 1]
        ranks.append(position)
        values.append(value)
        position = bisect_right(ordered, value, position - 1) + 1
    if last > len(ordered) and (not values or values[-1] < bound):
        ranks.append(len(ordered) + 1)
        values.append(bound)
    return ranks, values


def _ordered(values: Any, bound: int) -> list[int]:
    """The values as sorted Python integers, after the checks. No message repeats a value."""
    whole = InvalidData("values must be whole numbers of an integer type", "Convert them to integers first.")
    kind = getattr(getattr(values, "dtype", None), "kind", "i")  # numpy and pandas name the kind of their numbers
    if kind not in "iuO" or isinstance(values, (str, bytes, bytearray)):
        raise whole
    convert = getattr(values, "to_pylist", None) or getattr(values, "tolist", None)
    try:
        cells = list(convert() if convert else values)
    except TypeError:
        raise whole from None
    if not cells:
        raise InvalidData("values are empty", "Pass at least one value.")
    if set(map(type, cells)) != {int}:
        if not all(isinstance(cell, Integral) and not isinstance(cell, bool) for cell in cells):
            raise whole
        cells = [int(cell) for cell in cells]
    cells.sort()
    if cells[0] < 0 or cells[-1] > bound:
        raise InvalidData(f"values must lie in the public domain 0..{bound}", "Clip them first.")
    return cells
