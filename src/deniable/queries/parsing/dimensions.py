"""Public dimension tables, as in a star schema: they describe the values of an attribute, not people.

A dimension joined on a private attribute is a function of that attribute: which of its values have a row there, and
what that row says. So a condition on the dimension is a condition on the attribute, and its numbers can be summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from deniable.arrays import Booleans, Floats, Integers
from deniable.queries.question.public_trees import Tree
from deniable.tables.schema.attributes import Private


class Aligned(Protocol):
    """A dimension's rows in the order of an attribute's domain."""

    @property
    def frame(self) -> pa.Table:
        """The rows; of NULLs where there is none."""

    @property
    def present(self) -> Booleans:
        """Which values of the domain have a row."""

    def holds(self, condition: Tree) -> Booleans:
        """Where a condition on the dimension's columns is true."""

    def numbers(self, column: str) -> Floats | None:
        """A column's numbers, NaN where there is none; None if it is not numeric."""

    def groups(self, column: str) -> tuple[tuple[Any, ...], Integers]:
        """A column's distinct values, and the number of the one that each place of the domain has; −1 for none."""


class Dimension(Protocol):
    """A table that everybody may know."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of its columns."""

    def on(self, key: str, domain: Private, *, outer: bool = False) -> Aligned:
        """Its rows by the values of a domain; the key must name each value once.

        With `outer`, values without a row have one of NULLs.
        """

    def listed(self, column: str, condition: Tree | None) -> list[Any]:
        """The different values of a column, in rows for which a condition is true."""

    def check_key(self, key: str) -> None:
        """Refuse a key that names a value twice."""
