"""Smoothers: what is published inside a block, before the block's noisy sum is known.

Every value of a block is published as a prediction from the blocks before it; the last one makes the block add up to
its noisy sum  [WCZ21, Algorithm 1 with its misprints corrected, appendix D]. A prediction is a function of what was
published, so it costs no privacy.

All but the median are linear. What is published at any position is a weighted sum of noisy prefix sums (`taps`), and
from these the standard error of every window follows in closed form.
"""

from __future__ import annotations

import json
import math
from bisect import insort
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers
from deniable.checks import check_integer, check_number
from deniable.errors import InvalidParameter
from deniable.streams.structure.block_layout import BlockLayout

SmootherMemory = list[Any]
"""What a smoother remembers of earlier blocks, as JSON."""
Taps = tuple[list[tuple[Integers, Floats]], Floats]
"""Edges with their weights, and the weight of the initial rate."""
_FORGOTTEN = 1e-6
SLAB = 1 << 18
"""Values whose predictions are made together."""


@dataclass(frozen=True, slots=True)
class Recent:
    """The mean of the block before.

    >>> smoother_of("recent")
    Recent()
    """

    name: ClassVar[str] = "recent"

    def begin(self, initial: float, block: int) -> SmootherMemory:  # noqa: ARG002 - other smoothers need them
        """What is remembered before the first block."""
        return []

    def follow(self, memory: SmootherMemory, totals: Integers, lengths: Integers) -> tuple[Floats, SmootherMemory]:
        """The rate predicted after each of the given blocks, and what is remembered then."""
        return totals / lengths, memory

    def taps(self, layout: BlockLayout, edge: Integers, over: Integers) -> Taps:
        """What `over` values after an edge are published as, beyond the prefix at the edge."""
        return _window_taps(layout, edge, over, 1)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of everything before, the initial rate counted as one block.

    >>> smoother_of("mean")
    Mean()
    """

    name: ClassVar[str] = "mean"

    def begin(self, initial: float, block: int) -> SmootherMemory:
        """What is remembered before the first block."""
        return [round(initial * block), block]

    def follow(self, memory: SmootherMemory, totals: Integers, lengths: Integers) -> tuple[Floats, SmootherMemory]:
        """The rate predicted after each of the given blocks, and what is remembered then."""
        total, count = memory[0] + np.cumsum(totals), memory[1] + np.cumsum(lengths)
        return total / count, [int(total[-1]), int(count[-1])]

    def taps(self, layout: BlockLayout, edge: Integers, over: Integers) -> Taps:
        """What `over` values after an edge are published as, beyond the prefix at the edge."""
        share = over / (layout.position(edge) + layout.block)
        return [(edge, share)], share * layout.block


@dataclass(frozen=True, slots=True)
class MovingAverage:
    """The mean of the last `window` blocks; the initial rate counts as a block until it drops out.

    >>> MovingAverage(window=4)
    MovingAverage(window=4)
    """

    window: int = 4
    name: ClassVar[str] = "moving"

    def __post_init__(self) -> None:
        check_integer("window", self.window, 1, 1 << 20)

    def begin(self, initial: float, block: int) -> SmootherMemory:
        """What is remembered before the first block."""
        return [[round(initial * block)], [block]]

    def follow(self, memory: SmootherMemory, totals: Integers, lengths: Integers) -> tuple[Floats, SmootherMemory]:
        """The rate predicted after each of the given blocks, and what is remembered then."""
        held = len(memory[0])
        totals, lengths = np.concatenate((memory[0], totals)), np.concatenate((memory[1], lengths))
        total, length = np.concatenate(([0], np.cumsum(totals))), np.concatenate(([0], np.cumsum(lengths)))
        last = np.arange(held + 1, totals.size + 1)
        first = np.maximum(last - self.window, 0)
        rates = (total[last] - total[first]) / (length[last] - length[first])
        return rates, [totals[-self.window :].tolist(), lengths[-self.window :].tolist()]

    def taps(self, layout: BlockLayout, edge: Integers, over: Integers) -> Taps:
        """What `over` values after an edge are published as, beyond the prefix at the edge."""
        return _window_taps(layout, edge, over, self.window)


@dataclass(frozen=True, slots=True)
class Exponential:
    """A share `alpha` of the newest block, and the rest of the prediction before it.

    >>> Exponential(alpha=0.5)
    Exponential(alpha=0.5)
    """

    alpha: float = 0.6
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        problem = "must be a number from 0.05 to 1"
        check_number("alpha", self.alpha, problem, "Use 0.6, for example.", smallest=0.05, largest=1)

    def begin(self, initial: float, block: int) -> SmootherMemory:  # noqa: ARG002 - other smoothers need it
        """What is remembered before the first block."""
        return [initial]

    def follow(self, memory: SmootherMemory, totals: Integers, lengths: Integers) -> tuple[Floats, SmootherMemory]:
        """The rate predicted after each of the given blocks, and what is remembered then."""
        rates, rate = np.empty(totals.size), float(memory[0])
        for index, newest in enumerate((totals / lengths).tolist()):
            rate = self.alpha * newest + (1 - self.alpha) * rate
            rates[index] = rate
        return rates, [rate]

    def taps(self, layout: BlockLayout, edge: Integers, over: Integers) -> Taps:
        """What `over` values after an edge are published as, beyond the prefix at the edge."""
        reach = 1 if self.alpha == 1 else math.ceil(math.log(_FORGOTTEN) / math.log(1 - self.alpha))
        reach = min(reach, int(edge.max(initial=0)))
        taps = [(edge, np.zeros(edge.shape))]
        for age in range(reach):
            newer, older = np.maximum(edge - age, 0), np.maximum(edge - age - 1, 0)
            length = np.maximum(layout.position(newer) - layout.position(older), 1)
            weight = np.where(edge > age, over * self.alpha * (1 - self.alpha) ** age / length, 0.0)
            taps[-1] = (taps[-1][0], taps[-1][1] + weight)
            taps.append((older, -weight))
        return taps, over * (1 - self.alpha) ** np.minimum(edge, 10_000)


@dataclass(frozen=True, slots=True)
class Median:
    """The median of the means of all blocks before; the initial rate until there is one.

    Not linear: standard errors inside blocks are those of `Recent`, which is an upper bound for steady streams only.

    >>> smoother_of("median")
    Median()
    """

    name: ClassVar[str] = "median"

    def begin(self, initial: float, block: int) -> SmootherMemory:  # noqa: ARG002 - other smoothers need them
        """What is remembered before the first block."""
        return []

    def follow(self, memory: SmootherMemory, totals: Integers, lengths: Integers) -> tuple[Floats, SmootherMemory]:
        """The rate predicted after each of the given blocks, and what is remembered then."""
        rates, ordered = np.empty(totals.size), list(memory)
        for index, newest in enumerate((totals / lengths).tolist()):
            insort(ordered, newest)
            middle = len(ordered) // 2
            rates[index] = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        return rates, ordered

    def taps(self, layout: BlockLayout, edge: Integers, over: Integers) -> Taps:
        """What `over` values after an edge are published as, beyond the prefix at the edge."""
        return _window_taps(layout, edge, over, 1)


Smoother = Recent | Mean | MovingAverage | Exponential | Median
_SMOOTHERS_BY_NAME: dict[str, type[Smoother]] = {
    kind.name: kind for kind in (Recent, Mean, MovingAverage, Exponential, Median)
}


@dataclass(frozen=True, slots=True)
class Interpolated:
    """Afterwards: inside a complete block, a straight line between the noisy prefix sums at both of its edges.

    No publisher can do this, but whoever reads what was published can. Blocks before `since` and from `until` on are
    not there from their first value to their last: they stay as the smoother published them.

    >>> import numpy as np
    >>> taps, _ = Interpolated(Recent(), 0, 9).taps(BlockLayout(100, 10), np.array([3]), np.array([5]))
    >>> [(int(edge[0]), float(weight[0])) for edge, weight in taps]
    [(3, -0.5), (4, 0.5)]
    """

    online: Smoother
    since: int
    until: int

    def taps(self, layout: BlockLayout, edge: Integers, over: Integers) -> Taps:
        """What stands for `over` values after an edge, beyond the prefix at the edge."""
        complete = (edge >= self.since) & (edge < self.until)
        length = np.maximum(layout.position(edge + 1) - layout.position(edge), 1)
        share = np.where(complete, over / length, 0.0)
        line = [(edge, -share), (edge + 1, share)]
        if complete.all():
            return line, np.zeros(edge.shape)
        taps, initial = self.online.taps(layout, edge, over)
        taps = [(at, np.where(complete, 0.0, weight)) for at, weight in taps]
        # The first tap of both is the edge itself, which is where two ends of one window are merged.
        taps[0] = (edge, taps[0][1] - share)
        return [*taps, line[1]], np.where(complete, 0.0, initial)


def _window_taps(layout: BlockLayout, edge: Integers, over: Integers, window: int) -> Taps:
    """The mean of the last `window` blocks; where there are fewer, with the initial rate as one more block."""
    first = np.maximum(edge - window, 0)
    filled = edge >= window
    length = layout.position(edge) - layout.position(first) + np.where(filled, 0, layout.block)
    share = over / length
    return [(edge, share), (first, -share)], np.where(filled, 0.0, share * layout.block)


def smoother_of(name: str | Smoother, **settings: Any) -> Smoother:
    """A smoother by its name."""
    if not isinstance(name, str):
        return name
    if name not in _SMOOTHERS_BY_NAME:
        raise InvalidParameter(
            "smoother", "is unknown", f"Use one of {', '.join(_SMOOTHERS_BY_NAME)}, or block=1 for none."
        )
    return _SMOOTHERS_BY_NAME[name](**settings)


def smoother_text(smoother: Smoother) -> str:
    """A smoother in one line, which `smoother_of_text` reads.

    >>> smoother_text(MovingAverage(16)), smoother_of_text("moving 16")
    ('moving 16', MovingAverage(window=16))
    """
    return " ".join([smoother.name, *map(json.dumps, asdict(smoother).values())])


def smoother_of_text(text: str) -> Smoother:
    """The smoother that `smoother_text` wrote."""
    name, *values = text.split()
    return _SMOOTHERS_BY_NAME[name](*map(json.loads, values))


def publish_blocks(totals: Integers, rates: Floats, length: int) -> Floats:
    """The published values of complete blocks of one length: the rate that holds inside each, then what is missing."""
    result = np.repeat(rates, length)
    result[length - 1 :: length] = totals - (length - 1) * rates
    return result


def published_values(
    totals: Integers, layout: BlockLayout, smoother: Smoother, initial: float, over: int
) -> NDArray[Any]:
    """Every published value: those of complete blocks, and `over` values of the open one."""
    if layout.block == 1:
        return totals
    edges = layout.position(np.arange(totals.size + 1))
    lengths = np.diff(edges)
    rates = np.array([initial])
    if totals.size:
        memory = smoother.begin(initial, layout.block)
        rates = np.concatenate((rates, smoother.follow(memory, totals, lengths)[0]))
    result = np.full(int(edges[-1]) + over, rates[-1])
    first, slab = 0, max(SLAB // layout.block, 1)
    while first < totals.size:
        length = int(lengths[first])
        alike = lengths[first : first + slab]
        count = alike.size if (alike == length).all() else int(np.argmax(alike != length))
        part = slice(first, first + count)
        result[edges[first] : edges[first + count]] = publish_blocks(totals[part], rates[part], length)
        first += count
    return result
