"""How a stream is cut into chunks and blocks, and in which of them a position lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Integers


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """Chunks of `horizon` values, each cut into blocks of `block` values. The last block of a chunk may be shorter.

    Blocks are numbered through all chunks; edge t is the position where block t begins. A stream that was ended inside
    a block has its `end` there, and the edge after that block lies at the end.
    """

    horizon: int
    block: int
    end: int | None = None

    @property
    def blocks(self) -> int:
        """Blocks of a chunk."""
        return -(-self.horizon // self.block)

    def locate(self, positions: Integers) -> tuple[Integers, Integers]:
        """The last edge at or before each position, and how many values lie in between."""
        chunk, inside = np.divmod(positions, self.horizon)
        block, over = np.divmod(inside, self.block)
        edge = chunk * self.blocks + block
        if self.end is not None:
            closed = (positions == self.end) & (over > 0)
            edge, over = edge + closed, np.where(closed, 0, over)
        return edge, over

    def position(self, edges: Integers) -> Integers:
        """Where blocks begin."""
        chunk, block = np.divmod(edges, self.blocks)
        result = chunk * self.horizon + block * self.block
        return np.asarray(result if self.end is None else np.minimum(result, self.end))

    def length(self, block: int) -> int:
        """Values of one block, if the stream does not end inside it."""
        last = block % self.blocks == self.blocks - 1
        return self.horizon - (self.blocks - 1) * self.block if last else self.block
