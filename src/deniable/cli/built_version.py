"""The version of this package, with the commit that it was built from."""

from __future__ import annotations

from importlib import resources

from deniable import __version__

_COMMIT_NOTE = "built_from.txt"


def built_version(note: str | None = None) -> str:
    """What `deniable --version` shows after the name. A checkout that is installed in place names no commit.

    >>> built_version("0123456789ab").endswith("(commit 0123456789ab)")
    True
    """
    commit = _commit() if note is None else note
    return f"{__version__} (commit {commit})" if commit else __version__


def _commit() -> str:
    try:
        return (resources.files("deniable") / _COMMIT_NOTE).read_text(encoding="ascii").strip()
    except OSError:
        return ""
