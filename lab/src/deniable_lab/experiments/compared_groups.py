"""How often `Database.compare` calls equal groups different, and how often it finds a group that is.

Groups have the same rows, to the last one, so every "yes" is an error. What is counted is the share of releases with
any such error: Holm's procedure keeps it at 5 % however many pairs there are. Next to it, the same without correction.
Estimates of groups are correlated: those of private groups share reports, and those of memoised rounds share answers
that are kept for life.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import deniable as dn
from deniable.arrays import Integers
from deniable.queries.answers.group_comparison import chance_of
from deniable.queries.answers.result import Result

LEVEL = 0.05
EACH = 600
"""People in a group."""
PUBLIC, PRIVATE, JOINED, SHIFTED = "public, equal", "private, equal", "joined, equal", "private, one differs"
MEMOISED, ROTATING = "memoised rounds, equal", "rotating rounds, equal"
COUNT, MEAN = "SELECT COUNT(*) FROM users WHERE age < 5", "SELECT AVG(age) FROM users"
JOIN = "SELECT COUNT(*) FROM users JOIN teams USING (uid) WHERE age < 5"
_AGE = dn.Ordinal(0, 9)


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of groups, and what is compared."""

    groups: str
    question: str
    count: int
    epsilon: float

    @property
    def pairs(self) -> int:
        """How many comparisons there are."""
        return self.count * (self.count - 1) // 2


CASES = (
    Case(PUBLIC, COUNT, 4, 0.7),
    Case(PRIVATE, COUNT, 5, 2.0),
    Case(PRIVATE, MEAN, 3, 3.0),
    Case(JOINED, JOIN, 4, 4.0),
    Case(MEMOISED, COUNT, 3, 1.5),
    Case(ROTATING, COUNT, 4, 2.0),
    Case(SHIFTED, COUNT, 5, 2.0),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """What was found in all releases of a case."""

    case: Case
    releases: int
    pairs: int
    wrong: float
    """The share of releases in which equal groups are called different."""
    single: float
    """The same if each pair were tested alone at 5 %."""
    missed: float
    """The share of releases in which some simultaneous interval does not hold the truth."""
    discovered: float
    """Of pairs that differ, the share that is called different; not a number if none does."""


def measure(releases: int, seed: int, advance: Callable[[float], None]) -> Iterator[Compared]:
    """Every case."""
    for case in CASES:
        outcomes = []
        for release in range(releases):
            outcomes.append(one_release(case, seed + release))
            advance(1.0)
        wrong, single, missed, hits = np.array(outcomes).T
        discovered = float(np.nanmean(hits)) if not np.isnan(hits).all() else float("nan")
        yield Compared(case, releases, case.pairs, wrong.mean(), single.mean(), missed.mean(), discovered)


def one_release(case: Case, seed: int) -> tuple[float, float, float, float]:
    """Whether it has errors, with and without correction, whether it misses a truth, and the share that it finds."""
    return _outcome(*_compared(case, seed))


def _outcome(truth: list[float], answer: Result) -> tuple[float, float, float, float]:
    named = [word == "yes" for word in answer.groups["differ"]]
    estimates = answer.answers["second_minus_first"]
    equal = [difference == 0 for difference in truth]
    wrong = any(said and same for said, same in zip(named, equal, strict=True))
    single = any(chance_of(each) <= LEVEL and same for each, same in zip(estimates, equal, strict=True))
    missed = any(
        not each.interval[0] <= difference <= each.interval[1]
        for each, difference in zip(estimates, truth, strict=True)
    )
    hits = [said for said, same in zip(named, equal, strict=True) if not same]
    return float(wrong), float(single), float(missed), float(np.mean(hits)) if hits else float("nan")


def _compared(case: Case, seed: int) -> tuple[list[float], Result]:
    """The true differences of all pairs, and the answer of one release."""
    people = case.count * EACH
    group, ages = np.arange(people) % case.count, np.arange(people) // case.count % 10
    if case.groups == SHIFTED:
        ages = np.where(group == case.count - 1, np.minimum(ages, 4), ages)
    if case.groups in (MEMOISED, ROTATING):
        return [0.0] * case.pairs, _of_rounds(case, ages, seed)
    names = [f"g{number}" for number in range(case.count)]
    kind: dn.Public | dn.Categorical = dn.Public() if case.groups == PUBLIC else dn.Categorical(*names)
    teams = {"uid": np.arange(people), "team": np.array(names)[group]}
    rows: dict[str, Any]
    if case.groups == JOINED:
        tables = [dn.Table("users", age=_AGE), dn.Table("teams", team=kind)]
        rows = {"users": {"uid": teams["uid"], "age": ages}, "teams": teams}
    else:
        tables = [dn.Table("users", age=_AGE, team=kind)]
        rows = {"users": {**teams, "age": ages}}
    collection = dn.Collection(*tables, epsilon=case.epsilon, design="mg")
    reports = collection.perturb(**rows, source=dn.SeededSource(seed), simulation=True)
    level = [_truth(case.question, ages[group == number]) for number in range(case.count)]
    truth = [level[second] - level[first] for first, second in combinations(range(case.count), 2)]
    return truth, dn.connect(reports).compare(case.question, by="team")


def _truth(question: str, ages: Integers) -> float:
    return float(ages.mean() if question == MEAN else (ages < 5).sum())


def _of_rounds(case: Case, ages: Integers, seed: int) -> Result:
    """The same people in every round, with the same rows; where rounds rotate, each answers in one of them."""
    rounds = dn.Rounds(case.count)
    if case.groups == MEMOISED:
        rounds = dn.Rounds(case.count, mode="memoised", permanent=case.epsilon + 0.5, changes_are_public=True)
    collection = dn.Collection(
        dn.Table("users", age=_AGE), epsilon=case.epsilon, design="mg", name="rounds", coins="assigned", rounds=rounds
    )
    rows = {"uid": np.arange(ages.size) + 10**6 * seed, "age": ages}
    with TemporaryDirectory() as folder:
        for number in range(1, case.count + 1):
            collection.perturb(
                users=rows,
                out=Path(folder, "reports"),
                round=number,
                memory=Path(folder, "memory"),
                source=dn.SeededSource(seed * 100 + number),
                simulation=True,
            )
        return dn.connect(Path(folder, "reports")).compare(case.question, by="round")
