"""Errors of levels and of changes between rounds, under each way to spend the same ε over a lifetime.

With c = rounds/answers, a round that rotates is answered by users/c people who stand for all: a sum has c times the
error that so many people alone would have, and the draw of who answers adds to it (`prediction.predict`).

A change is a difference of two levels. Where people answer anew, the two are independent: √2 times the error of a
level. Where others answer, their noise is independent, but whoever answers one round does not answer the other: the
draws of who answers have the correlation −1/(rounds − 1), as far as people stay. Where answers are memoised, whoever
stays has the same permanent answer z in both rounds, and only the instantaneous noise is left: with S whether a report
supports a cell,

    Var(S₂ − S₁) = 2·E[Var(S | z)] = 2·(p_i·(1 − p_i)/g + q_i·(1 − q_i)·(g − 1)/g),

against 2·Var(S) for those who moved.

The modes are compared at the same ε over a lifetime. For memoised rounds that is d·ε∞, which holds for two people who
change in the same rounds; for any two people it is more, and both are stated. Of the ways to divide it, the one with
the smallest error of a change is taken: many buckets need a small ε∞, few ones have more noise. At ε∞·d = 8 and with
5 % who change, that is 0.30 of the error of a fresh change over 2 rounds (ε∞ = 4) and 0.07 over 12 (3 buckets, ε∞ =
2.67), for one hashed view.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from deniable.accounting import share_below
from deniable.errors import InvalidParameter
from deniable.mechanisms.memoised_response import MemoisedResponse
from deniable.queries.forecasts.forecast import forecast
from deniable.queries.forecasts.prediction import WHO_ANSWERS, Prediction
from deniable.tables.schema.attributes import Table
from deniable.tables.schema.rounds import FRESH, MEMOISED, ROTATING, ROUND_COLUMN, Rounds, stands_for
from deniable.tables.specification.lifetime_promises import memoised_promises
from deniable.tables.specification.specification import Specification
from deniable.wording import counted

CHANGING = 0.05
"""The share of people who change from one round to the next, unless said."""
_MOST_TRIED_BUCKETS = 64
_LARGEST_ROUND_SHARE = 0.99
"""Of ε∞: rounds that repeated the permanent answer as it is would show every change."""


@dataclass(frozen=True, slots=True)
class RoundErrors:
    """What one number of a question costs and how far it is off, under one mode."""

    mode: str
    one_round: float
    lifetime: float
    """The ε of a lifetime, for any two people."""
    name: str
    level: float
    change: float
    same_changes: float | None = None
    """In memoised rounds, the ε of a lifetime for two people who change in the same rounds."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The cells of a table's row."""
        lifetime = f"{self.lifetime:.4g}"
        if self.same_changes is not None:
            lifetime = f"{self.same_changes:.4g} ({lifetime})"
        return self.mode, f"{self.one_round:.3g}", lifetime, self.name, f"{self.level:,.4g}", f"{self.change:,.4g}"


ROUND_HEADER = ("mode", "ε a round", "ε a lifetime", "answer", "level ±", "change ±")
MEMOISED_NOTE = "memoised: for two people who change in the same rounds (for any two people)"


def round_errors(
    collection: Specification, text: str, users: int, *, changing: float = CHANGING
) -> tuple[RoundErrors, ...]:
    """For the lifetime ε and the rounds of a collection: levels and changes under each mode."""
    if collection.rounds is None:
        return ()
    return tuple(errors for mode in modes_of(collection, changing) for errors in _errors(mode, text, users, changing))


def modes_of(collection: Specification, changing: float = CHANGING) -> list[Specification]:
    """The collection under each mode, for the same ε over a lifetime; its own mode as it is.

    >>> import deniable as dn
    >>> weekly = dn.Rounds(12)
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=6.0, name="shop", rounds=weekly)
    >>> [(mode.rounds.mode, round(mode.epsilon, 2)) for mode in modes_of(shop)]
    [('rotating', 6.0), ('fresh', 0.5), ('memoised', 2.97)]
    """
    rounds = collection.rounds
    if rounds is None:
        return []
    collection = _as_collected(collection)
    lifetime = float(collection.spends.epsilon) if rounds.mode != MEMOISED else same_changes(collection)
    count, every, answers = rounds.count, rounds.every, rounds.answers
    once = share_below(lifetime, Fraction(1, count))
    made = [
        collection.with_settings(epsilon=lifetime, rounds=Rounds(count, every, ROTATING, answers)),
        collection.with_settings(epsilon=once, rounds=Rounds(count, every, FRESH)),
        _best_memoised(collection, lifetime, changing),
    ]
    return [
        collection if mode.rounds.mode == rounds.mode else mode for mode in made if mode is not None and mode.rounds
    ]


def _as_collected(collection: Specification) -> Specification:
    """The specification without the column of rounds that questions see."""
    tables = [
        Table(table.name, table.many, table.tau, **{n: a for n, a in table.attributes.items() if n != ROUND_COLUMN})
        for table in collection.tables
    ]
    return type(collection)(*tables, **collection.settings)


def same_changes(collection: Specification) -> float:
    """The ε of a lifetime in memoised rounds, for two people who change in the same rounds."""
    rounds = collection.rounds
    if rounds is None or rounds.mode != MEMOISED:
        return float(collection.spends.epsilon)
    return sum(
        float(memoised_promises(collection, table.name, rounds.count).same_changes)
        * collection.reports_per_user(table.name)
        for table in collection.tables
    )


def _best_memoised(collection: Specification, lifetime: float, changing: float) -> Specification | None:
    """Memoised rounds whose changes have the smallest error, with d·ε∞ = `lifetime`; None if there are too many views.

    Tried on one hashed view. A round repeats as much of the permanent answer as it may: levels and changes gain by it.
    """
    rounds = collection.rounds
    if rounds is None or rounds.mode == MEMOISED or not math.isfinite(lifetime):
        return collection if rounds is not None and rounds.mode == MEMOISED else None
    share = min(collection.epsilon_per_report(table.name) for table in collection.tables) * rounds.answers
    share /= collection.epsilon

    def error(buckets: int) -> float:
        permanent = share * lifetime / min(buckets, rounds.count)
        mechanism = MemoisedResponse(_LARGEST_ROUND_SHARE * permanent, permanent, buckets)
        variance = 1 / buckets * (1 - 1 / buckets) / float(mechanism.alone.p - Fraction(1, buckets)) ** 2
        return variance * ((1 - changing) * _left(mechanism) + changing)

    buckets = min(range(2, _MOST_TRIED_BUCKETS + 1), key=error)
    permanent = share_below(lifetime, Fraction(1, min(buckets, rounds.count)))
    few = buckets if buckets < rounds.count else None  # with as many buckets as rounds, d is the number of rounds
    kept = Rounds(rounds.count, rounds.every, MEMOISED, permanent=permanent, changes_are_public=True, buckets=few)
    try:
        return collection.with_settings(epsilon=_LARGEST_ROUND_SHARE * permanent, rounds=kept)
    except InvalidParameter:
        return None


def rounds_in_words(collection: Specification, text: str, users: int) -> tuple[str, ...]:
    """Levels and changes under each mode, in lines; who answers where rounds rotate."""
    rounds = collection.rounds
    if rounds is None or not users:
        return ()
    errors = round_errors(collection, text, users)
    lines = [
        answering(collection, users),
        f"{'mode':10} {'ε a lifetime':>16} {'answer':>12} {'level ±':>12} {'change ±':>12}",
    ]
    for each in errors:
        mode, _, lifetime, name, level, change = each.shown
        lines.append(f"{mode:10} {lifetime:>16} {name:>12} {level:>12} {change:>12}")
    return (*lines, MEMOISED_NOTE) if any(each.same_changes is not None for each in errors) else tuple(lines)


def answering(collection: Specification, users: int) -> str:
    """How many people answer a round.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0, name="shop", rounds=dn.Rounds(12))
    >>> answering(shop, 100_000)
    'rounds: 12, and about 8,333 of 100,000 users answer each'
    """
    rounds = collection.rounds
    if rounds is None:
        return ""
    whom = f"about {round(users / stands_for(rounds)):,} of" if rounds.mode == ROTATING else "all"
    return f"rounds: {rounds.count:,}, and {whom} {counted(users, 'user')} answer each"


def _errors(specification: Specification, text: str, users: int, changing: float) -> list[RoundErrors]:
    rounds = specification.rounds
    assert rounds is not None  # noqa: S101 - the caller has looked
    spent = sum(
        specification.epsilon_per_report(table.name) * specification.reports_per_user(table.name)
        for table in specification.tables
    )
    kept = _kept_share(specification) if rounds.mode == MEMOISED else 1.0
    same = same_changes(specification) if rounds.mode == MEMOISED else None

    def change(prediction: Prediction) -> float:
        drawn = prediction.causes.get(WHO_ANSWERS, 0.0) / max(rounds.count - 1, 1)
        return prediction.stderr * math.sqrt(2 * ((1 - changing) * (kept + drawn) + changing))

    return [
        RoundErrors(
            rounds.mode,
            spent,
            float(specification.spends.epsilon),
            prediction.name,
            prediction.stderr,
            change(prediction),
            same,
        )
        for prediction in forecast(specification, text, users).predictions
    ]


def _kept_share(specification: Specification) -> float:
    """The share of a level's variance that is left in a change of people who stay: the largest over views."""
    shares = [0.0]
    for table in specification.tables:
        permanent = specification.permanent_per_report(table.name)
        design = specification.design_of(table.name)
        for outcomes, oracle in {view.oracle.outcomes: view.oracle for view in design}.items():
            if outcomes > 1:
                shares.append(_left(MemoisedResponse(oracle.epsilon, max(permanent, oracle.epsilon), outcomes)))
    return max(shares)


def _left(mechanism: MemoisedResponse) -> float:
    """The share of the variance of an answer that is left when its permanent answer is known."""
    p, q, outcomes = float(mechanism.p_instantaneous), float(mechanism.q_instantaneous), mechanism.k
    left = (p * (1 - p) + (outcomes - 1) * q * (1 - q)) / outcomes
    return left / (1 / outcomes * (1 - 1 / outcomes))
