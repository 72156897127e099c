"""`deniable stream plot`, `profile` and `forecast`: commands that spend no ε."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import click

from deniable.cli.terminal import confidence_option, short, show, table
from deniable.errors import InvalidParameter
from deniable.exact import check_epsilon
from deniable.queries.answers.answer_layout import number
from deniable.simulation import NOTE
from deniable.wording import counted, percent

if TYPE_CHECKING:
    from deniable.streams import Expectation

HIERARCHY = click.option(
    "--hierarchy",
    type=click.Choice(["auto", "tree", "tent"]),
    default="auto",
    show_default=True,
    help="Noise by a tree or by tents. auto: by predicted error.",
)


@click.group()
def stream() -> None:
    """Publish a stream of numbers, and ask about windows of it."""


@stream.command()
@click.argument("path")
@click.option("-o", "--output", required=True, help="A .png, .svg or .pdf file.")
@click.option("--window", type=int, default=None, help="Values per point. Default: whole blocks, about 200 points.")
@click.option("--truth", default=None, help="The original file, for comparison. Shows what privacy hides.")
@click.option("--column", default="value", show_default=True, help="Column of the values in --truth.")
@click.option("--trend", is_flag=True, help="Add a smooth curve, with a 95 % band that holds everywhere at once.")
@click.option("--key", default=None, help="The stream of this key, in a store with keys.")
def plot(
    path: str, output: str, window: int | None, truth: str | None, column: str, trend: bool, key: str | None
) -> None:
    """Draw the means of consecutive windows, with 95 % intervals.

    PATH is a file, or a store that may be live.

    \b
    Example:
      deniable stream plot private.parquet -o stream.png --window 1440
    """
    from deniable.figure import check_ending, require_plotting
    from deniable.plotting.stream_plot import draw, read_truth
    from deniable.stores import StoredStream, read_release

    check_ending(output)
    require_plotting()
    values = None if truth is None else read_truth(truth, column)
    released = read_release(path) if key is None else StoredStream(path).by_key([key])[key]
    draw(released, output, window=window, truth=values, trend=trend)
    click.echo(f"wrote {output}", err=True)


@stream.command()
@click.argument("path")
@click.option("--period", required=True, help="hour, day or week by timestamps, or a number of values.")
@click.option("--phases", type=int, default=None, help="Parts of a period. Default: 60, 24, 7; of values at most 24.")
@confidence_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per phase.")
def profile(path: str, period: str, phases: int | None, confidence: float, as_json: bool) -> None:
    """Means by phase of a period, such as days of the week.

    *noise* is an exact standard error. *smoothing* estimates how far predictions inside blocks are off, in the same
    direction in every period. The interval covers both.

    \b
    Example:
      deniable stream profile private.parquet --period week
    """
    from deniable.stores import read_release

    released = read_release(path)
    means = released.profile(int(period) if period.isdecimal() else period, phases=phases, confidence=confidence)
    if as_json:
        for row in means.to_arrow().to_pylist():
            click.echo(json.dumps(row))
        if means.simulation:
            click.echo(NOTE, err=True)
        return
    title = f"{counted(len(released), 'value')}, by phase of a {period if not period.isdecimal() else 'period'}"
    made = table(title, "phase", "mean", f"{percent(confidence)} interval", "noise", "smoothing", "values", folding=0)
    for label, mean, count in zip(means.labels, means.means, means.counts, strict=True):
        low, high = mean.interval
        error = math.hypot(mean.stderr, mean.smoothing)
        interval = f"{number(low, error)} to {number(high, error)}"
        errors = (short(mean.stderr), short(mean.smoothing))
        made.add_row(str(label), number(mean.value, error), interval, *errors, f"{count:,}")
    show(made)
    if means.simulation:
        click.echo(NOTE)


def check_theta(theta: float, bound: float, low: float = 0.0) -> None:
    """Refuse a threshold outside the range of values."""
    if not low < theta <= bound:
        raise InvalidParameter("--theta", f"must lie above {low:g} and not above the bound", "Give another.")


@stream.command()
@click.option("--epsilon", type=float, required=True, help="Privacy of one value against another.")
@click.option("--bound", type=float, required=True, help="Public upper bound of values.")
@click.option("--horizon", type=int, default=1 << 20, show_default=True, help="Values of a chunk: the longest windows.")
@click.option("--theta", type=float, default=None, help="Threshold to assume. Default: the bound.")
@click.option(
    "--block", type=click.IntRange(1), default=None, help="Values of a block. Default: chosen by predicted error."
)
@click.option("--drift", type=float, default=0.04, show_default=True, help="Change of the mean, share of θ.")
@click.option("--spread", type=float, default=0.1, show_default=True, help="Deviation of single values, share of θ.")
@HIERARCHY
@click.option(
    "--events-per-person", type=float, default=None, help="Expected events per person and epoch: also shows --most."
)
@click.option("--window", type=click.IntRange(1), default=1, show_default=True, help="Epochs that one ε covers.")
def forecast(
    epsilon: float,
    bound: float,
    horizon: int,
    theta: float | None,
    block: int | None,
    drift: float,
    spread: float,
    hierarchy: str,
    events_per_person: float | None,
    window: int,
) -> None:
    """Predict the error by window length before publishing.

    Reads no data and spends no ε. Shows the standard errors of window sums, and the same per value. Errors are
    proportional to θ. With --events-per-person, shows how many values of each person should count instead.

    \b
    Example:
      deniable stream forecast --epsilon 0.05 --bound 1638 --theta 60
    """
    from deniable.streams import Expectation, choose_plan
    from deniable.streams import forecast as predict

    check_epsilon(epsilon)
    if not 0 < bound < math.inf:
        raise InvalidParameter("--bound", "must be a number above 0", "Give the largest value to expect.")
    if theta is not None:
        check_theta(theta, bound)
    expected = Expectation(drift, spread)
    if events_per_person is not None:
        _forecast_persons(epsilon, horizon, bound if theta is None else theta, events_per_person, window, expected)
        return
    top = max(math.ceil(bound), 1)
    plan = choose_plan(epsilon, horizon, expectation=expected, block=block, hierarchy=hierarchy, bound=top)
    cut = bound if theta is None else theta
    lengths = [length for length in (1, 60, 1440, 65_536, horizon // 2, horizon) if 1 <= length <= horizon]
    made = table(
        "Standard error of window sums",
        "window",
        "noise",
        "smoothing",
        "both",
        "per value",
        numbers_from=0,
    )
    for row in predict(plan, epsilon, cut, sorted(set(lengths)), expected):
        numbers = (row.noise, row.smoothing, row.total, row.total / row.length)
        made.add_row(f"{row.length:,}", *(f"{figure:,.4g}" for figure in numbers))
    show(made)
    click.echo(
        f"ε = {epsilon:g}, θ = {cut:g}, chunks of {plan.horizon:,}, blocks of {plan.block:,}, "
        f"{plan.hierarchy} of fan-out {plan.fanout}."
    )


def _forecast_persons(
    epsilon: float, horizon: int, theta: float, events: float, window: int, expected: Expectation
) -> None:
    """Errors of random windows by the number of values of a person that count, the best first."""
    from deniable.streams import person_forecast

    made = table(
        "Standard error per value of random windows", "most", "counted", "noise", "missing", "both", numbers_from=0
    )
    for row in person_forecast(epsilon, horizon, events, window=window, expectation=expected)[:6]:
        figures = (f"{theta * share:,.4g}" for share in (row.noise, row.missing, row.total))
        made.add_row(f"{row.most:,}", percent(round(row.counted, 2)), *figures)
    show(made)
    click.echo(f"ε = {epsilon:g} per person over {counted(window, 'epoch')}, θ = {theta:g}, the best --most first.")
