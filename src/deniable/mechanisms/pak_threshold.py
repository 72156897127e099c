"""PAK's truncation threshold: a private percentile, raised so that it seldom falls below the true one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from deniable.checks import check_number
from deniable.errors import InvalidParameter
from deniable.exact import exp_between
from deniable.mechanisms.admissible_noise import AdmissibleNoise
from deniable.mechanisms.smooth_sensitivity import DEFAULT_DELTA, DEFAULT_NOISE, SmoothPercentile

_ROUNDING = 2**64


@dataclass(frozen=True, slots=True)
class PAKThreshold(SmoothPercentile):
    """A threshold that lies below the percentile x_p with probability about β (`undershoot`) only.

        θ = x_p + κ·S·(Z + G⁻¹(1 − β))/a,  κ = 1/(1 − (e^b − 1)·G⁻¹(1 − β)/a)        [PAK19; WCZ21, appendix B]

    (ε, δ)-DP for one replaced value, as `SmoothPercentile` is. Between neighbours x_p + κ·S·c/a moves by at most
    S·(1 + κ·c·(e^b − 1)/a) = κ·S, for any constant c ≥ 0. Here the centre is rounded up to an integer, which adds less
    than 1, and κ·S + 1 is as smooth as S; so the noise has scale (κ·S + 1)/a. κ is rounded up, which keeps the
    inequality. Parameters for which κ is not positive are refused: this includes Cauchy noise with a small β.

    Published plots lack the `cap` at the bound, which costs no privacy: cap=False reproduces them.

    >>> 0 <= PAKThreshold(1.0, bound=10).perturb_one([1, 2, 9]) <= 10
    True
    """

    percentile: float = 0.99575
    delta: float = DEFAULT_DELTA
    noise: AdmissibleNoise = DEFAULT_NOISE
    cap: bool = True
    undershoot: float = 0.3 * 0.02

    def __post_init__(self) -> None:
        SmoothPercentile.__post_init__(self)
        problem, repair = "must be above 0 and at most 0.5", "Use 0.006, as PAK does."
        check_number("undershoot", self.undershoot, problem, repair, above=0, largest=0.5)
        if math.isfinite(self.epsilon) and self._push() >= 1:
            raise InvalidParameter(
                "undershoot",
                "is too small for this ε, δ and noise: no threshold of PAK's form is private",
                "Raise undershoot, lower delta, or use LaplaceNoise().",
            )

    @property
    def kappa(self) -> Fraction:
        """κ, rounded up: how much more noise the raised centre needs."""
        return Fraction(math.ceil(_ROUNDING / (1 - self._push())), _ROUNDING)

    @property
    def lift(self) -> Fraction:
        """G⁻¹(1 − β), rounded up. Any rational is private here, so the quantile's own rounding cannot hurt."""
        return Fraction(math.ceil(self.noise.quantile(1 - self.undershoot) * 2**32), 2**32)

    def _push(self) -> Fraction:
        """(e^b − 1)·G⁻¹(1 − β)/a, from above."""
        return (exp_between(self.smoothing)[1] - 1) * self.lift / self.stretch

    def _centre_and_scale(self, ordered: list[int]) -> tuple[int, Fraction]:
        centre = ordered[self.rank(len(ordered)) - 1]
        if math.isinf(self.epsilon):
            return centre, Fraction(0)
        sensitivity = self.kappa * self._sensitivity(ordered)
        return math.ceil(centre + sensitivity * self.lift / self.stretch), (sensitivity + 1) / self.stretch
