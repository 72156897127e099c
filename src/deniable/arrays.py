"""Types of the arrays that most calculations use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Words = NDArray[np.uint64]
"""Random bits, 64 at a time."""
Words32 = NDArray[np.uint32]
"""Seeds, hash values and the columns of reports."""
