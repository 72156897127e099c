"""What a mixer would add to the promise, in words: a statement about a deployment, not about the reports."""

from __future__ import annotations

from dataclasses import dataclass

from deniable.collection import Collection
from deniable.simulation import has_noise
from deniable.tables.specification.runs import largest_epsilon

HEADING = "If a mixer shuffles"


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
    return [
        "Reports under user ids, as this collection sends them, are not mixed: for them there is no such claim.",
        "If all of a user's reports travel as one message under a random name of her own, and somebody whom she "
        f"trusts strips addresses and hands on {mixer.people:,} such messages in a random order, an analyst who sees "
        f"them learns at most ε = {smaller:.3g} with δ = {mixer.delta:g}, instead of ε = {epsilon:.4g}.",
        "Against the mixer, and against anybody who sees messages before him, the promise above stays what it is.",
    ]


def _no_claim(collection: Collection) -> str | None:
    if not has_noise(largest_epsilon(collection)):
        return "reports without noise are the rows themselves, in any order."
    if any(table.public for table in collection.tables):
        return "public columns travel with a message, and may tell whose it is."
    if collection.rounds is not None and collection.rounds.answered > 1:
        return "she answers several rounds, and messages under one name belong together; one message could be mixed."
    return None
