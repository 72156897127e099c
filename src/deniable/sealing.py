"""A digest inside a JSON object that reveals every change to it. Standard library only."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from deniable.errors import InvalidData

SEAL = "seal"


def sealed(content: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    """The content with a keyed digest of all of it.

    >>> unsealed(sealed({"block": 29}, b"key"), b"key")
    {'block': 29}
    """
    return {**content, SEAL: _digest(content, key)}


def unsealed(content: Any, key: bytes, what: str = "state") -> dict[str, Any]:
    """The content without its seal; refused as damaged if anything was changed.

    >>> try:
    ...     unsealed({**sealed({"block": 29}, b"key"), "block": 28}, b"key")
    ... except InvalidData as refusal:
    ...     print(str(refusal).split(". ")[0])
    the state is damaged
    """
    if not isinstance(content, dict):
        raise damaged(what)
    rest = {name: value for name, value in content.items() if name != SEAL}
    try:
        whole = hmac.compare_digest(str(content.get(SEAL)).encode(), _digest(rest, key).encode())
    except (TypeError, ValueError, RecursionError):  # not JSON
        whole = False
    if not whole:
        raise damaged(what)
    return rest


def damaged(what: str) -> InvalidData:
    """The error for something that was changed."""
    return InvalidData(
        f"the {what} is damaged",
        "Use a whole copy that nobody has gone on from, or start a new one with new noise.",
        cost="Nothing was read from it or published",
    )


def _digest(content: Mapping[str, Any], key: bytes) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), key=hashlib.blake2b(key, person=b"seal").digest()).hexdigest()
