"""The error of an answer before anything is collected, and what it would take to reach another."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deniable.checks import check_number, is_number
from deniable.errors import InvalidParameter, QueryRefused
from deniable.notebook import html_table, html_text
from deniable.queries.forecasts.assumed_rows import (
    EVENLY,
    NOTHING_SAID,
    AssumedRows,
    Assumption,
    RowsGiven,
    Span,
    assumed_rows,
)
from deniable.queries.forecasts.expected_evidence import with_matching
from deniable.queries.forecasts.expected_keys import expected_functions
from deniable.queries.forecasts.influence import Influence
from deniable.queries.forecasts.predicted_range import WORTH_SAYING, not_known, range_note, ranged, shown_range
from deniable.queries.forecasts.prediction import CAUSES, Prediction, predict
from deniable.queries.parsing.dimensions import Dimension
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.plan import Plan, make_plan
from deniable.queries.question.listed_words import texts_of
from deniable.queries.weights.axis_weights import Rule
from deniable.queries.weights.table_plan import DIRECT
from deniable.queries.words.smallest_found import forecast_words
from deniable.tables.schema.rounds import stands_for
from deniable.tables.specification.specification import Specification
from deniable.wording import counted

ASSUMPTIONS = (
    "Assumed: rows spread evenly over the domains, half as many rows per user as the\n"
    "table allows unless rows are given, all users pass public conditions, public\n"
    "measures of size one."
)
UNCLEAR_FORECAST = "unclear: too few users, or too much noise, to divide by their number"
MODEL = "model: the additional error on data that is smooth between the borders of cells"
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
    reasons: tuple[str, ...] = ()
    """What is not known exactly, where predictions are ranges."""

    def scalar(self) -> Prediction:
        """The only prediction of a question that asks for one number."""
        if len(self.predictions) != 1:
            raise QueryRefused("the forecast has several numbers", "Read .predictions, or ask for one aggregate.")
        return self.predictions[0]

    @property
    def _title(self) -> str:
        collection = self.plan.collection
        users, keyed = counted(self.users, "user"), self.plan.keyed
        owner = None if keyed is None else collection[keyed.join.table].owner
        others = "" if owner is None else f" (of {owner}: {collection.epsilon_of(owner):g})"
        return f"{users}, ε = {collection.epsilon:g}{others}, design {collection.design}, {self.plan.rule} weights"

    @property
    def _assumed(self) -> bool:
        return any(prediction.model for prediction in self.predictions)

    def _rows(self) -> list[list[str]]:
        """A header, and a row per answer."""
        assumed, ranged = self._assumed, bool(self.reasons)
        names = list(self.predictions[0].causes) if self.predictions else list(CAUSES)
        rows = [["", "stderr", *["model"] * assumed, *["range"] * ranged, "of users", *names]]
        for prediction in self.predictions:
            span = [shown_range(prediction)] * ranged
            if math.isnan(prediction.stderr):
                rows.append([prediction.name, "unclear", *[""] * assumed, *span, "", *("" for _ in names)])
                continue
            share = f"{prediction.error / self.users:.3%}" if prediction.per_user else ""
            causes = [f"{prediction.causes[cause]:.0%}" for cause in names]
            model = [f"{prediction.model:,.4g}"] if assumed else []
            rows.append([prediction.name, f"{prediction.stderr:,.4g}", *model, *span, share, *causes])
        return rows

    @property
    def _notes(self) -> list[str]:
        unclear = [UNCLEAR_FORECAST] if any(math.isnan(prediction.stderr) for prediction in self.predictions) else []
        return [*unclear, *[MODEL] * self._assumed, *([range_note(self.reasons)] if self.reasons else [])]

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
    collection: Specification,
    text: str,
    users: int,
    *,
    weights: str = "optimal",
    sums: str = DIRECT,
    dimensions: Mapping[str, Dimension] | None = None,
    rows: RowsGiven = None,
    matching: float | Span | None = None,
) -> Forecast:
    """The standard errors of a question's answers with this many users. See `Collection.forecast`."""
    if texts_of(collection):
        collection, _ = forecast_words(text, collection, users)
    count, assumed = checked_users(users), assumed_rows(collection, rows, matching)
    answering = count / stands_for(collection.rounds)
    plan = planned(collection, text, weights, sums, answering, dimensions, assumed=assumed)
    return predicted(with_matching(plan, answering, assumed.middle), answering, assumed)


def predicted(plan: Plan, answering: float, assumed: AssumedRows) -> Forecast:
    """What a plan leads to if this many people answer: about everybody, with ranges for what is not known of rows."""
    scale = stands_for(plan.collection.rounds)
    predictions, reasons = ranged(plan, answering, assumed)
    return Forecast(plan, math.ceil(answering * scale), scaled_up(predictions, scale), reasons)


def scaled_up(predictions: tuple[Prediction, ...], scale: float) -> tuple[Prediction, ...]:
    """Predictions about those who answer, as predictions about everybody."""
    return tuple(
        replace(
            prediction,
            stderr=prediction.stderr * scale,
            model=prediction.model * scale,
            low=prediction.low * scale,
            high=prediction.high * scale,
        )
        if prediction.per_user
        else prediction
        for prediction in predictions
    )


def planned(
    collection: Specification,
    text: str,
    weights: str,
    sums: str,
    users: float,
    dimensions: Mapping[str, Dimension] | None = None,
    *,
    assumed: AssumedRows = NOTHING_SAID,
) -> Plan:
    """The plan for a question with this many users, of whom those who report in all of its tables count."""
    asked = collection.asked
    question = parse(text, asked, dimensions, centred=sums == DIRECT)
    reporting = users * assumed.middle.reporting(asked[name] for name in question.tables)
    if question.keyed is None:
        return make_plan(question, asked, weights, sums, users=reporting)
    keyed = expected_functions(question, asked, Rule.of(weights))
    return make_plan(question, asked, weights, sums, users=reporting, unbiased=True, keyed=keyed)


def checked_users(users: Any) -> int:
    """A checked number of users."""
    if not is_number(users) or users != users // 1 or not 1 <= users <= MOST:
        raise InvalidParameter("users", "must be a whole number from 1 to 10^12", "Say how many people will report.")
    return int(users)


def error_of(plan: Plan, users: float, assumed: Assumption = EVENLY) -> float:
    """The largest error among a question's answers: per user for what adds up (COUNT, SUM), else as it is."""
    scale = stands_for(plan.collection.rounds)
    return largest_error(scaled_up(predict(plan, users / scale, assumed), scale), users)


def largest_error(predicted: Sequence[Prediction], users: float) -> float:
    """The largest error of some predictions, per user for what adds up; infinite if one is unclear."""
    errors = [each.error / users if each.per_user else each.error for each in predicted]
    return max((math.inf if math.isnan(error) else error for error in errors), default=0.0)


def span_of(plan: Plan, users: float, assumed: AssumedRows) -> Span:
    """That error from low to high, as far as rows are known; not numbers where nothing is left open."""
    reasons, ends = not_known(plan, assumed)
    if not reasons:
        return math.nan, math.nan
    errors = [error_of(plan, users, assumption) for assumption in (assumed.middle, *ends)]
    low, high = min(errors), max(errors)
    return (low, high) if math.isfinite(low) and high > WORTH_SAYING * low else (math.nan, math.nan)


def left_open(collection: Specification, text: str) -> float:
    """The part of that error that neither more users nor a larger ε lowers: what a grid's cells cannot determine."""
    if collection.grids is None:
        return 0.0
    most = collection.with_settings(epsilon=MOST_EPSILON)
    predictions = predict(planned(most, text, "optimal", DIRECT, MOST), MOST)
    return max(
        (prediction.model / MOST if prediction.per_user else prediction.model for prediction in predictions),
        default=0.0,
    )


def users_needed(
    collection: Specification,
    text: str,
    error: float,
    *,
    weights: str = "optimal",
    sums: str = DIRECT,
    rows: RowsGiven = None,
    matching: float | Span | None = None,
) -> int:
    """How many users a standard error needs: per user for COUNT and SUM (0.02 is 2 % of them), else absolute."""
    assumed = assumed_rows(collection, rows, matching)
    plan = planned(collection, text, weights, sums, FEWEST)

    def reached(users: float) -> float:
        # On a grid the weights depend on how many users there are.
        mine = plan if collection.grids is None else planned(collection, text, weights, sums, users, assumed=assumed)
        return error_of(mine, users, assumed.middle)

    users = _smallest(reached, _error(error), FEWEST, MOST)
    if users is None:
        _check_not_left_open(collection, text, error)
        raise InvalidParameter("error", "cannot be reached with 10^12 users", "Allow a larger one, or raise epsilon.")
    return math.ceil(users)


def epsilon_needed(
    collection: Specification,
    text: str,
    error: float,
    users: int,
    *,
    weights: str = "optimal",
    sums: str = DIRECT,
    rows: RowsGiven = None,
    matching: float | Span | None = None,
) -> float:
    """The ε that is needed for a standard error (as in `users_needed`) with this many users, all else being equal."""
    count, assumed = checked_users(users), assumed_rows(collection, rows, matching)

    def reached(epsilon: float) -> float:
        changed = collection.with_settings(epsilon=epsilon)
        return error_of(planned(changed, text, weights, sums, count, assumed=assumed), count, assumed.middle)

    epsilon = _smallest(reached, _error(error), LEAST_EPSILON, MOST_EPSILON)
    if epsilon is None:
        _check_not_left_open(collection, text, error)
        raise InvalidParameter("error", f"cannot be reached with ε = {MOST_EPSILON:g}", "Allow a larger one.")
    return epsilon


def _check_not_left_open(collection: Specification, text: str, error: float) -> None:
    """Say so if the grid is the limit, so that more users or a larger ε would not help."""
    least = left_open(collection, text)
    if least > error:
        raise InvalidParameter(
            "error",
            f"cannot be reached on this grid: its cells leave {least:.3g} open, whatever ε and the number of users",
            "Allow a larger one, cut the grid finer (deniable fit does), or ask along its borders with unbiased.",
        )


def _error(error: Any) -> float:
    check_number("error", error, "must be a positive number", "Use 0.02 for 2 % of the users.", above=0)
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
    influences: tuple[Influence, ...] = ()
    """How far liars move each answer."""
    rounds: tuple[str, ...] = ()
    """Errors of levels and changes under each mode of rounds, in lines."""
    groups: tuple[Explanation, ...] = ()
    """If several groups of users were collected apart, each of them; the forecast is then about all users."""

    def __str__(self) -> str:
        if self.groups:
            apart = [f"group {number} of {len(self.groups)}:\n{group}" for number, group in enumerate(self.groups, 1)]
            together = [f"predicted over all {counted(self.forecast.users, 'user')}:", *self._together()]
            return "\n".join([*apart, *map(str, self.influences), *together])
        plan, collection = self.forecast.plan, self.forecast.plan.collection
        lines = [str(plan)]
        others = [] if plan.keyed is None else [plan.keyed.asked.plan]
        for table in (*plan.tables, *others):
            per_user = collection.reports_per_user(table.table)
            spent = collection.epsilon_per_report(table.table)
            saying = sum(part.share for part in table.parts) / len(table.parts) * self.reports[table.table]
            lines.append(
                f"{table.table}: {saying:,.0f} of {self.reports[table.table]:,} reports count, "
                f"{per_user} per {collection[table.table].key or 'user'} with ε = {spent:.4g} each"
            )
        lines += [str(influence) for influence in self.influences]
        return "\n".join([*lines, "predicted:", *str(self.forecast).splitlines(), ASSUMPTIONS, *self.rounds])

    def _together(self) -> list[str]:
        """The lines of the forecast over all groups, which have designs of their own."""
        return str(self.forecast).splitlines()[1:]

    def _repr_html_(self) -> str:
        """The text, and the forecast as a table, for notebooks."""
        if self.groups:
            return html_text(str(self))
        said = str(self).split("\npredicted:\n")[0]
        return html_text(said) + self.forecast._repr_html_() + html_text("\n".join((ASSUMPTIONS, *self.rounds)))
