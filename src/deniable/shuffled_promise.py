"""What a mixer adds to the promise, in words: a statement about a deployment, not about the reports."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

from deniable.collection import Collection
from deniable.simulation import has_noise
from deniable.tables.schema.pseudonyms import PSEUDONYM
from deniable.tables.specification.runs import largest_epsilon

HEADING = "If a mixer shuffles"
_UPWARDS = Context(prec=3, rounding=ROUND_CEILING)
_SMALLEST_SHOWN = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Mixer:
    """Somebody trusted who hands on the messages of so many people without addresses and in a random order."""

    people: int
    delta: float


def shuffled_words(collection: Collection, mixer: Mixer) -> list[str]:
    """What an analyst can learn of a shuffled collection, or why nothing can be said."""
    reason = _no_claim(collection)
    if reason is not None:
        return [f"No claim: {reason}"]
    from deniable.shuffling import shuffled_epsilon

    epsilon = float(collection.spends.epsilon)
    smaller = shuffled_epsilon(epsilon, mixer.people, mixer.delta)
    several = collection.rounds is not None and collection.rounds.answered > 1
    linked = (
        "She has the same name in all rounds, so they count as one message, and the number is about all of them "
        "together. It holds if who answers does not depend on data, and every round is handed on once."
    )
    return [
        "All of a user's reports of a round travel as one message under a random name of her own.",
        f"If somebody whom she trusts strips addresses and times and hands on the messages of {mixer.people:,} people "
        "who report honestly, in a random order, an analyst who sees only these learns at most "
        f"ε = {rounded_up(smaller)} with δ = {mixer.delta:g}, instead of ε = {epsilon:.4g}.",
        *([_weak(mixer)] if mixer.delta * mixer.people >= 1 else []),
        *([linked] if several else []),
        "Against the mixer, and against anybody who sees messages before they are mixed, or some of them apart from "
        "the others, the promise above stays what it is.",
    ]


def _weak(mixer: Mixer) -> str:
    return (
        f"This δ promises little: to show everything about one of {mixer.people:,} people, drawn at random, keeps it. "
        f"Ask for one far below {1 / mixer.people:.1g}."
    )


def rounded_up(epsilon: float) -> str:
    """Three digits, never below the number itself.

    >>> rounded_up(0.23401), rounded_up(4.0), rounded_up(12.34), rounded_up(1e-20)
    ('0.235', '4', '12.4', '0.000001')
    """
    return f"{_UPWARDS.create_decimal(max(Decimal(epsilon), _SMALLEST_SHOWN)).normalize():f}"


def _no_claim(collection: Collection) -> str | None:
    if not has_noise(largest_epsilon(collection)):
        return "reports without noise are the rows themselves, in any order."
    if collection.ids != PSEUDONYM:
        return (
            "reports travel under user ids, which say whose each of them is in whatever order they come. "
            'With ids = "pseudonym" they could be mixed.'
        )
    return None
