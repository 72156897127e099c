"""Paths of regular files, whatever characters they contain. Reading a pipe or a device might never end."""

from __future__ import annotations

import stat
from pathlib import Path

from deniable.wording import shown


def is_folder(path: Path) -> bool:
    """Whether a path is that of a folder."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def why_not_a_file(path: str | Path) -> str | None:
    """Why a path is not that of a regular file; None if it is."""
    name = shown(Path(path).name)
    try:
        mode = Path(path).stat().st_mode
    except PermissionError:
        return f"{name} may not be read"
    except (OSError, ValueError):  # an impossible name
        return f"there is no file {name}"
    if stat.S_ISDIR(mode):
        return f"{name} is a folder"
    return None if stat.S_ISREG(mode) else f"{name} is not a regular file"
