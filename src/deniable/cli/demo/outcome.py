"""The outcome of the demonstration, which the terminal and the page both show."""

from __future__ import annotations

import math
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from deniable.cli.demo import meters, shop
from deniable.cli.demo.attacks import Attacks, MovedAnswer
from deniable.cli.demo.real_devices import Lies, OnePerson
from deniable.cli.demo.weeks import Week
from deniable.collection import Collection
from deniable.queries.answers.answer_layout import number
from deniable.queries.answers.result import Estimate

HEADER = ("", "truth", "estimate", "95 % interval", "inside")
WEEKS_HEADER = ("week", "sent", "stored", "requests", "sent again", "known already")
MOVED_HEADER = ("", "answer", "standard error", "one liar", "at worst", "1 % of people lie")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that is shown."""

    folder: Path
    users: int
    collection: Collection
    weeks: tuple[Week, ...]
    answered: tuple[shop.AnsweredQuestion, ...]
    """The last one is the change between weeks."""
    attacks: Attacks
    moved: tuple[MovedAnswer, ...]
    lies: Lies
    published: meters.Published
    person: OnePerson
    too_much: Estimate
    """The answer to the question that asks too much."""
    people_needed: int
    """For a standard error of 25 in its answer."""
    ask_key: str
    """The key that opens the console."""
    pictures: dict[str, Path]
    """Those that were drawn, by what they show: ages, weeks, change, attack, stream."""

    @property
    def collected(self) -> Path:
        """The folder of the collector."""
        return self.folder / "collected"

    @property
    def people_needed_in_words(self) -> str:
        """The number to two digits, which is as precise as a forecast."""
        return f"{int(float(f'{self.people_needed:.2g}')):,} people"

    @property
    def too_much_in_words(self) -> str:
        """How an answer shows that it is too uncertain."""
        if math.isnan(self.too_much.value):
            return "unclear: there are too few people, or too much noise, to divide by their number"
        low, high = self.too_much.interval
        error = (high - low) / 4
        middle = number(self.too_much.value, error)
        return f"{middle}, but anything from {number(low, error)} to {number(high, error)} is possible"

    @property
    def crash_in_words(self) -> str:
        """What the crash has cost."""
        crash = next(week.crash for week in self.weeks if week.crash is not None)
        return (
            f"In the middle of week 2 the collector was killed (kill -9). {crash.acknowledged:,} reports of the week "
            "had been "
            f"acknowledged by then, and {crash.on_disk:,} were on the disk: nothing that was acknowledged is lost. "
            "Devices sent "
            "again what had not been answered; the collector recognised what it knew already and counted it once. "
            f"{crash.queued} reports of single devices waited in queues on their disks."
        )

    @property
    def shift_in_words(self) -> str:
        """When the shift of the stream was noticed."""
        published = self.published
        fact = f"At noon of the second day the supply fails: {meters.FAILED_SHARE:.0%} of the load is gone. "
        if published.noticed_at is None:
            return f"{fact}The stream did not notice it: θ was learnt anew only when the day's epoch had ended."
        hours = (published.noticed_at - meters.FAILURE_AT) / 3_600
        return (
            f"{fact}Published sums alone, which cost nothing more, showed it: {hours:.0f} hours later the stream had "
            f"learnt a new θ, {published.theta_after:,.0f} instead of {published.theta_before:,.0f} watts. Until then "
            "answers keep the noise of the larger θ. Inside the block in which the load fell, what is published is a "
            "straight line, so a window that begins or ends at the failure has a wider interval."
        )

    @property
    def program(self) -> str:
        """How this program is called here."""
        return "deniable" if shutil.which("deniable") else _from_here(Path(sys.argv[0]))

    @property
    def console_command(self) -> str:
        """What opens the console on what was collected."""
        return f"{self.program} serve {self.collected}"

    @property
    def next_commands(self) -> tuple[str, str, str]:
        """Three commands that continue with what was written."""
        name, collected = self.program, self.collected
        return (
            f'{name} query {collected} "SELECT round, AVG(amount) FROM orders GROUP BY round"',  # noqa: S608 - shown only
            f"{name} stream query {collected / 'live' / meters.METER_STREAM} 0:86400",
            f"{name} check {self.folder / 'shop.toml'}",
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


def week_cells(week: Week) -> tuple[str, ...]:
    """A row of the table under WEEKS_HEADER."""
    counts = (week.sent, week.stored, week.requests, week.sent_again, week.repeated)
    return (str(week.number), *(f"{count:,}" for count in counts))


def moved_cells(moved: MovedAnswer) -> tuple[str, ...]:
    """A row of the table under MOVED_HEADER."""
    numbers = (moved.value, moved.stderr, moved.one_liar, moved.worst_liar, moved.one_percent)
    return (moved.title, *(f"{number:,.0f}" for number in numbers))
