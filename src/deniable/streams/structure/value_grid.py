"""The grid of a stream's values. All noise is integer, so values are whole numbers of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers
from deniable.checks import check_integer, check_number
from deniable.errors import InvalidData, InvalidParameter
from deniable.mechanisms._arrays import as_array


@dataclass(frozen=True, slots=True)
class Grid:
    """Values in [low, high] as whole numbers of steps of `resolution` above `low`.

    A value above `high` counts as `high`: the public bound is a promise about the result, not about the data. A value
    below `low` is refused: if the lower end is wrong, the whole stream is wrong, and nobody would notice.

    >>> Grid(high=50.0, low=-20.0, resolution=0.5).unit(1.5)
    43
    """

    high: float
    low: float = 0
    resolution: float = 1

    def __post_init__(self) -> None:
        for name, number in (("bound", self.high), ("low", self.low), ("resolution", self.resolution)):
            check_number(name, number, "must be a finite number", "Give the public range of the values.")
        if not self.low < self.high:
            raise InvalidParameter("bound", "must be above low", "Give the public range of the values.")
        if not self.resolution > 0:
            raise InvalidParameter("resolution", "must be positive", "Use 1 for counts, 0.01 for cents.")
        check_integer("the number of steps", self.top, 1, 1 << 40)

    @property
    def top(self) -> int:
        """The bound in steps."""
        return _steps_between(self.low, self.high, self.resolution)

    @property
    def whole(self) -> bool:
        """Whether values leave as integers."""
        return isinstance(self.low, int) and isinstance(self.resolution, int)

    def unit(self, value: Any) -> int:
        """One value in steps, at most `top`. A refusal shows no value."""
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InvalidData("the value must be a number", "Convert or leave it out; nothing was lost.")
        if not isinstance(value, Rational) and not math.isfinite(value):
            raise InvalidData("the value must be finite", "Replace or leave it out; nothing was lost.")
        if value < self.low:
            raise InvalidData(_BELOW_LOW.format(low=self.low), "Give a lower `low`; nothing was lost.")
        if not value <= (ceiling := math.ceil(self.high)):  # as in `units`; a float may be too small to hold it
            value = ceiling
        if isinstance(value, Integral) and self.whole:
            return min((int(value) - int(self.low) + int(self.resolution) // 2) // int(self.resolution), self.top)
        return int(min(math.floor((float(value) - self.low) / self.resolution + 0.5), self.top))

    def units(self, values: Any) -> Integers:
        """Many values in steps. Refused as a whole if one of them is."""
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.size == 0:
            return np.zeros(0, dtype=np.int64)
        array = as_array(values)
        if array.dtype.kind not in "iuf":
            raise InvalidData("values must be numbers", "Convert them to a numeric type first.")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InvalidData("values contain NaN or infinity", "Replace or remove those entries first.")
        if array.min() < self.low:
            raise InvalidData(_BELOW_LOW.format(low=self.low), "Give a lower `low`.")
        array = np.minimum(array, array.dtype.type(min(math.ceil(self.high), _largest(array.dtype))))
        if array.dtype.kind in "iu" and self.whole:
            units = array.astype(np.int64)
            if self.low or self.resolution != 1:
                units = (units - int(self.low) + int(self.resolution) // 2) // int(self.resolution)
            return np.asarray(np.minimum(units, self.top))
        steps = np.floor((array.astype(np.float64) - self.low) / self.resolution + 0.5)
        return np.asarray(np.minimum(steps, self.top).astype(np.int64))

    def value(self, unit: float) -> float:
        """A released number of steps, in the stream's own unit."""
        return self.low + self.resolution * unit

    def values(self, units: NDArray[Any]) -> NDArray[Any]:
        """Many released numbers of steps. On a grid of integers they stay integers."""
        if self.low == 0 and self.resolution == 1:
            return units
        result: Floats = self.low + self.resolution * units
        return result

    def steps(self, values: NDArray[Any]) -> NDArray[Any]:
        """Released values as numbers of steps, up to rounding: what `values` undoes."""
        return values if self.low == 0 and self.resolution == 1 else (values - self.low) / self.resolution


_BELOW_LOW = "values must not be below the public lower bound {low:g}"


@lru_cache(maxsize=256)
def _steps_between(low: float, high: float, resolution: float) -> int:
    return math.ceil((Fraction(high) - Fraction(low)) / Fraction(resolution) - Fraction(1, 10**9))


@lru_cache(maxsize=32)
def _largest(dtype: np.dtype[Any]) -> float:
    return float("inf") if dtype.kind == "f" else int(np.iinfo(dtype).max)
