"""What an attacker may look at: every column, its bits and tails, pairs of columns, and scores over all of them.

A feature turns each run into a small number, its label. Where labels need thresholds or weights, these are learned from
one half of the runs; the other half is only measured with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from deniable.arrays import Integers
from deniable.audit.output import Column, Output

FEW_ENTRIES = 64
"""A column with at most so many different entries is taken entry by entry, others by ranges and bits."""
_QUANTILES = 32
_MOST_LABELS = 1 << 12
_ALL_PAIRS_UP_TO = 6
_WORD = 64
HINT = "hint"
"""A column of this name says which of the two inputs a report supports, as a server that knows them would read it."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A label from 0 on for every run."""

    name: str
    fact: bool
    labels: Callable[[Output], Integers]
    count: int
    words: Callable[[int], str]
    """A label in words."""


def features(output: Output, worlds: Integers) -> list[Feature]:
    """Everything to look at, learned from these runs and the inputs they had."""
    singles = [feature for name in (*output.answers, *output.facts) for feature in _single(output, name)]
    compact = {name: list(_compact(output, name)) for name in (*output.answers, *output.facts)}
    pairs = list(_pairs(output, compact))
    hints = [feature for name, parts in compact.items() if _field(name) == HINT for feature in parts]
    answers = [next(_single(output, name), None) for name in output.answers if _field(name) != HINT]
    inside = [pair for pair in pairs if not pair.fact and pair.name.count("[") == 2][:FEW_ENTRIES]
    sets = {"hints": hints, "answers": [feature for feature in answers if feature], "reports": inside}
    scores = [_score(f"score of {kind}", output, worlds, parts) for kind, parts in sets.items() if len(parts) > 1]
    return [*singles, *pairs, *scores, *_linear_score(output, worlds)]


def _group(name: str) -> str:
    """The report that a column belongs to: "orders[0]" of "orders[0].y"."""
    return name.rpartition(".")[0]


def _field(name: str) -> str:
    return name.rpartition(".")[2]


# One column ----------------------------------------------------------------------------------------------------------


def _single(output: Output, name: str) -> Iterator[Feature]:
    column, fact = output[name], name in output.facts
    values = np.unique(column)
    if values.size <= FEW_ENTRIES:
        if values.size > 1:
            yield _listed(name, name, fact, values)
        return
    yield _ranged(name, fact, lambda seen: seen[name], column)
    yield from (_bit(name, fact, bit) for bit in range(_bits(column)))


def _compact(output: Output, name: str) -> Iterator[Feature]:
    """A column with few labels, to be combined with others."""
    column, fact = output[name], name in output.facts
    values = np.unique(column)
    if values.size <= FEW_ENTRIES:
        if values.size > 1:
            yield _listed(name, name, fact, values)
        return
    quarters = np.unique(np.quantile(column, [0.25, 0.5, 0.75]))
    yield _cut(name, fact, lambda seen: seen[name], quarters)
    yield Feature(
        f"{name} modulo 4", fact, lambda seen: (_whole(seen[name]) & 3).astype(np.int64), 4, lambda label: f"{label}"
    )


def _listed(title: str, name: str, fact: bool, values: Column) -> Feature:
    def labels(output: Output) -> Integers:
        column = output[name]
        index = np.searchsorted(values, column)
        known = values[np.minimum(index, values.size - 1)] == column
        return np.where(known, index, values.size)

    return Feature(
        title, fact, labels, values.size + 1, lambda label: f"{values[label]:g}" if label < values.size else "new"
    )


def _ranged(title: str, fact: bool, read: Callable[[Output], Column], column: Column) -> Feature:
    """Quantiles, and ever fewer of the largest and smallest entries: tails that were cut show there."""
    ordered = np.sort(column)
    tails = [rank for rank in (1 << np.arange(_WORD - 1)) if rank < ordered.size // _QUANTILES]
    edges = [*np.quantile(ordered, np.arange(1, _QUANTILES) / _QUANTILES, method="nearest")]
    edges += [ordered[rank] for rank in tails] + [ordered[-rank] for rank in tails]
    # The end entries themselves as well: an end may hold a mass of its own.
    edges += [ordered[0] + 1, ordered[-1]] if ordered.dtype.kind in "iu" else []
    return _cut(title, fact, read, np.unique(edges))


def _cut(title: str, fact: bool, read: Callable[[Output], Column], edges: Column) -> Feature:
    def words(label: int) -> str:
        if label == 0:
            return f"below {edges[0]:g}"
        return f"{edges[label - 1]:g} or more" if label == len(edges) else f"{edges[label - 1]:g} to {edges[label]:g}"

    return Feature(title, fact, lambda seen: np.searchsorted(edges, read(seen), "right"), len(edges) + 1, words)


def _bit(name: str, fact: bool, bit: int) -> Feature:
    def labels(output: Output) -> Integers:
        return (_whole(output[name]) >> bit) & 1

    return Feature(f"bit {bit} of {name}", fact, labels, 2, str)


def _whole(column: Column) -> Integers:
    return column.astype(np.int64) if column.dtype.kind in "iub" else np.rint(column).astype(np.int64)


def _bits(column: Column) -> int:
    return int(np.abs(_whole(column)).max()).bit_length()


# Several columns -----------------------------------------------------------------------------------------------------


def _pairs(output: Output, compact: dict[str, list[Feature]]) -> Iterator[Feature]:
    groups: dict[str, list[str]] = {}
    fields: dict[str, list[str]] = {}
    for name in compact:
        groups.setdefault(_group(name), []).append(name)
        fields.setdefault(_field(name), []).append(name)
    for names in groups.values():
        for first, second in combinations(names, 2):
            yield from _crossings(compact[first], compact[second])
    for names in fields.values():
        near = combinations(names, 2) if len(names) <= _ALL_PAIRS_UP_TO else pairwise(names)
        for first, second in near:
            yield _difference(output, first, second)
            if _group(first) != _group(second):
                yield from _crossings(compact[first][:1], compact[second][:1])


def _crossings(first: Sequence[Feature], second: Sequence[Feature]) -> Iterator[Feature]:
    return (_crossed(a, b) for a in first for b in second if a.count * b.count <= _MOST_LABELS)


def _crossed(first: Feature, second: Feature) -> Feature:
    def labels(output: Output) -> Integers:
        return first.labels(output) * second.count + second.labels(output)

    def words(label: int) -> str:
        return f"{first.words(label // second.count)} with {second.words(label % second.count)}"

    name, fact = f"{first.name} and {second.name}", first.fact and second.fact
    return Feature(name, fact, labels, first.count * second.count, words)


def _difference(output: Output, first: str, second: str) -> Feature:
    def read(seen: Output) -> Column:
        return seen[first].astype(np.float64) - seen[second]

    column, fact = read(output), first in output.facts and second in output.facts
    # Zero stands alone: two entries that are equal too often, or never.
    edges = np.unique([*np.quantile(column, np.arange(1, _QUANTILES) / _QUANTILES, method="nearest"), 0.0, 1e-9])
    ends = [column.min(), np.nextafter(column.min(), np.inf), column.max()]
    return _cut(f"{first} − {second}", fact, read, np.unique([*edges, *ends]))


def _score(name: str, output: Output, worlds: Integers, parts: Sequence[Feature]) -> Feature:
    """The sum over features of the learned log ratio of their labels: all reports of a user together."""
    weights = [_log_ratios(feature, output, worlds) for feature in parts]

    def read(seen: Output) -> Column:
        total = sum(weight[feature.labels(seen)] for weight, feature in zip(weights, parts, strict=True))
        return np.round(np.asarray(total, dtype=np.float64), 9)

    return _ranged(name, False, read, read(output))


def _log_ratios(feature: Feature, output: Output, worlds: Integers) -> Column:
    labels = feature.labels(output)
    first, second = (np.bincount(labels[worlds == world], minlength=feature.count) + 1.0 for world in (0, 1))
    ratios: Column = np.log(first / first.sum()) - np.log(second / second.sum())
    return ratios


def _linear_score(output: Output, worlds: Integers) -> Iterable[Feature]:
    """The linear combination of numeric columns that separates the two inputs best."""
    names = [name for name, column in output.answers.items() if np.unique(column).size > 2 and _field(name) != HINT]
    if len(names) < 2:
        return []

    def table(seen: Output) -> Column:
        return np.stack([np.clip(seen[name].astype(np.float64), *ends[name]) for name in names], axis=1)

    # Heavy tails would decide the covariance alone.
    ends = {name: np.quantile(output[name].astype(np.float64), [0.001, 0.999]) for name in names}
    points = table(output)
    gap = points[worlds == 0].mean(0) - points[worlds == 1].mean(0)
    spread = np.atleast_2d(np.cov(points, rowvar=False))
    direction = np.linalg.lstsq(spread + 1e-9 * np.trace(spread) * np.eye(len(names)), gap, rcond=None)[0]

    def read(seen: Output) -> Column:
        scores: Column = table(seen) @ direction
        return scores

    return [_ranged("linear score of answers", False, read, read(output))]
