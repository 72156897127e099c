"""A folder of this user alone, for notes about which copy of a file is the newest. Standard library only."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from deniable.errors import Failure


def private_folder(name: str, purpose: str, cost: str) -> Path:
    """A folder of the user alone. Without a home it is among the temporary files, and lasts as long as they do."""
    candidates = []
    with suppress(RuntimeError):  # a user without a home
        candidates.append(Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "deniable")
    candidates.append(Path(tempfile.gettempdir()) / f"deniable-{getattr(os, 'getuid', lambda: 'user')()}")
    for home in candidates:
        folder = home / name
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            mine = _is_mine(home) and _is_mine(folder)
        except OSError:
            continue
        if mine and os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise Failure(
        f"there is no private folder to {purpose}. {cost}. "
        "Set XDG_STATE_HOME to a folder that you own and may write to."
    )


def _is_mine(folder: Path) -> bool:
    """Whether nobody else may put files into a folder."""
    about = folder.stat()
    return not hasattr(os, "getuid") or (about.st_uid == os.getuid() and not about.st_mode & 0o022)
