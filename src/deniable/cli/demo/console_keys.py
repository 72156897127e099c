"""Keys to the collector of the demonstration."""

from __future__ import annotations

from pathlib import Path


def made_keys(folder: Path) -> dict[str, str]:
    """A key of each scope."""
    from deniable.service.keys import SCOPES, KeyFile, Keys

    made: dict[str, str] = {}

    def add(keys: Keys) -> Keys:
        for scope in SCOPES:
            keys, made[scope] = keys.with_key(f"demo_{scope}", scope)
        return keys

    KeyFile(folder).change(add)
    return made
