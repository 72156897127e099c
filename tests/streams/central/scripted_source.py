"""A source whose noise a test writes: seeded noise, changed or replaced at chosen addresses."""

from __future__ import annotations

import numpy as np

from deniable.randomness import SeededSource


class ScriptedSource(SeededSource):
    """`script(name, scale, draw)` sees every discrete Laplace draw and returns the noise; `draw()` is seeded."""

    def __init__(self, seed, script):
        super().__init__(seed)
        self._script = script

    def _sibling(self, name, counter):
        sibling = super()._sibling(name, counter)
        sibling._script = self._script
        return sibling

    def discrete_laplace(self, scale, size):
        seeded = super().discrete_laplace
        return np.asarray(self._script(self.name[2:], scale, lambda: seeded(scale, size).copy()))
