"""Rounds of a collection: how often people are asked, and how they answer. Standard library only, for devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from typing import Any

from deniable.checks import check_flag, check_integer, check_number
from deniable.errors import InvalidParameter

ROTATING, FRESH, MEMOISED = "rotating", "fresh", "memoised"
ROUND_MODES = (ROTATING, FRESH, MEMOISED)
PERIODS = ("hour", "day", "week", "month")
MOST_ROUNDS = 100_000
MOST_BUCKETS = 2**16
ROUND_COLUMN = "round"
"""The public column that holds the round, in reports and in questions."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """A collection that is asked `count` times, one round every hour, day, week or month.

    *rotating* (default): each person answers in `answers` of the rounds, with ε/`answers` each; which ones, her coins
    decide. ε is the promise over her whole life. In other rounds she sends nothing or, with `cover`, a report of the
    same size that says so. *fresh*: everybody answers every round anew; ε is what one round spends. *memoised*:
    everybody answers every round, from a permanent answer of `permanent` (ε∞) that is kept for life; ε is what one
    round alone spends, and changes are hidden far less: if a round may add more than 1 to the worst case, the
    specification has to say `changes_are_public`. Views of more than `buckets` cells hash into so many; few buckets
    leave more noise in a level, but a promise over a lifetime that is ε∞ for each of them allows a larger ε∞.

    With a `start`, a date, devices refuse rounds that have not begun.

    >>> Rounds(52, every="week").mode
    'rotating'
    """

    count: int
    every: str = "week"
    mode: str = ROTATING
    answers: int = 1
    cover: bool = False
    permanent: float | None = None
    changes_are_public: bool = False
    buckets: int | None = None
    start: str | None = None

    def __post_init__(self) -> None:
        check_integer("rounds: count", self.count, 1, MOST_ROUNDS, repair="Say how many rounds there will be.")
        if self.every not in PERIODS:
            raise InvalidParameter("rounds: every", "is unknown", f"Use one of {', '.join(PERIODS)}.")
        if self.mode not in ROUND_MODES:
            raise InvalidParameter("rounds: mode", "is unknown", f"Use one of {', '.join(ROUND_MODES)}.")
        for name in ("cover", "changes_are_public"):
            check_flag(f"rounds: {name}", getattr(self, name), "Leave it out.")
        self._check_mode()
        if self.start is not None:
            try:
                date.fromisoformat(self.start)
            except (TypeError, ValueError):
                raise InvalidParameter("rounds: start", "is not a date", 'Write "2027-01-04".') from None

    def _check_mode(self) -> None:
        """Refuse settings of another mode: they were meant to say something."""
        if self.mode != ROTATING and (self.answers != 1 or self.cover):
            raise InvalidParameter("rounds: answers and cover", "are for rotating rounds", "Leave them out.")
        check_integer("rounds: answers", self.answers, 1, self.count, repair="Answer in some of the rounds.")
        if self.mode != MEMOISED and (
            self.permanent is not None or self.changes_are_public or self.buckets is not None
        ):
            problem = "are for memoised rounds"
            raise InvalidParameter("rounds: permanent, changes_are_public and buckets", problem, "Leave them out.")
        if self.buckets is not None:
            check_integer("rounds: buckets", self.buckets, 2, MOST_BUCKETS, repair="Leave it out for the best level.")
        if self.mode == MEMOISED:
            repair = "Give the ε of a permanent answer, above the ε of one round."
            if self.permanent is None:
                raise InvalidParameter("rounds: permanent", "is missing", repair)
            if self.permanent != float("inf"):
                check_number("rounds: permanent", self.permanent, "must be above 0", repair, above=0)

    @property
    def answered(self) -> int:
        """In how many rounds a person answers, at most."""
        return self.answers if self.mode == ROTATING else self.count

    def check(self, number: Any) -> int:
        """A round's number, refused unless it is one of 1, …, count."""
        problem = f"must be an integer from 1 to {self.count}"
        check_integer("round", number, 1, self.count, problem=problem, repair="Rounds are numbered from 1 on.")
        return int(number)

    def check_begun(self, number: int, now: float) -> None:
        """Refuse a round that has not begun."""
        if self.start is not None and now < self.begins(number).timestamp():
            problem = f"{number} begins on {self.begins(number).date()}, which is in the future"
            raise InvalidParameter("round", problem, "Answer when it has begun, or set the clock right.")

    def begins(self, number: int) -> datetime:
        """When a round begins, if there is a start.

        >>> Rounds(12, every="month", start="2027-01-31").begins(2).date()
        datetime.date(2027, 3, 3)
        """
        first = datetime.combine(date.fromisoformat(str(self.start)), datetime.min.time(), UTC)
        if self.every != "month":
            step = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}[self.every]
            return first + (number - 1) * step
        months = first.month - 1 + number - 1  # the 31st of a shorter month lies in the next
        return datetime(first.year + months // 12, months % 12 + 1, 1, tzinfo=UTC) + timedelta(days=first.day - 1)

    def to_dict(self) -> dict[str, Any]:
        """The canonical form: settings of other modes are left out."""
        entries = {"count": self.count, "every": self.every, "mode": self.mode}
        if self.mode == ROTATING:
            entries |= {"answers": self.answers, "cover": self.cover}
        if self.mode == MEMOISED:
            permanent = "inf" if self.permanent == float("inf") else float(self.permanent or 0)
            entries |= {"permanent": permanent, "changes_are_public": self.changes_are_public}
            entries |= {} if self.buckets is None else {"buckets": self.buckets}
        return entries | ({} if self.start is None else {"start": self.start})

    @classmethod
    def from_dict(cls, entries: Any) -> Rounds:
        """Rounds from the entries of a file."""
        if not isinstance(entries, Mapping):
            raise InvalidParameter("rounds", "must have named fields", "Write [rounds], and count below it.")
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(entries) - set(known)):
            raise InvalidParameter(
                f"rounds: {unknown[0]!s:.40}", "is not a field of rounds", f"Use {', '.join(known)}."
            )
        if "count" not in entries:
            raise InvalidParameter("rounds: count", "is missing", "Say how many rounds there will be.")
        made = dict(entries)
        if made.get("permanent") == "inf":
            made["permanent"] = float("inf")
        if isinstance(made.get("start"), date):
            made["start"] = made["start"].isoformat()
        return cls(**made)


def stands_for(rounds: Rounds | None) -> float:
    """For how many people each of those stands who answer a round.

    >>> stands_for(Rounds(12, answers=3)), stands_for(None)
    (4.0, 1.0)
    """
    return 1.0 if rounds is None or rounds.mode != ROTATING else rounds.count / rounds.answers
