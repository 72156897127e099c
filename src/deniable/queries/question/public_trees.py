"""Conditions and numbers of public columns, as trees that each engine prints in its own dialect.

A tree is sqlglot's, after parsing has recognised every node of it. Trees are never changed: what is built on top of one
takes a copy. Engines print what `passes` and `factor_tree` build, once, and no text is ever pasted into SQL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from sqlglot import exp

Tree = exp.Expression


@dataclass(frozen=True, slots=True, order=True)
class PublicTree:
    """A condition or a number of a table's public columns. Two are equal if they read the same.

    >>> print(PublicTree.of(exp.column("score", quoted=True) > 3))
    "score" > 3
    """

    reads: str
    """The tree in DuckDB's dialect, for people, for comparisons and for a fixed order."""
    tree: Tree = field(compare=False, repr=False)

    @classmethod
    def of(cls, tree: Tree) -> PublicTree:
        """Keep a copy of a tree."""
        return cls(str(tree.sql(dialect="duckdb")), tree.copy())

    def __str__(self) -> str:
        return self.reads


PublicTest = tuple[PublicTree, bool]
"""A condition, and whether it has to hold or not."""


@dataclass(frozen=True, slots=True)
class PublicFactor:
    """What a row's public attributes multiply it by: a measure where all tests turn out as wanted, else zero."""

    tests: tuple[PublicTest, ...] = ()
    measure: PublicTree | None = None
    """A number; without one, 1."""

    def __str__(self) -> str:
        tests = (f" where {test}" if wanted else f" where not ({test})" for test, wanted in self.tests)
        return f"{self.measure or 1}" + "".join(tests)


def column(name: str) -> Tree:
    """A public column by the name that engines know it by."""
    return exp.column(name, quoted=True)


def is_known(name: str) -> PublicTree:
    """The condition that a column has a value."""
    return PublicTree.of(exp.Not(this=exp.Is(this=column(name), expression=exp.null())))


def product_of(names: Iterable[str]) -> PublicTree:
    """The product of some columns, as numbers."""
    first, *others = (exp.cast(column(name), exp.DataType.Type.DOUBLE) for name in names)
    product: Tree = first
    for other in others:
        product = exp.Mul(this=product, expression=other)
    return PublicTree.of(product)


def holds(condition: Tree) -> Tree:
    """Whether a condition is true; false where it is unknown."""
    return exp.Coalesce(this=condition.copy(), expressions=[exp.false()])


def passes(tests: Iterable[PublicTest]) -> Tree:
    """All tests at once; a condition that is unknown counts as false."""
    parts = [holds(test.tree) if wanted else exp.Not(this=holds(test.tree)) for test, wanted in tests]
    combined: Any = exp.and_(*parts, copy=False) if parts else exp.true()
    return cast("Tree", combined)


def factor_tree(factor: PublicFactor) -> Tree:
    """What a row is multiplied by."""
    measure = exp.Literal.number("1.0") if factor.measure is None else factor.measure.tree.copy()
    number = exp.Coalesce(this=exp.cast(measure, exp.DataType.Type.DOUBLE), expressions=[exp.Literal.number("0.0")])
    return exp.case().when(passes(factor.tests), number, copy=False).else_(exp.Literal.number("0.0"), copy=False)
