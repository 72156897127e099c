"""Which words do many people have? A walk down the tree of prefixes, level by level.

Every level has reports of its own people. The best prefixes of a level are extended by every byte that may follow, and
the extensions are counted among the reports of the next level, as in PEM [WLJ21]. Three things differ from it:

- A prefix is kept for its count and for those of the prefixes it came from. Counts fall on the way down, so its
  estimate is the last value of the isotonic regression along its path.
- A word that has ended is complete in all longer levels. It is estimated from all of their reports together.
- A word is listed only if that estimate is above a threshold: with s supporting reports,

    P(Binomial(reports of these levels, q) ≥ s) ≤ α / (levels · words tested at this level)

A word that nobody has is supported by each report with the chance q, independently. What is tested at a level follows
from reports of shorter prefixes, so by the union bound the chance that any listed word is nobody's is at most α.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.queries.words.prefixes import Prefixes, extensions, first_prefixes
from deniable.tables.bulk.word_columns import prefix_numbers
from deniable.tables.designs.views import Design, View
from deniable.tables.schema.text import Text
from deniable.wording import counted

FALSE_POSITIVES = 0.05
"""The chance that some word is listed which nobody has."""
MOST_COUNTED_PREFIXES = 2**15
"""Prefixes that are counted at one level."""
MOST_FOUND = 2_000
"""Words that are listed at most."""
WORTH_TESTING = 1.0
"""Ended words below so many standard errors at their first level are not looked at further."""


class Supports(NamedTuple):
    """How many reports of a view support each of some cells, and how many reports it has."""

    counts: Integers
    reports: int


CountSupports = Callable[[View, Integers], Supports]


@dataclass(frozen=True, slots=True)
class FoundWord:
    """A word that is listed: how many of the reports that show it support it, and how many had to."""

    word: str
    share: float
    """The estimated share of people who have it."""
    threshold: float
    """The share from which on it would have been listed."""


@dataclass(frozen=True, slots=True)
class FoundWords:
    """What a walk found, the most frequent first."""

    words: tuple[FoundWord, ...]
    looked_at: int
    """How many prefixes were counted."""
    tested: int
    """How many words were compared with a threshold."""
    thresholds: tuple[float, float]
    """The lowest and the highest share from which on words were listed."""
    people: int
    false_positives: float = FALSE_POSITIVES

    @property
    def note(self) -> str:
        """What a reader of the list should know."""
        low, high = (share * self.people for share in self.thresholds)
        span = f"{high:,.0f} people" if round(low) == round(high) else f"{low:,.0f} to {high:,.0f} people, by length"
        return (
            f"{counted(len(self.words), 'word')} estimated above the threshold of {span}; others may be frequent too. "
            f"With a chance of at most {self.false_positives:.0%}, some listed word is nobody's"
        )


def find_words(
    domain: Text,
    design: Design,
    count: CountSupports,
    people: int,
    *,
    start: bytes = b"",
    false_positives: float = FALSE_POSITIVES,
    most_candidates: int = MOST_COUNTED_PREFIXES,
) -> FoundWords:
    """The words that begin with some bytes and are frequent enough to be told from noise."""
    walk = _Walk(domain, tuple(design), count, false_positives / len(domain.levels))
    prefixes = first_prefixes(domain, start)
    path = np.zeros((prefixes.shape[0], 0))
    for level, view in zip(domain.levels, walk.views, strict=True):
        if level < prefixes.shape[1] or not prefixes.size:
            continue
        if level > prefixes.shape[1]:
            prefixes, parents = extensions(domain, prefixes)
            path = path[parents]
        shares = walk.shares(view, prefixes)
        path = np.concatenate((path, shares[:, None]), axis=1)
        ended = prefixes[:, -1] == 0 if level < domain.max_length else np.ones(len(prefixes), dtype=bool)
        walk.test(prefixes[ended], shares[ended], level)
        best = _best(path[~ended], most_candidates // len(domain.followers(ord("a"))))
        prefixes, path = prefixes[~ended][best], path[~ended][best]
    return walk.result(people)


def _best(path: Floats, most: int) -> Integers:
    """The prefixes with the highest counts, given those on the way to them; none that nobody seems to have."""
    if not path.size:
        return np.zeros(0, dtype=np.int64)
    backwards = np.cumsum(path[:, ::-1], axis=1) / np.arange(1, path.shape[1] + 1)
    scores = backwards.min(axis=1)  # isotonic regression of falling counts: its last value
    order: Integers = np.argsort(-scores, kind="stable")[:most]
    return np.asarray(order[scores[order] > 0.0])


class _Walk:
    """What is known while prefixes are followed."""

    def __init__(self, domain: Text, views: Sequence[View], count: CountSupports, level_rate: float) -> None:
        self.domain, self.views, self._count, self._rate = domain, views, count, level_rate
        self._lengths = dict(zip(domain.levels, views, strict=True))
        self.looked_at = self.tested = 0
        self._found: list[FoundWord] = []
        self._thresholds: list[float] = []

    def shares(self, view: View, prefixes: Prefixes) -> Floats:
        """The estimated share of people with each prefix."""
        self.looked_at += len(prefixes)
        supports = self._count(view, prefix_numbers(prefixes))
        p, q = float(view.oracle.p), float(view.oracle.q)
        return (supports.counts / max(supports.reports, 1) - q) / (p - q)

    def test(self, words: Prefixes, shares: Floats, level: int) -> None:
        """List those of some words, complete from a level on, that nobody's word would hardly equal."""
        view = self._lengths[level]
        p, q = float(view.oracle.p), float(view.oracle.q)
        longer = [
            (length, other)
            for length, other in self._lengths.items()
            if length >= level and (other.oracle.p, other.oracle.q) == (view.oracle.p, view.oracle.q)
        ]
        tests = len(words)
        if not tests:
            return
        reports = max(self._count(view, np.zeros(0, dtype=np.int64)).reports, 1)
        error = np.sqrt(q * (1 - q) / reports) / (p - q)
        words = words[shares > WORTH_TESTING * error]
        counts, total = np.zeros(len(words), dtype=np.int64), 0
        for length, other in longer:
            padded = np.zeros((len(words), length), dtype=np.uint8)
            padded[:, : words.shape[1]] = words
            supports = self._count(other, prefix_numbers(padded))
            counts, total = counts + supports.counts, total + supports.reports
        from scipy.stats import binom  # takes longer to import than most questions to answer

        needed = int(binom.isf(self._rate / tests, total, q)) + 1 if q > 0.0 else 1
        self.tested += tests
        self._thresholds.append((needed / max(total, 1) - q) / (p - q))
        for word, support in zip(words, counts.tolist(), strict=True):
            text = self.domain.decode(int.from_bytes(word.tobytes().ljust(self.domain.max_length, b"\0"), "big"))
            if support >= needed and text is not None:
                self._found.append(FoundWord(text, (support / total - q) / (p - q), self._thresholds[-1]))

    def result(self, people: int) -> FoundWords:
        """All that were listed."""
        listed = sorted(self._found, key=lambda word: -word.share)[:MOST_FOUND]
        spread = (min(self._thresholds, default=1.0), max(self._thresholds, default=1.0))
        return FoundWords(tuple(listed), self.looked_at, self.tested, spread, people)
