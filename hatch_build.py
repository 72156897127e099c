"""Notes in a wheel or sdist from which commit it was built, for `deniable --version`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NOTE = Path("deniable", "built_from.txt")


class CommitNote(BuildHookInterface):
    """Adds the note. A checkout that is installed in place has none: its commit changes."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the commit of a checkout into the package; an unpacked sdist has its note already."""
        source = Path(self.root, "src", NOTE)
        if version == "editable" or source.exists():
            return
        commit = commit_of(Path(self.root))
        if commit is None:
            return
        self._folder = tempfile.TemporaryDirectory()
        note = Path(self._folder.name, NOTE.name)
        note.write_text(commit + "\n", encoding="ascii")
        target = NOTE if self.target_name == "wheel" else Path("src", NOTE)
        build_data["force_include"][str(note)] = target.as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the file that was included."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def commit_of(root: Path) -> str | None:
    """The commit of a checkout, with a mark if files were changed since; None if this is not a checkout."""
    if not (root / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("-changed" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
