"""The outcome of the demonstration, which the terminal and the page both show."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deniable.cli.demo import meters, shop
from deniable.collection import Collection
from deniable.queries.answers.answer_layout import number
from deniable.queries.answers.result import Estimate

HEADER = ("", "truth", "estimate", "95 % interval", "inside")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that is shown."""

    folder: Path
    users: int
    collection: Collection
    answered: tuple[shop.AnsweredQuestion, ...]
    attack: Mapping[str, float]
    """The share of people whose number of orders the attacker guesses, by what he sees."""
    published: meters.Published
    too_much: Estimate
    """The answer to the question that asks too much."""
    people_needed: int
    """For a standard error of 25 in its answer."""
    ages_picture: Path | None
    attack_picture: Path | None
    stream_picture: Path | None

    @property
    def pictures(self) -> tuple[Path, ...]:
        """Those that were drawn."""
        drawn = (self.ages_picture, self.attack_picture, self.stream_picture)
        return tuple(picture for picture in drawn if picture is not None)

    @property
    def people_needed_in_words(self) -> str:
        """The number to two digits, which is as precise as a forecast."""
        return f"{int(float(f'{self.people_needed:.2g}')):,} people"

    @property
    def too_much_in_words(self) -> str:
        """How an answer shows that it is too uncertain."""
        if math.isnan(self.too_much.value):
            return "unclear: there are too few people, or too much noise, to divide by their number"
        error = self.too_much.stderr
        return f"{number(self.too_much.value, error)} ± {number(error, error)}, an error too large to be useful"

    @property
    def program(self) -> str:
        """How this program is called here."""
        return "deniable" if shutil.which("deniable") else _from_here(Path(sys.argv[0]))

    @property
    def next_commands(self) -> tuple[str, str, str]:
        """Three commands that continue with what was written."""
        name = self.program
        return (
            f'{name} query {self.folder / "reports"} "SELECT AVG(age) FROM users"',  # noqa: S608 - shown, not run
            f'{name} explain {self.folder / "reports"} "SELECT COUNT(*) FROM orders"',  # noqa: S608 - as above
            f"{name} stream query {self.folder / 'stream.parquet'} 0:86400",
        )


def _from_here(path: Path) -> str:
    """A path relative to the working directory, if it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_absolute() and path.is_relative_to(here) else str(path)


def cells(label: str, truth: float, estimate: Estimate) -> tuple[str, str, str, str, str]:
    """A row of the table under HEADER."""
    low, high = estimate.interval
    inside = "yes" if low <= truth <= high else "no"
    error = max(estimate.stderr, 1e-9)
    return (
        label,
        number(truth, error),
        number(estimate.value, error),
        f"{number(low, error)} to {number(high, error)}",
        inside,
    )
