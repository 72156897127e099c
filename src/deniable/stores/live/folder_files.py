"""Where the files of a store are, and what its public settings say."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from deniable.errors import InvalidData
from deniable.files import LockedFile, settle
from deniable.sealing import sealed, unsealed
from deniable.streams.central.person_stream import PersonSettings
from deniable.streams.central.settings import Settings

LIVE_FOLDER = "live"
"""Where streams in stores are, in the folder of a collector."""
STORE_FORMAT, STORE_VERSION = "deniable stream store", 1
_SEAL_KEY = b"deniable store settings"  # public: against damage, not against forgery


@dataclass(frozen=True, slots=True)
class StoreFolder:
    """The paths of a store.

    settings.json        public: everything that was decided before the first value
    published/           public: sealed segments and the open one
    private/             of mode 0700: the state with the noise's key, and the log, of mode 0600
    """

    path: Path

    @property
    def settings(self) -> Path:
        """The public settings."""
        return self.path / "settings.json"

    @property
    def published(self) -> Path:
        """The folder of segments."""
        return self.path / "published"

    @property
    def private(self) -> Path:
        """The folder of secrets."""
        return self.path / "private"

    @property
    def checkpoint(self) -> Path:
        """The state of the publisher at the beginning of the log."""
        return self.private / "state.json"

    def log(self, number: int) -> Path:
        """A log."""
        return self.private / f"{number:08}.log"

    @property
    def exists(self) -> bool:
        """Whether there is a store."""
        return self.checkpoint.exists()

    def make(self) -> None:
        """Make the folders."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.published.mkdir(exist_ok=True)
        self.private.mkdir(mode=0o700, exist_ok=True)
        os.chmod(self.private, 0o700)  # noqa: PTH101 - as the other calls, to be counted in tests
        settle(self.path.absolute().parent)

    @property
    def holds_values(self) -> bool:
        """Whether anything was published or logged here."""
        files = [*self.published.glob("*"), *self.private.glob("*.log")] if self.path.is_dir() else []
        return any(file.stat().st_size for file in files)


class SettledPublisher(Protocol):
    """Whoever publishes: its settings are public."""

    kind: ClassVar[str]

    @property
    def settings(self) -> Settings | PersonSettings:
        """Everything public."""

    @property
    def simulation(self) -> bool:
        """Whether it protects nobody."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Everything public about a stream in a store."""

    name: str
    kind: str
    publisher: Settings
    epsilon: float
    on_bad: str
    simulation: bool
    person: dict[str, Any] | None = None

    @classmethod
    def of(cls, name: str, publisher: SettledPublisher, on_bad: str) -> StoreSettings:
        """The settings of a new store."""
        about, person = publisher.settings, None
        settings = about.publisher if isinstance(about, PersonSettings) else about
        if isinstance(about, PersonSettings):
            limit = about.bound
            person = {"most": limit.most, "epoch": limit.epoch, "window": limit.window, "fill": about.fill}
        return cls(name, publisher.kind, settings, about.epsilon, on_bad, publisher.simulation, person)

    def describe(self) -> dict[str, Any]:
        """All of it as JSON."""
        facts = {name: getattr(self, name) for name in ("name", "kind", "epsilon", "on_bad", "simulation", "person")}
        return {"format": STORE_FORMAT, "version": STORE_VERSION, **facts, "settings": self.publisher.describe()}

    def write(self, folder: StoreFolder) -> None:
        """Write them, once, where anybody may read them."""
        with LockedFile(folder.settings, "the settings", cost="Nothing was published") as file:
            file.write(json.dumps(sealed(self.describe(), _SEAL_KEY), indent=1).encode(), mode=0o644)

    @classmethod
    def read(cls, folder: StoreFolder) -> StoreSettings:
        """The settings of an existing store."""
        try:
            record = json.loads(folder.settings.read_bytes())
        except FileNotFoundError:
            raise InvalidData(
                f"{str(folder.path)!r} is not a store of a stream", "Give the folder of stream publish --store."
            ) from None
        except (OSError, ValueError, RecursionError):
            raise InvalidData("the settings of the store cannot be read", "Restore settings.json.") from None
        if not isinstance(record, dict) or record.get("format") != STORE_FORMAT:
            raise InvalidData(f"{str(folder.path)!r} is not a store of a stream", "Give another folder.")
        if record.get("version") != STORE_VERSION:
            raise InvalidData("the store was written by another version", "Use the version that wrote it.")
        facts = unsealed(record, _SEAL_KEY, "store's settings.json")
        names = ("name", "kind", "epsilon", "on_bad", "simulation", "person")
        return cls(publisher=Settings.read(facts["settings"]), **{name: facts[name] for name in names})


def live_stores(folder: Path) -> list[Path]:
    """The stores of streams in a collector's folder."""
    inside = folder / LIVE_FOLDER
    return sorted(path for path in inside.iterdir() if StoreFolder(path).exists) if inside.is_dir() else []
