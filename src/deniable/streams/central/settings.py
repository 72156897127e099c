"""Everything public about a publisher, and what its warm-up may spend."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from deniable.accounting import Neighbours, Spending, Unit, in_parallel, in_sequence, share_below
from deniable.checks import check_integer
from deniable.errors import InvalidParameter
from deniable.exact import check_epsilon
from deniable.mechanisms import DiscreteLaplace
from deniable.streams.central.stream_forecast import Expectation, StreamPlan, choose_plan, mean_share, paper_block
from deniable.streams.central.threshold import THRESHOLDS_BY_KIND, PredictedError, PublicThreshold, Threshold
from deniable.streams.structure.smoother import Recent, Smoother, smoother_of
from deniable.streams.structure.value_grid import Grid

SQUARE_SHARE, ABOVE_SHARE = Fraction(1, 20), Fraction(1, 40)
SQUARE_STEPS = 1 << 10
"""Values are squared in steps of θ/2^10, so that sums of squares fit 64 bits for any θ."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything public about a publisher. If `block` or `fanout` is None, the predicted error decides.

    `measure_start`: spend parts of the warm-up's ε on the mean (1/50 to 1/5, more for larger blocks), the mean square
    (1/20) and the share of values above θ (1/40). Without it the first block is filled with θ/2, and intervals know
    less. `hierarchy`: "tree", "tent", or "auto" for the one that is predicted to be better.

    >>> Settings("tops", 0.5, Grid(1000)).plan.block
    2048
    """

    method: str
    epsilon: float
    grid: Grid
    warmup: int = 1 << 16
    horizon: int = 1 << 20
    block: int | str | None = None
    fanout: int | None = None
    consistent: bool = True
    smoother: Smoother = field(default_factory=Recent)
    threshold: Threshold = field(default_factory=PredictedError)
    measure_start: bool = True
    expectation: Expectation = field(default_factory=Expectation)
    name: str = ""
    hierarchy: str = "tree"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_integer("warmup", self.warmup, 0, 1 << 24)
        check_integer("horizon", self.horizon, 1, 1 << 40)
        if not isinstance(self.threshold, tuple(THRESHOLDS_BY_KIND.values())):
            raise InvalidParameter("threshold", "is not one of this package", "Use PredictedError(), for example.")
        if self.warmup == 0 and (self.measure_start or not isinstance(self.threshold, PublicThreshold)):
            raise InvalidParameter(
                "warmup",
                "is 0, so there is nothing to learn from",
                "Give PublicThreshold(...), or --theta.",
            )
        if self.block is not None and self.block != "paper":
            check_integer("block", self.block, 1, self.horizon)

    @property
    def plan(self) -> StreamPlan:
        """How the stream is cut, and its tree. Public, and decided before any value."""
        if self.block == "paper":
            fanout = self.fanout or 16
            block = paper_block(self.epsilon, self.horizon, fanout)
            kind = "tent" if self.hierarchy == "tent" else "tree"
            return StreamPlan(self.horizon, min(block, self.horizon), fanout, self.consistent, self.smoother, kind)
        uncapped = not getattr(self.threshold, "cap", True)  # no bound of θ is known then, which tents need
        return choose_plan(
            self.epsilon,
            self.horizon,
            expectation=self.expectation,
            block=self.block,
            fanout=self.fanout,
            consistent=self.consistent,
            smoother=self.smoother,
            warmup=self.warmup if self.measure_start else 0,
            hierarchy="tree" if uncapped and self.hierarchy == "auto" else self.hierarchy,
            bound=self.grid.top,
        )

    @property
    def delta(self) -> float:
        """δ of the promise: that of the threshold, and 0 for most of them."""
        return float(getattr(self.threshold, "delta", 0.0))

    def shares(self) -> dict[str, Fraction]:
        """What each private answer of the warm-up costs, as shares of ε."""
        if not self.measure_start:
            return {"threshold": Fraction(1)}
        measured = {"mean": mean_share(self.plan, self.warmup), "square": SQUARE_SHARE, "above": ABOVE_SHARE}
        return {"threshold": 1 - sum(measured.values(), Fraction(0)), **measured}

    @property
    def costs(self) -> dict[str, float]:
        """The ε of each private answer of the warm-up: its share, rounded down."""
        return {name: share_below(self.epsilon, share) for name, share in self.shares().items()}

    @property
    def spends(self) -> Spending:
        """(ε, δ) for one replaced value.

        The value is in the warm-up, whose answers add up, or it is published; which of the two, its position says.
        """
        costs = self.costs
        if isinstance(self.threshold, PublicThreshold):
            costs["threshold"] = 0.0
        elif not self.threshold.private:
            costs["threshold"] = math.inf
        delta = {"threshold": self.delta}
        warmup = [Spending(Unit.VALUE, Neighbours.REPLACED, cost, delta.get(name, 0.0)) for name, cost in costs.items()]
        published = Spending(Unit.VALUE, Neighbours.REPLACED, self.epsilon)
        return in_parallel([in_sequence(warmup), published])

    def describe(self) -> dict[str, Any]:
        """All settings as JSON."""
        facts = asdict(self)
        facts["smoother"] = {"name": self.smoother.name, **asdict(self.smoother)}
        facts["threshold"] = {"kind": self.threshold.kind, **asdict(self.threshold)}
        return facts

    @property
    def digest(self) -> str:
        """What the noise of a stream depends on, next to its key. Trees have the noise of earlier versions."""
        facts = self.describe()
        if facts.pop("hierarchy") != "tree" and (hierarchy := self.plan.hierarchy) != "tree":
            facts["hierarchy"] = hierarchy
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @classmethod
    def read(cls, facts: dict[str, Any]) -> Settings:
        """The settings that `describe` described."""
        facts = dict(facts)
        threshold = dict(facts.pop("threshold"))
        return cls(
            **{
                **facts,
                "grid": Grid(**facts["grid"]),
                "smoother": smoother_of(**facts["smoother"]),
                "threshold": THRESHOLDS_BY_KIND[threshold.pop("kind")](**threshold),
                "expectation": Expectation(**facts["expectation"]),
            }
        )


def check_possible(settings: Settings, plan: StreamPlan) -> None:
    """Refuse now what some θ would make impossible later: when it fails must not depend on data."""
    top = settings.grid.top
    if top * settings.horizon > 1 << 62 or top * plan.block > 1 << 60:
        raise InvalidParameter(
            "bound", "has too many steps for sums over the horizon", "Use a coarser resolution or a shorter horizon."
        )
    for theta in (1, top):
        plan.perturber(settings.epsilon, theta)
        for name, cost in settings.costs.items():
            sensitivity = {"mean": theta, "square": SQUARE_STEPS**2, "above": 1, "threshold": 1 << 17}[name]
            DiscreteLaplace(cost, sensitivity)
