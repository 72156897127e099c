"""Least squares over tents, cell by cell: what a cell is, given the hat sums at its two ends.

A cell of level l lies between two knots of that level. All that the rest of a chunk sees of it is its *end sums*

    v = (L_1 … L_l, R_1 … R_l),

the parts of the hat sums at its left and its right end, one for each level up to its own, that come from its leaves. It
consists of b cells of the level below with end sums w. Hats are piecewise linear, so v = V·w with fixed V, and a hat at
one of the b − 1 knots inside is a sum of two entries of w. In units of a leaf's noise, the errors of least squares have
the precision I + Σ_l H_l'H_l, which falls apart the same way. With A the precision of one cell's v,

    precision of w  =  A for every cell  +  one for every hat inside,      Γ its inverse,
    w given v       =  M·v + noise of covariance C,      M = Γ·V'·(V·Γ·V')⁻¹,  C = Γ − M·V·Γ,
    next A          =  (V·Γ·V')⁻¹.

All cells of a level are alike, so a few small tables describe a chunk of any length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deniable.arrays import Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """TentCells next to each other, with the covariance of their end sums. T is the total of the cells before one."""

    between: Floats
    """Cov(v_c, v_d) for every two cells: cells × cells × end sums × end sums."""
    before: Floats
    """Cov(T_c, v_d): cells + 1 × cells × end sums."""
    totals: Floats
    """Cov(T_c, T_d)."""

    @classmethod
    def of(cls, covariance: Floats, cells: int) -> Joint:
        """From the covariance of all end sums in a row."""
        size = covariance.shape[0] // cells
        between = covariance.reshape(cells, size, cells, size).transpose(0, 2, 1, 3).copy()
        total = total_row(size // 2)
        before = np.concatenate((np.zeros((1, cells, size)), np.cumsum(np.einsum("k,cdkm->cdm", total, between), 0)))
        return cls(between, before, np.pad(np.cumsum(before @ total, 1), ((0, 0), (1, 0))))

    @property
    def matrix(self) -> Floats:
        """The covariance of all end sums in a row."""
        cells, _, size, _ = self.between.shape
        return self.between.transpose(0, 2, 1, 3).reshape(cells * size, cells * size)

    def covariance(self, c: Integers, g: Floats, d: Integers, f: Floats) -> Floats:
        """Cov(T_c + g·v_c, T_d + f·v_d)."""
        result = self.totals[c, d] + np.einsum("ni,ni->n", self.before[c, d], f)
        result += np.einsum("ni,ni->n", self.before[d, c], g)
        result += np.einsum("ni,ni->n", np.matmul(g[:, None, :], self.between[c, d])[:, 0], f)
        return np.asarray(result)

    def variance(self, c: int, g: Floats) -> Floats:
        """Var(T_c + g·v_c), for many g and one cell."""
        return np.asarray(
            self.totals[c, c] + 2 * g @ self.before[c, c] + np.einsum("ni,ni->n", g @ self.between[c, c], g)
        )


@dataclass(frozen=True, slots=True, eq=False)
class TentCells:
    """The cells of one level. Arrays with one row per offset count from 0 to all leaves of a cell."""

    precision: Floats
    """A of the end sums."""
    expected: Floats
    """g(s): the prefix at offset s is g(s)·v, given v."""
    left: Floats
    """Its variance, given v."""
    hats: Floats
    """Level 1: the left and right hat sum of ones before offset s."""
    parts: Joint
    """Above level 1: the cells inside, given v. Their covariance is C."""
    gain: Floats
    """M, with the parts' end sums in a row."""


def total_row(level: int) -> Floats:
    """The total of a cell from its end sums: hats of its own level add up to one."""
    row = np.zeros(2 * level)
    row[level - 1] = row[2 * level - 1] = 1
    return row


@lru_cache(maxsize=16)
def cells_of(fanout: int, height: int) -> tuple[TentCells, ...]:
    """The cells of levels 1 … height − 1."""
    if height == 2:
        return (_lowest(fanout),)
    below = cells_of(fanout, height - 1)
    return (*below, _next(below[-1], fanout, height - 2))


@lru_cache(maxsize=64)
def chunk_of(fanout: int, height: int, cells: int) -> Joint:
    """All cells of the top level, with a hat of every level at both ends of the chunk as well."""
    level = height - 1
    return Joint.of(_inverse(_precision(cells_of(fanout, height)[-1].precision, cells, level, ends=True)), cells)


def _lowest(size: int) -> TentCells:
    """TentCells of level 1: leaves are independent, given nothing. Ones before s have hat sums (s − s²/2B, s²/2B)."""
    centres = (np.arange(size) + 0.5) / size
    hats = np.stack((1 - centres, centres))
    precision = _inverse(hats @ hats.T)
    offset = np.arange(size + 1)
    right = offset**2 / (2 * size)
    sums = np.stack((offset - right, right), axis=1)
    expected = sums @ precision
    left = offset - np.einsum("ni,ni->n", expected, sums)
    nothing = Joint(*(np.zeros(0) for _ in range(3)))
    return TentCells(precision, expected, left, sums, nothing, np.zeros((0, 2)))


def _next(below: TentCells, fanout: int, level: int) -> TentCells:
    """The cells of level + 1, from those of `level`."""
    prior = _inverse(_precision(below.precision, fanout, level, ends=False))
    ends = _ends(fanout, level)
    precision = _inverse(ends @ prior @ ends.T)
    gain = prior @ ends.T @ precision
    parts = Joint.of(prior - gain @ ends @ prior, fanout)
    by_part = gain.reshape(fanout, 2 * level, 2 * level + 2)
    before = np.cumsum(np.einsum("k,ckv->cv", total_row(level), by_part), 0)
    before = np.concatenate((np.zeros((1, before.shape[1])), before))
    inner = below.expected[:-1]
    expected = [before[c] + inner @ by_part[c] for c in range(fanout)]
    left = [parts.variance(c, inner) + below.left[:-1] for c in range(fanout)]
    return TentCells(
        precision,
        np.concatenate((*expected, before[-1:])),
        np.concatenate((*left, parts.totals[-1, -1:])),
        np.zeros((0, 2)),
        parts,
        gain,
    )


def _precision(own: Floats, cells: int, level: int, *, ends: bool) -> Floats:
    """Precision of the end sums of cells in a row: each cell's own, and one for every hat between two of them."""
    result = np.asarray(np.kron(np.eye(cells), own), dtype=np.float64)
    right = (np.arange(cells) * 2 * level)[:, None] + level + np.arange(level)
    left = right - level
    ending, beginning = right[:-1].ravel(), left[1:].ravel()
    for row in (ending, beginning):
        for column in (ending, beginning):
            result[row, column] += 1
    if ends:
        for edge in (left[0], right[-1]):
            result[edge, edge] += 1
    return result


def _ends(fanout: int, level: int) -> Floats:
    """V: the end sums of a cell of level + 1 from those of its parts."""
    result = np.zeros((2 * level + 2, fanout, 2 * level))
    for below in range(level):
        result[below, 0, below] = 1
        result[level + 1 + below, -1, level + below] = 1
    share = np.arange(fanout) / fanout
    result[2 * level + 1, :, level - 1], result[2 * level + 1, :, 2 * level - 1] = share, share + 1 / fanout
    result[level, :, level - 1], result[level, :, 2 * level - 1] = 1 - share, 1 - share - 1 / fanout
    return result.reshape(2 * level + 2, fanout * 2 * level)


def _inverse(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
