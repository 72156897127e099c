"""What states of streams are made of: a version, and arrays as texts, so that a state is a JSON value."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidParameter


def packed(values: NDArray[Any]) -> str:
    """Numbers as a text: little-endian bytes in base 64."""
    return base64.b64encode(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()).decode()


def unpacked(text: str, kind: type[np.generic] = np.int64) -> NDArray[Any]:
    """The numbers that `packed` packed, which were of that kind."""
    return np.frombuffer(base64.b64decode(text), dtype=np.dtype(kind).newbyteorder("<")).astype(kind)


def check_version(state: dict[str, Any], version: int) -> None:
    """Refuse a state of another version: what it means is not known here."""
    if state.get("version") != version:
        raise InvalidParameter("state", "was written by another version", "Use the version that wrote it.")
