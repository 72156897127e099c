"""Everything public about a publisher, and what its warm-up may spend."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

from deniable.accounting import Neighbours, Spending, Unit, in_parallel, in_sequence, share_below
from deniable.checks import check_integer
from deniable.errors import InvalidParameter
from deniable.exact import LARGEST_SCALE, check_epsilon
from deniable.mechanisms import DiscreteLaplace
from deniable.streams.central.evidence import EXCESS_REACH, SQUARE_STEPS, run_lengths
from deniable.streams.central.renewal_share import SHARES, renewal_share
from deniable.streams.central.stream_forecast import Expectation, PlanChoice, StreamPlan, choose_plan, paper_block
from deniable.streams.central.threshold import THRESHOLDS_BY_KIND, PredictedError, PublicThreshold, Threshold
from deniable.streams.structure.smoother import Recent, Smoother, smoother_of, smoother_of_text
from deniable.streams.structure.value_grid import Grid

MEAN_SHARE, SINGLES_SHARE = Fraction(1, 50), Fraction(1, 64)
TAIL_SHARE, RUNS_SHARE = Fraction(1, 8), Fraction(1, 8)
"""Of the ε for what is learnt: for the tail above θ, and for runs.

Twice as much where an epoch is as long as the next one: the choice of θ has enough there.
"""
_COUNTED_SHARE, _COUNTED_ALONE = Fraction(1, 16), Fraction(1, 2)
"""Of the tail's share, for the number of values above θ; the rest is for what they exceed it by.

The choice of θ by noisy max leaves less open about that number than half of the tail's share would tell, and values far
above θ count in the excess, too. A θ that comes from elsewhere leaves the number to be counted alone.
"""
_FORMER_SHARE, _FORMER_GROWING_SHARE = Fraction(1, 16), Fraction(1, 4)
"""Of a value's ε, for what the next epoch is told, in streams that began before it followed from predicted errors."""
_EPOCH_GROWTH = 4
SHORTEST_WARMUP, LONGEST_WARMUP = 256, 4096
ENOUGH_VALUES = 64
"""Values that θ can be learnt from with ε = 1, and in proportion with less: noise of a count is a sixty-fourth then."""


def usual_warmup(epsilon: float) -> int:
    """The shortest warm-up that pays where θ is renewed: 64/ε, as a power of two from 256 to 4,096.

    >>> [usual_warmup(epsilon) for epsilon in (0.01, 0.05, 0.5)]
    [4096, 2048, 256]
    """
    check_epsilon(epsilon)
    enough = min(max(ENOUGH_VALUES / epsilon, SHORTEST_WARMUP), LONGEST_WARMUP)
    return 1 << math.ceil(math.log2(enough))


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything public about a publisher. If `block` or `fanout` is None, the predicted error decides.

    `measure_start`: spend parts of the warm-up's ε on the mean (1/50), on how many values lie above θ and by how much
    (1/8), on how much values differ from the next ones (1/64), and on how much runs of several lengths do (1/8).
    Without it the first block is filled with θ/2, blocks are those of `plan`, and intervals know less.

    `renew`: after every epoch all of this is learnt again, from the epoch's values, for the next one. A value's ε is
    split: a share of it for that (`renewal_share`, public before the epoch begins), the rest for the tree. Epochs begin
    with four times the warm-up and grow by four up to the horizon. `start` is a public θ for the first epoch, which
    needs no warm-up then.

    `hierarchy`: "tree", "tent", or "auto" for the one that is predicted to be better.

    `fit_smoother`: `smoother` holds for the first epoch only. Later ones have the smoother that would have predicted
    the blocks of the epoch before best.

    >>> Settings("tops", 0.5, Grid(1000)).plan.block
    1024
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
    renew: bool = False
    start: float | None = None
    fit_smoother: bool = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_integer("warmup", self.warmup, 0, 1 << 24)
        check_integer("horizon", self.horizon, 1, 1 << 40)
        if not isinstance(self.threshold, tuple(THRESHOLDS_BY_KIND.values())):
            raise InvalidParameter("threshold", "is not one of this package", "Use PredictedError(), for example.")
        if self.renew and not isinstance(self.threshold, PredictedError):
            raise InvalidParameter("renew", "needs the threshold PredictedError", "Use that, or renew=False.")
        if self.start is not None and not (self.renew and self.warmup == 0):
            raise InvalidParameter("start", "is a θ to begin with, without warm-up", "Use warmup=0 and renew=True.")
        if self.fit_smoother and not self._may_fit:
            raise InvalidParameter(
                "fit_smoother", "needs renew=True and the smoother Recent", "Name a smoother instead."
            )
        public = isinstance(self.threshold, PublicThreshold) and not self.measure_start
        if self.warmup == 0 and self.start is None and not public:
            raise InvalidParameter(
                "warmup",
                "is 0, so there is nothing to learn from",
                "Give PublicThreshold(...), or --theta.",
            )
        if self.block is not None and self.block != "paper":
            check_integer("block", self.block, 1, self.horizon)

    @property
    def largest_block(self) -> int:
        """The most values of a block whose sums still fit."""
        return max(min((1 << 60) // self.grid.top, self.horizon), 1)

    @property
    def plan(self) -> StreamPlan:
        """Blocks and tree, until something is learnt. Public, and decided before any value."""
        if self.block == "paper":
            fanout = self.fanout or 16
            block = paper_block(self.epsilon, self.horizon, fanout)
            kind = "tent" if self.hierarchy == "tent" else "tree"
            return StreamPlan(self.horizon, min(block, self.horizon), fanout, self.consistent, self.smoother, kind)
        return choose_plan(
            self.epsilon,
            self.horizon,
            expectation=self.expectation,
            block=self.block,
            fanout=self.fanout,
            consistent=self.consistent,
            smoother=self.smoother,
            largest=self.largest_block,
            hierarchy=self.allowed_hierarchy,
            bound=self.grid.top,
        )

    def plan_of(self, choice: PlanChoice) -> StreamPlan:
        """The plan that was chosen before."""
        block, fanout, hierarchy, *fitted = choice
        smoother = smoother_of_text(*fitted) if fitted else self.smoother
        return StreamPlan(self.horizon, block, fanout, self.consistent, smoother, hierarchy)

    @property
    def allowed_hierarchy(self) -> str:
        """The setting, but only trees if no bound of θ is known, which tents need."""
        uncapped = not getattr(self.threshold, "cap", True)
        return "tree" if uncapped and self.hierarchy == "auto" else self.hierarchy

    @property
    def first_epoch(self) -> int:
        """Values of the first epoch: all of the horizon if the warm-up is not much shorter."""
        if _EPOCH_GROWTH**2 * self.warmup >= self.horizon:
            return self.horizon
        return self.next_epoch(max(self.warmup, SHORTEST_WARMUP))

    def next_epoch(self, evidence: int) -> int:
        """Values of an epoch that was learnt from so many: four times as many, up to the horizon."""
        return min(_EPOCH_GROWTH * evidence, self.horizon)

    def epoch_behind_shift(self, evidence: int) -> int:
        """Values of an epoch after a shift: no more than it was learnt from. Then epochs grow again."""
        return max(min(evidence, self.horizon // _EPOCH_GROWTH), self.block if isinstance(self.block, int) else 1)

    def share(self, length: int, known: float) -> Fraction:
        """Of the ε of an epoch's values, what the next epoch is told. θ was learnt from `known` information: ε times
        values.
        """
        known = 0.0 if math.isinf(self.epsilon) else known / self.epsilon
        possible = tuple(share for share in SHARES if self._may_spend(share))
        return renewal_share(length, self.next_epoch(length), known, possible)

    def _may_spend(self, share: Fraction) -> bool:
        """Whether the noise of no answer is too large for integers, whatever θ is."""
        costs = self.costs(self.renewal_cost(share), self.horizon)
        return all(_sensitivity(name, self.grid.top) <= LARGEST_SCALE * cost for name, cost in costs.items())

    def former_share(self, length: int) -> Fraction:
        """The same in streams that began before it followed from what is known."""
        return _FORMER_GROWING_SHARE if _EPOCH_GROWTH * length <= self.horizon else _FORMER_SHARE

    def epoch(self, length: int, share: Fraction) -> Settings:
        """What an epoch is published with: its length as horizon, and the ε that its tree has."""
        return replace(self, horizon=length, epsilon=share_below(self.epsilon, 1 - share))

    @property
    def begun(self) -> Settings:
        """What the first epoch is published with."""
        length = self.first_epoch
        return self.epoch(length, self.share(length, information(self.epsilon, self.warmup)))

    def renewal_cost(self, share: Fraction) -> float:
        """ε for what is learnt from an epoch."""
        return share_below(self.epsilon, share)

    @property
    def delta(self) -> float:
        """δ of the promise: that of the threshold, and 0 for most of them."""
        return float(getattr(self.threshold, "delta", 0.0))

    def shares(self, count: int) -> dict[str, Fraction]:
        """What each private answer about `count` values costs, as shares of the ε for all of them."""
        if not self.measure_start:
            return {"threshold": Fraction(1)}
        lengths = run_lengths(count)
        steady = 2 if count >= self.horizon else 1
        counted = _COUNTED_SHARE if isinstance(self.threshold, PredictedError) else _COUNTED_ALONE
        tail = steady * TAIL_SHARE
        measured = {"mean": MEAN_SHARE, "above": counted * tail, "excess": (1 - counted) * tail}
        measured |= {"runs of 1": SINGLES_SHARE}
        measured |= {f"runs of {length}": steady * RUNS_SHARE / (len(lengths) - 1) for length in lengths[1:]}
        return {"threshold": 1 - sum(measured.values(), Fraction(0)), **measured}

    def costs(self, epsilon: float, count: int) -> dict[str, float]:
        """The ε of each private answer: its share, rounded down."""
        return {name: share_below(epsilon, share) for name, share in self.shares(count).items()}

    @property
    def spends(self) -> Spending:
        """(ε, δ) for one replaced value.

        The value is in the warm-up, whose answers add up, or it is published; which of the two, its position says.
        """
        costs = self.costs(self.epsilon, self.warmup)
        if isinstance(self.threshold, PublicThreshold):
            costs["threshold"] = 0.0
        elif not self.threshold.private:
            costs["threshold"] = math.inf
        delta = {"threshold": self.delta}
        warmup = [Spending(Unit.VALUE, Neighbours.REPLACED, cost, delta.get(name, 0.0)) for name, cost in costs.items()]
        published = Spending(Unit.VALUE, Neighbours.REPLACED, self.epsilon)
        return in_parallel([in_sequence(warmup), published])

    def spent_in_epoch(self, length: int, share: Fraction) -> Spending:
        """(ε, δ) for one replaced value of an epoch: its tree and what is learnt from it, at most ε together."""
        costs = [self.epoch(length, share).epsilon, *self.costs(self.renewal_cost(share), length).values()]
        return in_sequence([Spending(Unit.VALUE, Neighbours.REPLACED, cost) for cost in costs])

    def describe(self) -> dict[str, Any]:
        """All settings as JSON."""
        facts = asdict(self)
        facts["smoother"] = {"name": self.smoother.name, **asdict(self.smoother)}
        facts["threshold"] = {"kind": self.threshold.kind, **asdict(self.threshold)}
        return facts

    @property
    def digest(self) -> str:
        """What the noise of a stream depends on, next to its key."""
        facts = self.describe()
        if self.hierarchy == "tree":
            del facts["hierarchy"]
        if self.fit_smoother == self._may_fit:
            del facts["fit_smoother"]  # streams from before it could be chosen go on with their noise
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @property
    def _may_fit(self) -> bool:
        return self.renew and self.smoother == Recent()

    @classmethod
    def read(cls, facts: dict[str, Any]) -> Settings:
        """The settings that `describe` described."""
        facts = dict(facts)
        threshold = dict(facts.pop("threshold"))
        facts.setdefault("fit_smoother", facts.get("renew", False) and facts["smoother"]["name"] == Recent.name)
        return cls(
            **{
                **facts,
                "grid": Grid(**facts["grid"]),
                "smoother": smoother_of(**facts["smoother"]),
                "threshold": THRESHOLDS_BY_KIND[threshold.pop("kind")](**threshold),
                "expectation": Expectation(**facts["expectation"]),
            }
        )


def information(epsilon: float, count: int) -> float:
    """Values times ε. Without noise nothing has to be remembered."""
    return 0.0 if math.isinf(epsilon) else epsilon * count


def check_possible(settings: Settings) -> None:
    """Refuse now what some θ would make impossible later: when it fails must not depend on data."""
    top, plan = settings.grid.top, settings.plan
    if top * settings.horizon > 1 << 62 or top * settings.warmup > 1 << 62 or top * plan.block > 1 << 60:
        raise InvalidParameter(
            "bound", "has too many steps for sums over the horizon", "Use a coarser resolution or a shorter horizon."
        )
    sizes = {plan.block, settings.largest_block if settings.block is None else plan.block, 1}
    smallest = settings.epoch(settings.first_epoch, max(SHARES)).epsilon if settings.renew else settings.epsilon
    budgets = {(settings.epsilon, settings.warmup)} if settings.warmup else set()
    if settings.renew:
        budgets.add((settings.renewal_cost(settings.former_share(settings.horizon)), settings.horizon))
    for theta in (1, top):
        plan.perturber(smallest, theta)
        for block in sizes:
            replace(plan, block=block, hierarchy="tree").perturber(smallest, theta)
        for epsilon, count in budgets:
            for name, cost in settings.costs(epsilon, count).items():
                DiscreteLaplace(cost, _sensitivity(name, theta))


def _sensitivity(name: str, theta: int) -> int:
    """By how much one value may move an answer; of the choice of θ, twice a unit of its scores."""
    known = {"threshold": 1 << 17, "above": 1, "excess": EXCESS_REACH * theta, "runs of 1": SQUARE_STEPS**2}
    return known.get(name, theta)
