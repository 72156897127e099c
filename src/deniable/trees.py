"""Fan-out trees over a domain: the granularities at which a value can be reported.

Level 0 is the root, one cell for the whole domain; each level below cuts every cell into `fanout` parts, until the
leaves hold one value each. Cells are aligned at the first value, and the last ones may be smaller: a domain need not
be a power of the fan-out.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree over the values 0..size−1.

    >>> tree = Tree(size=99, fanout=5)
    >>> [tree.cells(level) for level in range(tree.levels)]
    [1, 4, 20, 99]
    """

    size: int
    fanout: int

    @property
    def levels(self) -> int:
        """How many levels there are, the root included: 1 + ⌈log_fanout size⌉, by integers."""
        count, reach = 1, 1
        while reach < self.size:
            count, reach = count + 1, reach * self.fanout
        return count

    def width(self, level: int) -> int:
        """How many values a full cell of a level holds."""
        return int(self.fanout ** (self.levels - 1 - level))

    def cells(self, level: int) -> int:
        """How many cells a level has."""
        return -(-self.size // self.width(level))

    def cell(self, level: int, value: int) -> int:
        """The cell of a level that a value falls in."""
        return value // self.width(level)
