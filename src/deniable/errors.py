"""Everything that can go wrong, as one tree.

    DeniableError
    ├── BadInput                 the caller can repair it: exit code 2
    │   ├── InvalidParameter     a setting is impossible (ε ≤ 0, an empty domain, …)
    │   ├── InvalidData          values are not of the declared type or domain
    │   ├── BudgetExceeded       a ledger has too little left for what was asked
    │   ├── QueryRefused         a question cannot be answered, or not yet
    │   └── SimulationOnly       a seeded source or an infinite ε was offered where privacy is promised
    └── Failure                  the request was fine, something else failed: exit code 1
        ├── RandomnessFault      drawing would repeat or expose randomness
        ├── MissingExtra         an optional dependency is not installed
        └── ClaimBroken          an audit found more leakage than a mechanism claims

A message says what happened, what it cost and what to do. It carries public facts only:
names, settings, domains. A value of somebody's data never appears in one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


class DeniableError(Exception):
    """Base of every error this package raises on purpose.

    >>> import deniable as dn
    >>> try:
    ...     dn.mechanisms.RandomizedResponse(epsilon=0, k=4)
    ... except dn.DeniableError as error:
    ...     print(error)
    epsilon must be a positive number. Nothing was drawn or spent. Use 0.1 to 10, or math.inf in a simulation.
    """

    exit_code = 1


class BadInput(DeniableError):
    """The request cannot be served as it stands; changing it will help.

    >>> import deniable as dn
    >>> try:
    ...     dn.Ordinal(95, 1)
    ... except BadInput as error:
    ...     print(error, error.exit_code)
    low is above high: the domain is empty. Nothing was drawn or spent. Swap them, or widen the range. 2
    """

    exit_code = 2


class InvalidParameter(BadInput):
    """A public setting is impossible.

    >>> error = InvalidParameter("tau", "must be 1 to many", "Lower tau.")
    >>> print(error)
    tau must be 1 to many. Nothing was drawn or spent. Lower tau.
    >>> error.name
    'tau'
    """

    def __init__(self, name: str, problem: str, repair: str) -> None:
        super().__init__(f"{name} {problem}. Nothing was drawn or spent. {repair}")
        self.name, self.problem, self.repair = name, problem, repair


class InvalidData(BadInput):
    """Values are not of the declared type or not in the public domain.

    >>> print(InvalidData("a value is missing", "Clean it first."))
    a value is missing. No randomness was drawn and nothing was spent. Clean it first.
    """

    def __init__(
        self, problem: str, repair: str, *, cost: str = "No randomness was drawn and nothing was spent"
    ) -> None:
        super().__init__(f"{problem}. {cost}. {repair}")


class BudgetExceeded(BadInput):
    """A ledger has too little left for what was asked.

    >>> print(BudgetExceeded("collection 'shop'", 2.0, 0.5, "what is left of 8"))
    collection 'shop' asks for ε = 2, above 0.5, what is left of 8. Nothing was drawn, charged or sent. Ask for less.
    """

    def __init__(
        self, what: str, asked: float | Fraction, left: float | Fraction, limit: str, letter: str = "ε"
    ) -> None:
        super().__init__(
            f"{what} asks for {letter} = {float(asked):g}, above {float(left):g}, {limit}. "
            "Nothing was drawn, charged or sent. Ask for less."
        )
        self.asked, self.left = asked, left


class QueryRefused(BadInput):
    """A question cannot be answered as it stands.

    >>> print(QueryRefused("COUNT takes * here", "Write COUNT(*).", text="SELECT COUNT(x)", start=7))
    COUNT takes * here (at character 8: …COUNT(x)…). Nothing was computed. Write COUNT(*).
    """

    def __init__(self, problem: str, repair: str, *, text: str = "", start: int | None = None) -> None:
        position = "" if start is None else f" (at character {start + 1}: …{text[start : start + 30]}…)"
        super().__init__(f"{problem}{position}. Nothing was computed. {repair}")
        self.start, self.problem, self.repair, self.text = start, problem, repair, text

    def within(self, text: str) -> QueryRefused:
        """The same refusal, shown in the text that somebody wrote: parts of it may have been asked in other words."""
        if self.start is None or self.text == text:
            return self
        word = re.match(r"\w+|\S", self.text[self.start :])
        places = [] if word is None else [each.start() for each in re.finditer(re.escape(word[0]), text, re.IGNORECASE)]
        return QueryRefused(self.problem, self.repair, text=text, start=places[0] if places else None)


class SimulationOnly(BadInput):
    """A seeded source, or an ε that adds no noise, was offered to something that promises privacy.

    >>> str(SimulationOnly()).split(". ")[1]
    'Nothing was released'
    """

    def __init__(
        self,
        problem: str = "a SeededSource can be repeated by anyone who knows its seed, so its output is not private",
        repair: str = "Leave `source` out for a release",
    ) -> None:
        super().__init__(
            f"{problem}. Nothing was released. {repair}, or pass simulation=True (--simulation on the command line) "
            "for a test or an experiment on data that need no protection."
        )


class Failure(DeniableError):
    """The request was fine, but it could not be carried out.

    >>> import deniable as dn
    >>> forked = dn.SecureSource()
    >>> forked._process = -1  # as it looks in a child process
    >>> try:
    ...     forked.randbelow(6)
    ... except Failure as error:
    ...     print(str(error).split(",")[0], error.exit_code)
    this SecureSource was made in another process 1
    """


class RandomnessFault(Failure):
    """Going on would repeat or expose randomness.

    >>> import copy
    >>> import deniable as dn
    >>> try:
    ...     copy.copy(dn.SecureSource())
    ... except RandomnessFault as error:
    ...     print(str(error).split(":")[0])
    a SecureSource cannot be copied or pickled
    """


class MissingExtra(Failure):
    """An optional dependency is not installed.

    >>> str(MissingExtra("matplotlib", "plot")).split(". ")[0]
    "this needs the package 'matplotlib', which is not installed"
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package {package!r}, which is not installed. Nothing was done. "
            f"Run: pip install 'deniable[{extra}]' (in a checkout: .venv/bin/pip install '.[{extra}]')."
        )


class ClaimBroken(Failure):
    """Samples show more leakage than a mechanism claims.

    >>> str(ClaimBroken("piecewise: REFUTED")), ClaimBroken.exit_code
    ('piecewise: REFUTED', 1)
    """
