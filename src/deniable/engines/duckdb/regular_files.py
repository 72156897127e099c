"""A path is a path: of one regular file, whatever signs its name has. A pipe or a device would be read for ever."""

from __future__ import annotations

import stat
from pathlib import Path

from deniable.wording import shown


def is_folder(path: Path) -> bool:
    """Whether there is a folder of that name."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def why_not_a_file(path: str | Path) -> str | None:
    """What is wrong with a path that should be a file's; None if nothing is."""
    name = shown(Path(path).name)
    try:
        mode = Path(path).stat().st_mode
    except PermissionError:
        return f"{name} may not be read"
    except (OSError, ValueError):  # an impossible name is not that of a file either
        return f"there is no file {name}"
    if stat.S_ISDIR(mode):
        return f"{name} is a folder"
    return None if stat.S_ISREG(mode) else f"{name} is not a regular file"
