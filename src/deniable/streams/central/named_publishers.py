"""The publishers by name. They differ only in their threshold, tree and smoother."""

from __future__ import annotations

from typing import Any, ClassVar

from deniable.errors import InvalidParameter
from deniable.randomness import Source
from deniable.streams.central.publisher import STATE_VERSION, Publisher
from deniable.streams.central.settings import Settings, usual_warmup
from deniable.streams.central.stream_forecast import Expectation
from deniable.streams.central.threshold import PAKPercentile, PaperScore, PredictedError, SmoothThreshold, Threshold
from deniable.streams.structure.smoother import Recent, Smoother, smoother_of
from deniable.streams.structure.state_values import unseal
from deniable.streams.structure.value_grid import Grid

WARMUP_ONCE = 1 << 16
"""Values of a warm-up after which nothing is learnt any more, as in the paper."""


class ToPS(Publisher):
    """The default publisher: threshold by predicted error, consistent tree, smoother  [WCZ21].

    ε-DP when one value of the stream is replaced by another; the unit is one value, not one person. Not protected: how
    many values there are, when they come, and the settings. Values above θ are published as θ at most.

    The first `warmup` values are never published: 256 to 4,096 by ε, and 65,536 if θ is not renewed.

    Smoothers: recent, mean, median, moving, exponential, or none, which is block=1. The default is recent in the first
    epoch, and then whichever would have predicted the blocks of the epoch before best.

    `hierarchy`: noise by a "tree" of block sums, by "tent"s, which overlap, or "auto" for the one that is predicted to
    be better at random windows. Sums of whole chunks are more accurate with a tree.

    `paper=True`: threshold by Eq. (6) and blocks by Eq. (7) as corrected, a tree of fan-out 16, first block filled with
    θ/2.

    >>> tops = ToPS(epsilon=1.0, bound=100, warmup=1000, horizon=1000)
    >>> tops.push(7) is None, tops.warming_up
    (True, True)
    """

    kind: ClassVar[str] = "tops"

    def __init__(
        self,
        epsilon: float,
        bound: float,
        *,
        warmup: int | None = None,
        horizon: int = 1 << 20,
        low: float = 0,
        resolution: float = 1,
        block: int | str | None = None,
        fanout: int | None = None,
        consistent: bool = True,
        smoother: str | Smoother | None = None,
        threshold: Threshold | None = None,
        expectation: Expectation | None = None,
        hierarchy: str = "auto",
        paper: bool = False,
        renew: bool | None = None,
        start: float | None = None,
        name: str = "",
        key: bytes | None = None,
        source: Source | None = None,
        simulation: bool = False,
        keep: bool = True,
    ) -> None:
        if renew is None:
            renew = not paper and isinstance(threshold, PredictedError | None)
        if warmup is None:
            warmup = usual_warmup(epsilon) if renew else WARMUP_ONCE
        if start is not None:
            warmup = 0
        fit_smoother, smoother = renew and smoother is None, "recent" if smoother is None else smoother
        if smoother == "none":
            smoother, block = "recent", 1
        if paper:
            block, fanout = "paper" if block is None else block, fanout or 16
            hierarchy = "tree" if hierarchy == "auto" else hierarchy
            threshold = threshold or PaperScore(fanout=fanout)
        settings = Settings(
            self.kind,
            epsilon,
            Grid(bound, low, resolution),
            warmup,
            horizon,
            block,
            fanout,
            consistent,
            smoother_of(smoother),
            threshold or PredictedError(),
            measure_start=not paper and (warmup != 0 or start is not None),
            expectation=expectation or Expectation(),
            name=name,
            renew=renew,
            start=start,
            hierarchy=hierarchy,
            fit_smoother=fit_smoother,
        )
        super().__init__(settings, key=key, source=source, simulation=simulation, keep=keep)


class _Baseline(Publisher):
    """A publisher with fixed parts. A fan-out of None is one flat level."""

    _parts: ClassVar[dict[str, Any]]
    _threshold: ClassVar[Threshold]

    def __init__(
        self,
        epsilon: float,
        bound: float,
        *,
        warmup: int = WARMUP_ONCE,
        horizon: int = 1 << 20,
        low: float = 0,
        resolution: float = 1,
        threshold: Threshold | None = None,
        name: str = "",
        key: bytes | None = None,
        source: Source | None = None,
        simulation: bool = False,
        keep: bool = True,
        **more: Any,
    ) -> None:
        parts = {**self._parts, "fanout": self._parts["fanout"] or max(horizon, 2), **more}
        if unknown := set(more) - {"block", "fanout", "consistent", "smoother"}:
            raise InvalidParameter(", ".join(sorted(unknown)), "is not a setting here", "Leave it out.")
        parts["smoother"] = smoother_of(parts.get("smoother", Recent()))
        settings = Settings(
            self.kind,
            epsilon,
            Grid(bound, low, resolution),
            warmup,
            horizon,
            threshold=threshold or self._threshold,
            measure_start=False,
            name=name,
            **parts,
        )
        super().__init__(settings, key=key, source=source, simulation=simulation, keep=keep)


class PAK(_Baseline):
    """PAK's raised percentile and a binary tree without consistency: (ε, δ)-DP  [PAK19].

    The threshold is capped at the bound, which costs nothing. Published plots show PAKPercentile(cap=False).

    >>> publisher = PAK(epsilon=1.0, bound=100, warmup=1000, horizon=1000)
    >>> publisher.push_many([5, 6, 7, 8] * 1000).size
    3000
    """

    kind: ClassVar[str] = "pak"
    _parts: ClassVar[dict[str, Any]] = {"block": 1, "fanout": 2, "consistent": False}
    _threshold: ClassVar[Threshold] = PAKPercentile()


class NME(_Baseline):
    """Noisy-max threshold by Eq. (6) and a binary tree without consistency: ε-DP  [WCZ21, NM-E].

    >>> publisher = NME(epsilon=1.0, bound=100, warmup=1000, horizon=1000)
    >>> publisher.push_many([5, 6, 7, 8] * 1000).size
    3000
    """

    kind: ClassVar[str] = "nme"
    _parts: ClassVar[dict[str, Any]] = {"block": 1, "fanout": 2, "consistent": False}
    _threshold: ClassVar[Threshold] = PaperScore()


class Hc16(_Baseline):
    """PAK's raised percentile, consistent tree of fan-out 16, blocks by Eq. (7): (ε, δ)-DP  [WCZ21, Ĥc16].

    It differs from `PAK` in the tree only  [WCZ21, appendix F]. The threshold is capped at the bound, which costs
    nothing. Published plots show PAKPercentile(cap=False).

    >>> publisher = Hc16(epsilon=1.0, bound=100, warmup=1000, horizon=1000)
    >>> publisher.push_many([5, 6, 7, 8] * 1000).size
    3000
    """

    kind: ClassVar[str] = "hc16"
    _parts: ClassVar[dict[str, Any]] = {"block": "paper", "fanout": 16, "consistent": True}
    _threshold: ClassVar[Threshold] = PAKPercentile()


class SmoothHc16(Hc16):
    """The tree of `Hc16` with a plain smooth-sensitivity threshold, capped at the bound: (ε, δ)-DP  [NRS07].

    >>> publisher = SmoothHc16(epsilon=1.0, bound=100, warmup=1000, horizon=1000)
    >>> publisher.push_many([5, 6, 7, 8] * 1000).size
    3000
    """

    kind: ClassVar[str] = "smooth-hc16"
    _threshold: ClassVar[Threshold] = SmoothThreshold()


class Flat(_Baseline):
    """Noise on every value and no tree: ε-DP. Best for windows of a few values, worst for long ones.

    >>> publisher = Flat(epsilon=1.0, bound=100, warmup=1000, horizon=1000)
    >>> publisher.push_many([5, 6, 7, 8] * 1000).size
    3000
    """

    kind: ClassVar[str] = "flat"
    _parts: ClassVar[dict[str, Any]] = {"block": 1, "fanout": None, "consistent": True}
    _threshold: ClassVar[Threshold] = PredictedError()


BY_KIND: dict[str, type[Publisher]] = {made.kind: made for made in (ToPS, PAK, NME, Hc16, SmoothHc16, Flat)}


def restore(state: dict[str, Any], *, source: Source | None = None) -> Publisher:
    """The publisher that a state describes, of any kind. See `Publisher.restore`.

    >>> import deniable as dn
    >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
    >>> private = tops.push_many([5, 6, 7, 8] * 1000)
    >>> again = restore(tops.state(), source=dn.SeededSource(1))
    >>> bool((again.push_many([5, 6]) == tops.push_many([5, 6])).all())
    True
    """
    return kind_of_state(state).restore(state, source=source)


def kind_of_state(state: Any) -> type[Publisher]:
    """Which publisher a state describes."""
    kind = BY_KIND.get(str(state.get("kind"))) if isinstance(state, dict) else None
    if kind is None:
        unseal(state, state.get("version", STATE_VERSION) if isinstance(state, dict) else STATE_VERSION)
        raise InvalidParameter("state", "is of a kind this version does not know", "Use the version that wrote it.")
    return kind
