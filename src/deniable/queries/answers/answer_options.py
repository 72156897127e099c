"""How a question is answered: every option in one value."""

from __future__ import annotations

from dataclasses import dataclass

from deniable.checks import check_flag, check_number
from deniable.errors import InvalidParameter
from deniable.queries.weights.axis_weights import Rule
from deniable.queries.weights.table_plan import DIRECT, SUMS

CONSISTENT = "consistent"


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The options of `Database.sql`. They are checked here, once.

    >>> AnswerOptions(confidence=0.9).weights
    'optimal'
    """

    weights: str = "optimal"
    """"optimal", "greedy", "rdc(k)" or "rdc_each(k)": how nodes of trees are weighted."""
    sums: str = DIRECT
    """"direct", or "designed" for the rounded values that AHIO, EHIO and SR-HIO collect."""
    unbiased: bool = False
    """On a grid, use only what cells and points show without any assumption."""
    confidence: float = 0.95
    """Of the intervals."""
    simultaneous: bool = False
    """Whether all intervals of an answer hold at once."""
    clip: bool = False
    """Cut estimates to the possible range; they are biased then."""
    nonnegative: bool = False
    """Cut estimates that cannot be negative at zero; they are biased then."""
    postprocess: str | None = None
    """On a grid, "consistent" answers from one possible table of cells: less noise, and biased."""

    def __post_init__(self) -> None:
        Rule.of(self.weights)
        if self.sums not in SUMS:
            raise InvalidParameter("sums", "are unknown", f"Use one of {', '.join(SUMS)}.")
        check_number("confidence", self.confidence, "must lie between 0 and 1", "Use 0.95.", above=0, below=1)
        for name in ("unbiased", "simultaneous", "clip", "nonnegative"):
            check_flag(name, getattr(self, name), "Leave it out, or pass True.")
        if self.postprocess not in (None, CONSISTENT):
            raise InvalidParameter("postprocess", "is unknown", f'Use "{CONSISTENT}", or leave it out.')


DEFAULTS = AnswerOptions()
