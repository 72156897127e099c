"""What people as the unit cost, and how many values of each should count, before any data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deniable.checks import check_integer, check_number
from deniable.errors import InvalidParameter
from deniable.streams.central.stream_forecast import Expectation, choose_plan

_NEGLIGIBLE_SHARE = 1e-9
_AS_GOOD_AS_INFINITE = 1e6


@dataclass(frozen=True, slots=True)
class PersonForecast:
    """The error of sums over random windows if `most` values of each person count, as shares of θ·(longest window).

    `noise` holds the tree's noise and the smoother's predictions, `missing` what values that do not count leave out.

    >>> PersonForecast(most=2, value_epsilon=0.5, counted=0.9, noise=0.03, missing=0.04).total
    0.05
    """

    most: int
    value_epsilon: float
    counted: float
    """The share of all events that count."""
    noise: float
    missing: float

    @property
    def total(self) -> float:
        """Noise and missing values together."""
        return math.hypot(self.noise, self.missing)


def person_forecast(
    epsilon: float,
    horizon: int,
    events: float | Mapping[int, float],
    *,
    window: int = 1,
    apart: float | None = None,
    expectation: Expectation | None = None,
    most: Sequence[int] | None = None,
) -> list[PersonForecast]:
    """Errors by `most`, from public expectations. The first of the list is the best.

    `events`: how many events a person who takes part has in an epoch, as shares of persons by number, or their mean (a
    geometric distribution is then assumed). `apart`: by how much the values that do not count differ from the stand-in
    on average, as a share of θ; by default the `spread` of single values that is expected.

    >>> best, *others = person_forecast(1.0, 2**20, 4.0)
    >>> best.most, round(best.counted, 3)
    (24, 0.999)
    """
    expected = expectation or Expectation()
    check_number("epsilon", epsilon, "must be a finite number above 0", "Use 1.", above=0)
    check_integer("window", window, 1, 1 << 20)
    shares = _shares(events)
    off = expected.spread if apart is None else apart
    check_number("apart", off, "must be a share of θ, from 0 to 1", "Use 0.1.", smallest=0, largest=1)
    mean = sum(count * share for count, share in shares.items())
    forecasts = []
    for number in most or _candidates(max(shares)):
        check_integer("most", number, 1, 1 << 20)
        cost = epsilon / (number * window)
        plan = choose_plan(cost, horizon, expectation=expected)
        noise = plan.noise(cost) + plan.smoothing(expected.knots)
        counted = sum(min(count, number) * share for count, share in shares.items()) / mean
        missing = horizon / math.sqrt(6) * (1 - counted) * off  # E[L²] = r²/6 for a random window
        forecasts.append(PersonForecast(number, cost, counted, math.sqrt(noise) / horizon, missing / horizon))
    return sorted(forecasts, key=lambda forecast: forecast.total)


def best_most(epsilon: float, horizon: int, events: float | Mapping[int, float], *, window: int = 1) -> int:
    """How many values of each person should count, from public expectations.

    >>> best_most(1.0, 2**20, 4.0)
    24
    """
    return person_forecast(min(epsilon, _AS_GOOD_AS_INFINITE), horizon, events, window=window)[0].most


def _candidates(largest: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12 … up to what anybody has."""
    steps = sorted({2**power for power in range(21)} | {3 * 2**power for power in range(19)})
    return [step for step in steps if step < largest] + [min(largest, 1 << 20)]


def _shares(events: float | Mapping[int, float]) -> dict[int, float]:
    if not isinstance(events, Mapping):
        check_number("events", events, "must be at least 1", "Give the mean of those who take part.", smallest=1)
        rate, result, count, rest = 1 / float(events), {}, 1, 1.0
        while rest > _NEGLIGIBLE_SHARE and count < 1 << 16:
            result[count] = rest * rate
            rest -= result[count]
            count += 1
        return result
    if not events or any(count < 1 or share < 0 for count, share in events.items()) or not sum(events.values()) > 0:
        raise InvalidParameter("events", "must be shares of persons by number of events", "Use {1: 0.8, 5: 0.2}.")
    total = sum(events.values())
    return {int(count): share / total for count, share in events.items()}
