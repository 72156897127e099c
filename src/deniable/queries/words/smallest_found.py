"""How many people have to have a word for it to be found: a forecast, before anything is collected."""

from __future__ import annotations

import math

from deniable.errors import QueryRefused
from deniable.queries.question.listed_words import texts_of
from deniable.queries.words.listing import Listed, listed_for
from deniable.queries.words.prefix_walk import FALSE_POSITIVES, MOST_COUNTED_PREFIXES, FoundWords
from deniable.tables.designs.views import Design
from deniable.tables.schema.text import Text
from deniable.tables.specification.specification import Specification

LIKELY = 0.9
"""The chance with which such a word passes each of the two tests."""


def smallest_found(domain: Text, design: Design, people: float, length: int) -> float:
    """About the smallest share of people with a word of so many bytes at which it is likely to be found.

    It has to be among the prefixes that are kept at every level, and above the threshold in those that show it whole.
    Prefixes that it shares with other words make the first of these easier.

    >>> import deniable as dn
    >>> searches = dn.Collection(dn.Table("searches", word=dn.Text(max_length=12)), epsilon=4.0)
    >>> design = searches.design_of("searches")
    >>> f"{smallest_found(dn.Text(max_length=12), design, 1_000_000, 6):.2%}"
    '0.37%'
    """
    views = dict(zip(domain.levels, design, strict=True))
    complete = [level for level in views if level > length] or [domain.max_length]
    kept = MOST_COUNTED_PREFIXES / len(domain.followers(ord("a")))
    errors = {level: _error(view.oracle.p, view.oracle.q, people * view.probability) for level, view in views.items()}
    followed = max((errors[level] for level in views if level <= length), default=0.0)
    shown = 1 / math.sqrt(sum(1 / errors[level] ** 2 for level in complete)) if all(errors.values()) else 0.0
    from scipy.stats import norm  # takes longer to import than most questions to answer

    slack = norm.ppf(LIKELY)
    walk = (norm.isf(kept / MOST_COUNTED_PREFIXES) + slack) * followed
    test = (norm.isf(FALSE_POSITIVES / len(views) / kept) + slack) * shown
    return float(max(walk, test, 1 / people))


def _error(p: object, q: object, reports: object) -> float:
    """The standard error of the share of a prefix that nobody has."""
    kept, spilled = float(p), float(q)  # type: ignore[arg-type]
    return math.sqrt(spilled * (1 - spilled) / float(reports)) / (kept - spilled)  # type: ignore[arg-type]


def forecast_words(text: str, collection: Specification, people: float) -> Listed:
    """The collection as a forecast sees it; a question for words that nobody named says how common they have to be."""

    def unknown(table: str, attribute: str, start: bytes) -> FoundWords:  # noqa: ARG001 - whatever they begin with
        domain = texts_of(collection)[table, attribute]
        length = domain.max_length // 2
        share = smallest_found(domain, collection.design_of(table), people, length)
        problem = (
            "which words are frequent is not known before there are reports. A word of "
            f"{length} bytes is likely to be found if about {share * people:,.0f} of {people:,.0f} people have it"
        )
        raise QueryRefused(problem, f"For the error of a count, name words: WHERE {attribute} IN ('news', 'mail').")

    return listed_for(text, collection, unknown)
