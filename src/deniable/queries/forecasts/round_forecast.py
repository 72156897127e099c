"""Errors of levels and of changes between rounds, under each way to spend the same ε over a lifetime.

With c = rounds/answers, a round that rotates is answered by users/c people who stand for all: a sum has c times the
error that so many people alone would have. The draw of who answers comes on top; it is small next to the noise.

A change is a difference of two levels. Where people answer anew, or others answer, the two are independent: √2 times
the error of a level. Where answers are memoised, whoever stays has the same permanent answer z in both rounds, and only
the instantaneous noise is left: with S whether a report supports a cell,

    Var(S₂ − S₁) = 2·E[Var(S | z)] = 2·(p_i·(1 − p_i)/g + q_i·(1 − q_i)·(g − 1)/g),

against 2·Var(S) for those who moved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from deniable.accounting import share_below
from deniable.mechanisms.memoised_response import MemoisedResponse
from deniable.queries.forecasts.forecast import forecast
from deniable.queries.forecasts.prediction import Prediction
from deniable.tables.schema.rounds import FRESH, MEMOISED, ROTATING, Rounds
from deniable.tables.specification.specification import Specification

CHANGING = 0.05
"""The share of people who change from one round to the next, unless said."""


@dataclass(frozen=True, slots=True)
class RoundErrors:
    """What one number of a question costs and how far it is off, under one mode."""

    mode: str
    one_round: float
    lifetime: float
    name: str
    level: float
    change: float


def round_errors(
    collection: Specification, text: str, users: int, *, changing: float = CHANGING
) -> tuple[RoundErrors, ...]:
    """For the lifetime ε and the rounds of a collection: levels and changes under each mode.

    Memoised rounds are shown with the settings of the collection, if these are its mode.
    """
    rounds = collection.rounds
    if rounds is None:
        return ()
    if rounds.mode == MEMOISED:
        modes = [collection]
    else:
        lifetime = float(collection.spends.epsilon)
        once = share_below(lifetime, Fraction(1, rounds.count))
        rotating = replace(rounds, mode=ROTATING, answers=rounds.answers, cover=False)
        modes = [
            collection.with_settings(epsilon=lifetime, rounds=rotating),
            collection.with_settings(epsilon=once, rounds=Rounds(rounds.count, rounds.every, FRESH)),
        ]
    return tuple(errors for specification in modes for errors in _errors(specification, text, users, changing))


def _errors(specification: Specification, text: str, users: int, changing: float) -> list[RoundErrors]:
    rounds = specification.rounds
    assert rounds is not None  # noqa: S101 - the caller has looked
    spent = sum(
        specification.epsilon_per_report(table.name) * specification.reports_per_user(table.name)
        for table in specification.tables
    )
    factor = math.sqrt(2 * ((1 - changing) * _kept_share(specification) + changing))
    if rounds.mode != MEMOISED:
        factor = math.sqrt(2)
    predictions: tuple[Prediction, ...] = forecast(specification, text, users).predictions
    return [
        RoundErrors(
            rounds.mode,
            spent,
            float(specification.spends.epsilon),
            prediction.name,
            prediction.stderr,
            prediction.stderr * factor,
        )
        for prediction in predictions
    ]


def _kept_share(specification: Specification) -> float:
    """The share of a level's variance that is left in a change of people who stay: the largest over views."""
    if specification.rounds is None or specification.rounds.mode != MEMOISED:
        return 1.0
    shares = [0.0]
    for table in specification.tables:
        permanent = specification.permanent_per_report(table.name)
        design = specification.design_of(table.name)
        for outcomes, oracle in {view.oracle.outcomes: view.oracle for view in design}.items():
            if outcomes > 1:
                made = MemoisedResponse(oracle.epsilon, max(permanent, oracle.epsilon), outcomes)
                p, q = float(made.p_instantaneous), float(made.q_instantaneous)
                left = (p * (1 - p) + (outcomes - 1) * q * (1 - q)) / outcomes
                even = 1 / outcomes
                shares.append(left / (even * (1 - even)))
    return max(shares)
