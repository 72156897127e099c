"""Arithmetic of answers whose errors have an unknown dependence: quantiles, and answers of different questions.

Each of the answers has an interval, and all of them hold at once with the stated confidence (Bonferroni). What an
expression can be while its answers stay inside is an interval that holds its truth, too. It is found by interval
arithmetic on parts of the box, which is too wide rather than too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
from sqlglot import exp

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.queries.answers.result import Estimate

Node = Any
Range = tuple[Floats, Floats]
MOST_BOXES = 4096
"""A box is cut into at most so many parts, which makes intervals of what names an answer twice shorter."""
_REPAIR = "Use +, -, *, /, ROUND, ABS, NULLIF(x, 0) and COALESCE(x, number) of answers and numbers."


@dataclass(frozen=True, slots=True)
class Interval:
    """An answer: its value, which may be missing, and what the truth may be."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, estimate: Estimate) -> Interval:
        """An estimate with its interval; of one that is unclear, everything that is possible."""
        low, high = estimate.interval
        unknown = math.isnan(low) or math.isnan(high)
        return cls(estimate.value, *((-math.inf, math.inf) if unknown else (low, high)))


def check_arithmetic(node: Node) -> None:
    """Refuse an expression of answers that `combined` could not compute."""
    _value(node, {column.name: 1.0 for column in node.find_all(exp.Column)})


def combined(node: Node, answers: Mapping[str, Interval], confidence: float, together: int) -> Estimate:
    """An expression whose columns are answers, with intervals that hold at once with this confidence."""
    used = sorted({str(column.name) for column in node.find_all(exp.Column)})
    value = _value(node, {name: answers[name].value for name in used})
    pieces = max(int(MOST_BOXES ** (1 / max(len(used), 1))), 1)
    sides = [_pieces(answers[name], pieces) for name in used]
    lows, highs = (np.meshgrid(*(side[end] for side in sides), indexing="ij") for end in (0, 1))
    low, high = _range(node, dict(zip(used, zip(lows, highs, strict=True), strict=True)))
    ends = float(np.min(low)), float(np.max(high))
    if not math.isnan(value):
        ends = min(ends[0], value), max(ends[1], value)
    reach = NormalDist().inv_cdf(1 - (1 - confidence) / together / 2)
    return Estimate(value, (ends[1] - ends[0]) / (2 * reach), confidence, together, bounds=ends)


def _pieces(answer: Interval, pieces: int) -> Range:
    if not math.isfinite(answer.low) or not math.isfinite(answer.high):
        return np.array([answer.low]), np.array([answer.high])
    edges = np.linspace(answer.low, answer.high, pieces + 1)
    return edges[:-1], edges[1:]


def _value(node: Node, values: Mapping[str, float]) -> float:
    low, _ = _range(node, {name: (np.array(value), np.array(value)) for name, value in values.items()})
    return float(low) if np.isfinite(low) else math.nan


def _range(node: Node, values: Mapping[str, Range]) -> Range:
    """What an expression may be; where it is divided by an interval with zero in it, everything."""
    if isinstance(node, (exp.Paren, exp.Cast)):
        if isinstance(node, exp.Cast) and node.to.this != exp.DataType.Type.DOUBLE:
            raise QueryRefused("answers of this kind are cast to DOUBLE only", _REPAIR)
        return _range(node.this, values)
    if isinstance(node, exp.Column):
        return values[str(node.name)]
    if isinstance(node, exp.Literal) and not node.is_string:
        return np.array(float(node.this)), np.array(float(node.this))
    if isinstance(node, exp.Neg):
        low, high = _range(node.this, values)
        return -high, -low
    if isinstance(node, exp.Coalesce):  # an answer is never missing
        return _range(node.this, values)
    if isinstance(node, exp.Nullif) and isinstance(node.expression, exp.Literal) and node.expression.this == "0":
        return _range(node.this, values)
    if isinstance(node, exp.Abs):
        low, high = _range(node.this, values)
        least = np.where((low < 0) & (high > 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        return least, np.maximum(np.abs(low), np.abs(high))
    if isinstance(node, exp.Round):
        decimals = node.args.get("decimals")
        digits = 0 if decimals is None else int(decimals.name)
        low, high = _range(node.this, values)
        return _rounded(low, digits), _rounded(high, digits)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        return _operation(node, _range(node.left, values), _range(node.right, values))
    raise QueryRefused(f"{type(node).__name__.upper()} of such answers is not possible", _REPAIR)


def _rounded(values: Floats, digits: int) -> Floats:
    scale = 10.0**digits
    return np.asarray(np.copysign(np.floor(np.abs(values) * scale + 0.5) / scale, values))


def _operation(node: Node, left: Range, right: Range) -> Range:
    with np.errstate(all="ignore"):
        if isinstance(node, exp.Add):
            return left[0] + right[0], left[1] + right[1]
        if isinstance(node, exp.Sub):
            return left[0] - right[1], left[1] - right[0]
        if isinstance(node, exp.Mul):
            ends = np.stack(np.broadcast_arrays(*(np.asarray(a * b) for a, b in product(left, right))))
            ends = np.where(np.isnan(ends), 0.0, ends)  # zero times anything
            return ends.min(axis=0), ends.max(axis=0)
        zero = (right[0] <= 0) & (right[1] >= 0)
        ends = np.stack(np.broadcast_arrays(*(np.asarray(a / b) for a, b in product(left, right))))
        ends = np.where(np.isnan(ends), 0.0, ends)
        return np.where(zero, -np.inf, ends.min(axis=0)), np.where(zero, np.inf, ends.max(axis=0))
