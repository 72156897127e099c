"""The error of an answer before anything is collected, and what it would take to reach another."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from deniable.errors import InvalidParameter, QueryRefused
from deniable.notebook import html_table, html_text
from deniable.queries.dimensions import Dimension
from deniable.queries.plan import Plan, make_plan
from deniable.queries.prediction import CAUSES, Prediction, predict
from deniable.queries.sql import parse
from deniable.queries.table_plan import DESIGNED, DIRECT
from deniable.tables.collection import Collection
from deniable.tables.designs import DESIGNS

ASSUMED = (
    "Assumed: rows spread evenly over the domains, half as many rows per user as the\n"
    "table allows, all users pass public conditions, public measures of size one."
)
UNCLEAR = "unclear: too few users, or too much noise, to divide by their number"
FEWEST, MOST = 10.0, 1e12
LEAST_EPSILON, MOST_EPSILON = 1e-3, 50.0


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """The standard errors to expect, and where they come from.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> forecast = shop.forecast("SELECT AVG(age) AS age FROM users", users=100_000)
    >>> f"{forecast.scalar().stderr:.3f}"
    '0.291'
    """

    plan: Plan
    users: int
    predictions: tuple[Prediction, ...]

    def scalar(self) -> Prediction:
        """The only prediction of a question that asks for one number."""
        if len(self.predictions) != 1:
            raise QueryRefused("the forecast has several numbers", "Read .predictions, or ask for one aggregate.")
        return self.predictions[0]

    @property
    def _title(self) -> str:
        collection = self.plan.collection
        return f"{self.users:,} users, ε = {collection.epsilon:g}, design {collection.design}, {self.plan.rule} weights"

    def _rows(self) -> list[list[str]]:
        """A header, and a row per answer."""
        rows = [["", "stderr", "of users", *CAUSES]]
        for one in self.predictions:
            if math.isnan(one.stderr):
                rows.append([one.name, "unclear", "", *("" for _ in CAUSES)])
                continue
            share = f"{one.stderr / self.users:.3%}" if one.per_user else ""
            causes = [f"{one.causes[cause]:.0%}" for cause in CAUSES]
            rows.append([one.name, f"{one.stderr:,.4g}", share, *causes])
        return rows

    @property
    def _notes(self) -> list[str]:
        return [UNCLEAR] if any(math.isnan(one.stderr) for one in self.predictions) else []

    def __str__(self) -> str:
        lines, rows = [self._title], self._rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join([row[0].ljust(len(first)), *rest]).rstrip())
        return "\n".join([*lines, *self._notes])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        header, *rows = self._rows()
        return html_table(header, rows, title=self._title, notes=self._notes)


def forecast(
    collection: Collection,
    text: str,
    users: int,
    *,
    weights: str = "optimal",
    sums: str = DIRECT,
    dimensions: Mapping[str, Dimension] | None = None,
) -> Forecast:
    """The standard errors of a question's answers if so many users report."""
    count = _users(users)
    plan = _plan(collection, text, weights, sums, dimensions)
    return Forecast(plan, count, predict(plan, count))


def _plan(
    collection: Collection, text: str, weights: str, sums: str, dimensions: Mapping[str, Dimension] | None = None
) -> Plan:
    return make_plan(parse(text, collection, dimensions, centred=sums == DIRECT), collection, weights, sums)


def _users(users: Any) -> int:
    if isinstance(users, bool) or not isinstance(users, (int, float)) or users != users // 1 or not 1 <= users <= MOST:
        raise InvalidParameter("users", "must be a whole number from 1 to 10^12", "Say how many people will report.")
    return int(users)


def error_of(plan: Plan, users: float) -> float:
    """The largest error among a question's answers: per user for what adds up (COUNT, SUM), else as it is."""
    found = [one.stderr / users if one.per_user else one.stderr for one in predict(plan, users)]
    return max((math.inf if math.isnan(one) else one for one in found), default=0.0)


def users_needed(
    collection: Collection, text: str, error: float, *, weights: str = "optimal", sums: str = DIRECT
) -> int:
    """How many users it takes for a standard error: per user for COUNT and SUM (0.02 is 2 % of them), else absolute."""
    plan = _plan(collection, text, weights, sums)
    found = _smallest(lambda users: error_of(plan, users), _error(error), FEWEST, MOST)
    if found is None:
        raise InvalidParameter("error", "cannot be reached with 10^12 users", "Allow a larger one, or raise epsilon.")
    return math.ceil(found)


def epsilon_needed(
    collection: Collection, text: str, error: float, users: int, *, weights: str = "optimal", sums: str = DIRECT
) -> float:
    """The ε that it takes for a standard error (as in `users_needed`) with a number of users; all else stays."""
    count = _users(users)

    def reached(epsilon: float) -> float:
        changed = with_settings(collection, epsilon=epsilon)
        return error_of(_plan(changed, text, weights, sums), count)

    found = _smallest(reached, _error(error), LEAST_EPSILON, MOST_EPSILON)
    if found is None:
        raise InvalidParameter("error", f"cannot be reached with ε = {MOST_EPSILON:g}", "Allow a larger one.")
    return found


def _error(error: Any) -> float:
    if isinstance(error, bool) or not isinstance(error, (int, float)) or not 0 < error < math.inf:
        raise InvalidParameter("error", "must be a positive number", "Use 0.02 for 2 % of the users.")
    return float(error)


def _smallest(error: Callable[[float], float], wanted: float, low: float, high: float) -> float | None:
    """The smallest argument whose error is small enough, to three digits; errors fall as arguments grow."""
    if error(high) > wanted:
        return None
    if error(low) <= wanted:
        return low
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if error(middle) <= wanted else (middle, high)
    return high


def with_settings(collection: Collection, **changes: Any) -> Collection:
    """The same tables under other settings."""
    settings: dict[str, Any] = {
        "epsilon": collection.epsilon,
        "design": collection.design,
        "fanout": collection.fanout,
        "oracle": collection.oracle,
        "shares": collection.shares,
    }
    return Collection(*collection.tables, **{**settings, **changes})


@dataclass(frozen=True, slots=True)
class Choice:
    """A design, how it is asked, and the error of every question."""

    design: str
    weights: str
    sums: str
    errors: tuple[float, ...]
    """Infinite where a question is unclear or cannot be asked."""

    @property
    def score(self) -> float:
        """The geometric mean of the errors."""
        return math.inf if math.inf in self.errors else geometric_mean([max(one, 1e-300) for one in self.errors])


@dataclass(frozen=True, slots=True)
class Comparison:
    """Designs and weights by the error they would have, best first."""

    users: int
    questions: tuple[str, ...]
    choices: tuple[Choice, ...]

    @property
    def best(self) -> Choice:
        """The recommendation: the smallest geometric mean of errors over the questions."""
        return self.choices[0]

    def _repr_html_(self) -> str:
        """A table for notebooks, best first."""
        header = ["design", "weights", "sums", *(f"q{number}" for number in range(1, len(self.questions) + 1))]
        rows = (
            [one.design, one.weights, one.sums, *("unclear" if math.isinf(x) else f"{x:,.3g}" for x in one.errors)]
            for one in self.choices
        )
        notes = (f"q{number}: {text}" for number, text in enumerate(self.questions, 1))
        return html_table(header, rows, title=f"Predicted standard errors, {self.users:,} users", notes=notes)


def compare(collection: Collection, questions: Sequence[str], users: int) -> Comparison:
    """What each design and each way of weighing would make of some questions, before anything is collected."""
    count = _users(users)
    if not questions:
        raise InvalidParameter("questions", "are missing", "Give at least one SELECT.")
    for text in questions:
        parse(text, collection)  # what is refused is refused once, and not by every design
    choices = []
    for design in sorted(DESIGNS):
        try:
            changed = with_settings(collection, design=design)
        except InvalidParameter:
            continue  # too many views for this design
        ways = [("optimal", DIRECT), ("greedy", DIRECT), ("rdc", DIRECT)]
        if design in ("ahio", "ehio", "sr-hio", "amg"):
            ways += [("optimal", DESIGNED), ("greedy", DESIGNED), ("rdc", DESIGNED)]
        for weights, sums in ways:
            errors = tuple(_error_or_none(changed, text, count, weights, sums) for text in questions)
            choices.append(Choice(design, weights, sums, errors))
    # Where nothing tells two apart, the simpler one comes first.
    choices.sort(
        key=lambda one: (one.score, sum(map(math.isinf, one.errors)), one.sums != DIRECT, one.weights != "optimal")
    )
    return Comparison(count, tuple(questions), tuple(choices))


def _error_or_none(collection: Collection, text: str, users: int, weights: str, sums: str) -> float:
    try:
        return error_of(_plan(collection, text, weights, sums), users)
    except QueryRefused:  # too many cells for this design
        return math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """How a question is answered from the reports at hand, and what error that should have.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> frame = {"uid": range(10_000), "age": [20, 30] * 5_000}
    >>> db = dn.connect(shop.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
    >>> explanation = db.explain("SELECT AVG(age) FROM users")
    >>> explanation.forecast.users, dict(explanation.reports)
    (10000, {'users': 10000})
    """

    forecast: Forecast
    reports: Mapping[str, int]

    def __str__(self) -> str:
        plan, collection = self.forecast.plan, self.forecast.plan.collection
        lines = [str(plan)]
        for table in plan.tables:
            per_user = collection.reports_per_user(table.table)
            spent = collection.epsilon_per_report(table.table)
            saying = sum(part.share for part in table.parts) / len(table.parts) * self.reports[table.table]
            lines.append(
                f"{table.table}: {saying:,.0f} of {self.reports[table.table]:,} reports count, "
                f"{per_user} per user with ε = {spent:.4g} each"
            )
        return "\n".join([*lines, "predicted:", *str(self.forecast).splitlines(), ASSUMED])

    def _repr_html_(self) -> str:
        """The text, and the forecast as a table, for notebooks."""
        said = str(self).split("\npredicted:\n")[0]
        return html_text(said) + self.forecast._repr_html_() + html_text(ASSUMED)
