"""Averages as a fit sees them: how far values are from the middle of those that are asked about, added up.

AVG is a sum S over a count C, and its error is that of S − a·C divided by C, where a is the average itself: what S and
C have in common cancels. A fit that looked at S would believe that an average over values from 5 to 8 is known well as
soon as their count is, because hardly anything of S is lost if all of them are taken to be 5. So a fit looks at
S − m·C, m being the middle of the values that conditions allow, and at its error relative to how far these are from m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable.arrays import Booleans, Floats
from deniable.queries.question.conditions import AttributeKey
from deniable.queries.question.formula import Binary, Formula, Moment, Number, moments_of
from deniable.queries.question.question import MomentOf, Question, Term


def with_centred_averages(question: Question) -> Question:
    """The same question; sums that are only divided by counts are of distances from the middle of what is summed."""
    averaged: set[int] = set()
    others: set[int] = set()
    for output in question.outputs:
        (averaged if _is_average(output.formula, question) else others).update(moments_of(output.formula))
    moments = tuple(
        _centred(moment) if number in averaged - others - question.counts else moment
        for number, moment in enumerate(question.moments)
    )
    return replace(question, moments=moments)


def _is_average(formula: Formula, question: Question) -> bool:
    """Whether it is a sum divided by a count, plus a constant."""
    if isinstance(formula, Binary) and formula.sign == "+" and isinstance(formula.left, Number):
        return _is_average(formula.right, question)
    if not isinstance(formula, Binary) or formula.sign != "/" or not isinstance(formula.right, Moment):
        return False
    return isinstance(formula.left, Moment) and formula.right.number in question.counts


def _centred(moment: MomentOf) -> MomentOf:
    """The same sum, less the middle for every row; as it is where several attributes are multiplied."""
    attributes = {attribute for term in moment.terms for attribute in term.measures}
    if len(attributes) != 1 or any(term.public for term in moment.terms):
        return moment
    (attribute,) = attributes
    size = next(term.measures[attribute].size for term in moment.terms if term.measures)
    alike: dict[tuple[object, ...], list[Term]] = {}
    for term in moment.terms:
        key = tuple((name, mask.tobytes()) for name, mask in sorted(term.conditions.items()))
        alike.setdefault(key, []).append(term)
    summed = [_added_up(terms, attribute, size) for terms in alike.values()]
    asked = np.concatenate(
        [values[_allowed(terms[0], attribute, size)] for values, terms in zip(summed, alike.values(), strict=True)]
    )
    middle = (asked.min() + asked.max()) / 2 if asked.size else 0.0
    return replace(
        moment,
        terms=tuple(
            replace(terms[0], coefficient=1.0, measures={attribute: values - middle})
            for values, terms in zip(summed, alike.values(), strict=True)
        ),
    )


def _added_up(terms: Sequence[Term], attribute: AttributeKey, size: int) -> Floats:
    """What terms under the same conditions add up to, at every value."""
    total: Floats = np.zeros(size)
    for term in terms:
        total = total + term.coefficient * term.measures.get(attribute, np.ones(size))
    return total


def _allowed(term: Term, attribute: AttributeKey, size: int) -> Booleans:
    return np.asarray(term.conditions.get(attribute, np.ones(size)) != 0)
