"""Parts of the states of streams: a version, a seal, and arrays as text, so that a state is a JSON value."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidData
from deniable.sealing import damaged, sealed, unsealed


def packed(values: NDArray[Any]) -> str:
    """Numbers as text: little-endian bytes in base 64."""
    return base64.b64encode(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()).decode()


def unpacked(text: str, kind: type[np.generic] = np.int64) -> NDArray[Any]:
    """The numbers that `packed` packed, of the given type."""
    return np.frombuffer(base64.b64decode(text), dtype=np.dtype(kind).newbyteorder("<")).astype(kind)


def seal(state: dict[str, Any]) -> dict[str, Any]:
    """A state with a digest of everything in it, keyed with the secret that it holds."""
    return sealed(state, _secret(state))


def unseal(state: Any, version: int) -> dict[str, Any]:
    """The state as it was sealed. A state of another version is refused, and so is a damaged one."""
    if not isinstance(state, dict):
        raise damaged("state")
    if state.get("version") != version:
        raise InvalidData(
            "the state was written by another version, or is damaged",
            "Use the version that wrote it.",
            cost="Nothing was read from it or published",
        )
    return unsealed(state, _secret(state))


def _secret(state: dict[str, Any]) -> bytes:
    """The key of a publisher's noise, or the secret that a server hashes ids with. A simulation has neither."""
    answered = state.get("answered")
    return str(answered.get("secret") if isinstance(answered, dict) else state.get("key")).encode()
