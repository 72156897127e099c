"""Noise that may follow the data's own sensitivity: integer laws that survive a shift and a change of scale.

Noise of a scale that depends on the data must hide two things, where its centre is and how wide it is. A law does that
with parameters (a, b) when, for every pair of scales s, s' within a factor e^b of each other and every shift
|d| ≤ a·min(s, s'), the law of X_s and that of d + X_s' are (ε, δ)-indistinguishable.  [NRS07, section 2]

[NRS07] proves its constants for real numbers and ε < 1. The laws here live on the integers and are drawn exactly; the
proofs were done again for them and stand in the docstrings. Up to ε = 1 the constants are those of [NRS07]. Above,
where they are not claimed and do fail (at ε = 50 and δ = 10^-6 they leak more than 20 times δ), their denominators
grow with ε − 1, and the proofs hold for every ε. All are rounded down: privacy can only be better.

The smallest scale is 1/a: a mechanism never uses a sensitivity below one, the resolution of the integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from deniable.checks import check_number
from deniable.errors import InvalidParameter
from deniable.exact import ExpChance, RandBelow, check_epsilon, coin, discrete_laplace

LARGEST_DELTA = 0.5
_ROUNDING_BITS = 64
_DIGITS = 40


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """P(k) ∝ e^(−|k|/s): (ε, δ), and most often the least noise of the three.

        a = ε/2,  b = ε/(2L + max(0, ε − 1)),  L = ln(2/δ)        [NRS07, section 2, for ε ≤ 1]

    Proof for integers. The law's constant is tanh(1/2s), and tanh(x)/tanh(y) ≤ x/y for x ≥ y, so for s ≤ s' the loss is
    at most b + a ≤ ε (L ≥ 1, as δ ≤ 1/2). For s' < s it is at most ε/2 + (|k|/s)(e^b − 1), which passes ε only if
    |k|/s > T with T = (ε/2)/(e^b − 1) ≥ (ε/2)(1/b − 1/2) = L − ε/4 + max(0, ε − 1)/2. That has probability at most
    2e^(−T)/(1 + q), q = e^(−1/s) ≥ e^(−ε/2), and e^(L−T) ≤ 1 + e^(−ε/2) for every ε; so it is at most 2e^(−L) = δ.

    >>> noise = LaplaceNoise()
    >>> noise.tail(10, Fraction(3)) < noise.tail(5, Fraction(3))
    True
    """

    def check_delta(self, delta: float) -> None:
        """Refuse a δ that this law cannot give."""
        _check_positive_delta(delta)

    def stretch(self, epsilon: float, delta: float) -> Fraction:
        """a: noise of scale S/a hides a shift by S."""
        _check_finite(epsilon)
        self.check_delta(delta)
        return Fraction(epsilon) / 2

    def smoothing(self, epsilon: float, delta: float) -> Fraction:
        """b: scales may differ by a factor e^b between neighbours."""
        _check_finite(epsilon)
        self.check_delta(delta)
        exact = Fraction(epsilon)
        return _rounded_down(exact / (2 * _log_above(2 / Fraction(delta)) + max(Fraction(0), exact - 1)))

    def draw(self, scale: Fraction, randbelow: RandBelow) -> int:
        """One exact draw."""
        return discrete_laplace(scale, randbelow)

    def pmf(self, k: int, scale: Fraction) -> float:
        """P(X = k)."""
        return math.tanh(float(1 / (2 * scale))) * math.exp(-_in_scales(k, scale))

    def tail(self, k: int, scale: Fraction) -> float:
        """P(X ≥ k)."""
        if k <= 0:
            return 1.0 - self.tail(1 - k, scale)
        return math.exp(-_in_scales(k, scale)) / (1.0 + math.exp(-float(1 / scale)))

    def variance(self, scale: Fraction) -> float:
        """2q/(1 − q)² with q = e^(−1/s)."""
        step = float(1 / scale)
        return 2.0 * math.exp(-step) / math.expm1(-step) ** 2

    def quantile(self, probability: float) -> float:
        """The continuous law of scale one stays below this with the given probability."""
        _check_probability(probability)
        return math.log(2 * probability) if probability < 0.5 else -math.log(2 * (1 - probability))


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """P(k) ∝ e^(−k²/2s²), the discrete Gaussian [CKS20]: (ε, δ), with thinner tails and a wider middle than Laplace.

        a = ε/(5·√(2L) + max(0, ε − 1)/10),  b = ε/(4(1 + L) + 2·max(0, ε − 1)),  L = ln(2/δ)
                                                                                  [NRS07, section 2, for ε ≤ 1]

    The a = ε/√(−ln δ) and b = ε/(−2 ln δ) printed in [WCZ21, appendix A] do not give (ε, δ): a test shows it.

    Proof for integers. The law is subgaussian, so |k|/s > √(2L) has probability at most 2e^(−L) = δ [CKS20]. Below that
    point the loss never passes ε. With y = 2b and constants c(s) = Σ e^(−k²/2s²), where c(s)/s falls and c(s) grows:
    for s ≤ s' it is at most b + a·√(2L) + a²/2 ≤ (0.11 + 0.2 + 0.17)·ε;
    for s' < s it is at most L(e^y − 1) + e^b·a·√(2L) + a²/2, where the first term is at most 0.57ε for ε ≤ 1 and ε/2
    above (there 2L = ε/y − ε − 1, and (e^y − 1)(1 − y) ≤ y), the second 0.23ε and 0.33ε, the third 0.01ε and 0.17ε.

    >>> noise = GaussianNoise()
    >>> noise.tail(10, Fraction(3)) < noise.tail(5, Fraction(3))
    True
    """

    def check_delta(self, delta: float) -> None:
        """Refuse a δ that this law cannot give."""
        _check_positive_delta(delta)

    def stretch(self, epsilon: float, delta: float) -> Fraction:
        """a: noise of scale S/a hides a shift by S."""
        _check_finite(epsilon)
        self.check_delta(delta)
        exact, log = Fraction(epsilon), _log_above(2 / Fraction(delta))
        return _rounded_down(exact / (5 * _root_above(2 * log) + max(Fraction(0), exact - 1) / 10))

    def smoothing(self, epsilon: float, delta: float) -> Fraction:
        """b: scales may differ by a factor e^b between neighbours."""
        _check_finite(epsilon)
        self.check_delta(delta)
        exact, log = Fraction(epsilon), _log_above(2 / Fraction(delta))
        return _rounded_down(exact / (4 * (1 + log) + 2 * max(Fraction(0), exact - 1)))

    def draw(self, scale: Fraction, randbelow: RandBelow) -> int:
        """One exact draw: discrete Laplace, thinned by exact coins [CKS20]."""
        envelope = math.floor(scale) + 1
        variance = scale * scale
        while True:
            k = discrete_laplace(Fraction(envelope), randbelow)
            # Never zero, so a coin is needed: s² = |k|(⌊s⌋ + 1) makes s an integer, and s + 1 does not divide s².
            excess = (abs(k) - variance / envelope) ** 2 / (2 * variance)
            if coin(ExpChance(excess), randbelow):
                return k

    def pmf(self, k: int, scale: Fraction) -> float:
        """P(X = k)."""
        return math.exp(-(_in_scales(k, scale) ** 2) / 2) / _gaussian_constant(float(scale))

    def tail(self, k: int, scale: Fraction) -> float:
        """P(X ≥ k)."""
        if k <= 0:
            return 1.0 - self.tail(1 - k, scale)
        sigma = float(scale)
        if sigma <= _SUM_UP_TO:
            total, noise = 0.0, float(min(k, 10**9))
            while (term := math.exp(-((noise / sigma) ** 2) / 2)) > total * 1e-18:
                total, noise = total + term, noise + 1
            return total / _gaussian_constant(sigma)
        # Euler-Maclaurin: the sum is the integral, half of its first term, and a twelfth of its first slope.
        middle = _in_scales(k, scale)
        integral = sigma * math.sqrt(math.pi / 2) * math.erfc(middle / math.sqrt(2))
        edge = math.exp(-(middle**2) / 2) * (0.5 + middle / (12 * sigma))
        return (integral + edge) / _gaussian_constant(sigma)

    def variance(self, scale: Fraction) -> float:
        """At most s², and equal to it in double precision for s ≥ 3."""
        sigma = float(scale)
        if sigma > _CONTINUOUS_FROM:
            return sigma**2
        return 2 * math.fsum(k * k * self.pmf(k, scale) for k in range(1, _TERMS))

    def quantile(self, probability: float) -> float:
        """The continuous law of scale one stays below this with the given probability."""
        _check_probability(probability)
        return NormalDist().inv_cdf(probability)


@dataclass(frozen=True, slots=True)
class CauchyNoise:
    """P(k) ∝ 1/(s² + k²): pure ε, paid for with tails so heavy that the noise has no variance.

        a = b = ε/6        [NRS07, section 2, for the density 1/(1 + z²)]

    Proof for integers. A shift by |d| ≤ a·s changes s² + k² by a factor of at most e^(2·asinh(a/2)) ≤ e^a. The law's
    constant is s·tanh(πs)/π and x ↦ tanh(x)/x falls, so a change of scale costs at most a factor e^(2b). Together that
    is a + 2b = ε/2: these constants keep a reserve of a half.

    >>> noise = CauchyNoise()
    >>> noise.tail(10, Fraction(3)) < noise.tail(5, Fraction(3))
    True
    """

    def check_delta(self, delta: float) -> None:
        """Refuse any δ but 0."""
        problem = "must be 0 with Cauchy noise, which is ε-DP"
        check_number("delta", delta, problem, "Pass delta=0.", smallest=0, largest=0)

    def stretch(self, epsilon: float, delta: float) -> Fraction:
        """a: noise of scale S/a hides a shift by S."""
        _check_finite(epsilon)
        self.check_delta(delta)
        return Fraction(epsilon) / 6

    def smoothing(self, epsilon: float, delta: float) -> Fraction:
        """b: scales may differ by a factor e^b between neighbours."""
        return self.stretch(epsilon, delta)

    def draw(self, scale: Fraction, randbelow: RandBelow) -> int:
        """One exact draw, by rejection from blocks that double in width.

        With c = ⌈s⌉, s²/(s² + k²) is at most 1 for |k| in [0, c), and at most 4^(1−j) for |k| in [2^(j−1)·c, 2^j·c).
        The blocks' areas are c, c, c/2, c/4, …: block 0 has a third of the whole, block j ≥ 1 has 2^(1−j) thirds.
        """
        width = math.ceil(scale)
        numerator, denominator = scale.numerator**2, scale.denominator**2
        while True:
            start, length, height = 0, width, 1
            if randbelow(3):
                start = width
                while randbelow(2):
                    start *= 2
                    height *= 4
                length = start
            size, negative = start + randbelow(length), randbelow(2)
            if size == 0 and negative:
                continue  # zero has one sign only
            if randbelow(numerator + size * size * denominator) < height * numerator:
                return -size if negative else size

    def pmf(self, k: int, scale: Fraction) -> float:
        """P(X = k)."""
        width = float(scale)
        return math.tanh(math.pi * width) / (math.pi * width * (1 + _in_scales(k, scale) ** 2))

    def tail(self, k: int, scale: Fraction) -> float:
        """P(X ≥ k)."""
        if k <= 0:
            return 1.0 - self.tail(1 - k, scale)
        # Add terms until the law is smooth; the rest is an integral with three corrections (Euler-Maclaurin).
        start = max(k, 0 if scale >= _SMOOTH_FROM else _SMOOTH_FROM)
        head = math.fsum(self.pmf(n, scale) for n in range(k, start))
        width, edge = float(scale), min(float(min(start, 10**300)), 1e150)
        square = width**2 + edge**2
        slope = edge / (6 * square)
        corrections = 0.5 + slope + slope * ((width**2 - edge**2) / square) / (5 * square)
        integral = math.atan2(width, edge)
        return head + math.tanh(math.pi * width) * (integral + width / square * corrections) / math.pi

    def variance(self, scale: Fraction) -> float:  # noqa: ARG002 - at every scale
        """Infinite: even the mean does not exist."""
        return math.inf

    def quantile(self, probability: float) -> float:
        """The continuous law of scale one stays below this with the given probability."""
        _check_probability(probability)
        return math.tan(math.pi * (probability - 0.5))


AdmissibleNoise = LaplaceNoise | GaussianNoise | CauchyNoise


# Beyond three standard deviations per step, sum and integral agree to e^(−170).
_CONTINUOUS_FROM = 3.0
_TERMS = 128
_SUM_UP_TO = 1000.0
_SMOOTH_FROM = 64


@lru_cache(maxsize=256)
def _gaussian_constant(sigma: float) -> float:
    """Σ e^(−k²/2σ²) over all integers."""
    if sigma > _CONTINUOUS_FROM:
        return sigma * math.sqrt(2 * math.pi)
    return 1 + 2 * math.fsum(math.exp(-((k / sigma) ** 2) / 2) for k in range(1, _TERMS))


def _in_scales(k: int, scale: Fraction) -> float:
    """|k|/s, held below 10^150 so that its square is a float."""
    return float(min(abs(k) / scale, Fraction(10**150)))


@lru_cache(maxsize=256)
def _log_above(x: Fraction) -> Fraction:
    """A rational just above ln x."""
    up = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
    # `ln` rounds to nearest whatever the context says: one unit in the last place encloses it.
    return Fraction(up.next_plus(up.ln(up.divide(Decimal(x.numerator), Decimal(x.denominator)))))


def _root_above(x: Fraction) -> Fraction:
    """A rational just above √x."""
    return Fraction(math.isqrt(math.floor(x * 4**_ROUNDING_BITS)) + 1, 2**_ROUNDING_BITS)


def _rounded_down(x: Fraction) -> Fraction:
    """The first 64 or so binary digits of a positive rational: short enough to compute with, and not above it."""
    unit = Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length() - _ROUNDING_BITS)
    return math.floor(x / unit) * unit


def _check_finite(epsilon: float) -> None:
    check_epsilon(epsilon)
    if math.isinf(epsilon):
        raise InvalidParameter("epsilon", "must be finite for noise to exist", "Use an ε from 0.01 to 10.")


def _check_positive_delta(delta: float) -> None:
    problem = f"must be above 0 and at most {LARGEST_DELTA}"
    repair = "Use one below 1/n for n people, or CauchyNoise() with delta=0."
    check_number("delta", delta, problem, repair, above=0, largest=LARGEST_DELTA)


def _check_probability(probability: float) -> None:
    check_number("probability", probability, "must lie between 0 and 1", "Use a probability.", above=0, below=1)
