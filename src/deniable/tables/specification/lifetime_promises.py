"""What memoised rounds promise about a lifetime, for the reports of a table. Standard library only."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from deniable.accounting import Amount
from deniable.errors import InvalidParameter
from deniable.mechanisms.memoised_response import MemoisedResponse
from deniable.tables.schema.rounds import MEMOISED

if TYPE_CHECKING:
    from deniable.tables.specification.specification import Specification

MOST_MEMOISED_VIEWS = 2**14
LARGEST_QUIET_STEP = 1
"""A round that may add more than this to the worst case shows changes: the specification has to say so."""


class MemoisedPromises(NamedTuple):
    """Three numbers for one report, each the worst over views. See `MemoisedResponse`."""

    alone: Amount
    """One round alone."""
    same_changes: Amount
    """Two lifetimes whose outcomes change in the same rounds."""
    any_lifetimes: Amount
    """Any two lifetimes."""
    step: Amount
    """ε_i: what every round adds to the last, at most."""


@lru_cache(maxsize=1024)
def memoised_promises(specification: Specification, name: str, rounds: int) -> MemoisedPromises:
    """What one report of a table promises over so many rounds."""
    mechanisms = _mechanisms(specification, name)
    if not mechanisms:  # views of one cell say nothing
        return MemoisedPromises(Fraction(0), Fraction(0), Fraction(0), Fraction(0))
    return MemoisedPromises(
        max(Fraction(mechanism.epsilon) for mechanism in mechanisms),
        max(mechanism.same_changes(rounds) for mechanism in mechanisms),
        max(mechanism.any_lifetimes(rounds) for mechanism in mechanisms),
        max(mechanism.instantaneous_epsilon for mechanism in mechanisms),
    )


def check_changes(specification: Specification) -> None:
    """Refuse memoised rounds that show changes, unless the specification says that changes are public."""
    rounds = specification.rounds
    if rounds is None or rounds.mode != MEMOISED:
        return
    permanent = rounds.permanent or 0.0
    if permanent < specification.epsilon:
        problem = "is below epsilon"
        raise InvalidParameter("rounds: permanent", problem, "A round is noisier than the permanent answer under it.")
    for table in specification.tables:
        if specification.views(table.name) > MOST_MEMOISED_VIEWS:
            problem = f"has over {MOST_MEMOISED_VIEWS:,} views, too many for memoised rounds"
            raise InvalidParameter(f"table {table.name!r}", problem, "Use fewer attributes, or a grid.")
        step = max((made.instantaneous_epsilon for made in _mechanisms(specification, table.name)), default=0)
        if step > LARGEST_QUIET_STEP and not rounds.changes_are_public:
            raise InvalidParameter(
                "rounds",
                f"are memoised, and each adds ε = {float(step):.3g} to what shows that and when somebody changed "
                f"(table {table.name!r})",
                "Lower epsilon or raise permanent, or say changes_are_public = true if that is no secret.",
            )


@lru_cache(maxsize=256)
def _mechanisms(specification: Specification, name: str) -> tuple[MemoisedResponse, ...]:
    """The different ways in which views of a table answer."""
    design, permanent = specification.design_of(name), specification.permanent_per_report(name)
    oracles = {view.oracle.outcomes: view.oracle for view in islice(design, MOST_MEMOISED_VIEWS)}
    return tuple(
        MemoisedResponse(oracle.epsilon, max(permanent, oracle.epsilon), outcomes)
        for outcomes, oracle in sorted(oracles.items())
        if outcomes > 1
    )
