"""Which θ a server has announced, and when it announces another: the first phase, and the phases after it."""

from __future__ import annotations

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.errors import InvalidParameter, QueryRefused
from deniable.locking import Turn, in_turn
from deniable.streams.local.estimates import Estimates
from deniable.streams.local.heard_reports import HeardReports
from deniable.streams.local.phases import Phases
from deniable.streams.local.renewal import AUTO, is_worth_it, reports_until_next
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.threshold_choice import LocalChoice, LocalRule
from deniable.streams.local.value_distribution import DistributionBelief, FirstReports, reconstructed


class AnnouncedThresholds:
    """The part of a server that counts first reports, chooses θ from them, and looks at it again."""

    protocol: ToPLProtocol
    rule: LocalRule
    first: int
    renewals: str
    _first: HeardReports
    _phases: Phases
    _turn: Turn

    @property
    def theta(self) -> float | None:
        """The announced threshold; None before."""
        return None if self._estimates is None else self._estimates.choice.theta

    @property
    def thetas(self) -> tuple[float, ...]:
        """All thresholds that were announced, in order."""
        return self._phases.thetas

    @property
    def choice(self) -> LocalChoice | None:
        """The threshold, and what was believed when it was chosen; None before."""
        return None if self._estimates is None else self._estimates.choice

    @property
    @in_turn
    def heard(self) -> int:
        """First reports taken, in all phases."""
        return self._first.number

    @property
    @in_turn
    def published(self) -> int:
        """Second-phase reports taken, each of which was answered with an estimate."""
        return self._phases.number

    @property
    @in_turn
    def first_reports(self) -> FirstReports:
        """The first reports, counted; after a change of the stream, earlier ones count less."""
        return self._first.reports()

    def distribution(self, *, smooth: bool = True) -> DistributionBelief:
        """The distribution of values that EMS reconstructs from the first reports; EM without `smooth`."""
        if not self.heard:
            raise QueryRefused("there are no first reports", "Collect some before a threshold is announced.")
        return reconstructed(self.first_reports, smooth=smooth)

    @in_turn
    def announce(self) -> float:
        """End the first phase with the reports so far, and choose θ."""
        if self._estimates is None:
            if not self._first.since:
                raise QueryRefused("there are no first reports to choose θ from", "Collect some, or give theta=.")
            self._start(self.rule.choose(self._first.reports()))
        return self._phases.latest.choice.theta

    @in_turn
    def renew(self) -> float:
        """Choose a new θ from all first reports, for users who have not answered, and announce it in any case.

        After a change of the stream, earlier first reports count less. Reports that were made under an earlier θ of it
        are still taken, each for its own θ. What was published stays; what is added back for it may be better
        known now. A stream announces at most 256 thresholds.
        """
        if not self.protocol.renewal:
            raise InvalidParameter("renewal", "is 0, so there are no later first reports", "Give both sides a share.")
        if not self._first.since:
            raise QueryRefused("there are no first reports since the last θ", "Collect some first.")
        self._phases.check_room()
        self._renew(always=True)
        return self._phases.latest.choice.theta

    @property
    def _estimates(self) -> Estimates | None:
        return self._phases.present

    def _start(self, choice: LocalChoice) -> None:
        self._phases.begin(choice)
        self._first.chosen()

    def _renew(self, *, always: bool) -> None:
        """Look at θ again: what the present one took since the last time is known now, and another may be better."""
        reports, changed = self._first.reports(), self._first.weight < 1
        belief = self.rule.belief(reports)
        choice = self.rule.choose(reports, belief)
        self._phases.learn(belief, reports)
        worth = changed or is_worth_it(belief, reports, self._phases.latest.choice.theta, choice.theta)
        if always or (worth and self._phases.has_room):
            self._phases.begin(choice)
        self._first.chosen()

    @property
    def _missing(self) -> int | None:
        """How many first reports are missing until θ is chosen, or looked at again; None if that is not to be."""
        if self._estimates is None:
            return self.first - self._first.since
        again = self.protocol.renewal and self.renewals == AUTO
        return reports_until_next(self.first) - self._first.since if again else None

    def _take_first(self, codes: Integers) -> None:
        self._first.take(codes)
        if self._missing is None or self._missing > 0:
            return
        if self._estimates is None:
            self._start(self.rule.choose(self._first.reports()))
        else:
            self._renew(always=False)

    def _take_second(self, codes: Integers) -> Floats:
        return self._phases.take(codes, np.full(codes.size, len(self._phases) - 1))
