"""What devices and the server of a stream agree on before anything is sent. All of it is public."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace

from deniable.accounting import Spending, Unit, in_parallel
from deniable.checks import check_number
from deniable.errors import InvalidParameter
from deniable.mechanisms import Hybrid, Piecewise, SquareWave, StochasticRounding

Mechanism = Hybrid | Piecewise | SquareWave | StochasticRounding
MECHANISMS: dict[str, type[Mechanism]] = {
    "hybrid": Hybrid,
    "piecewise": Piecewise,
    "rounding": StochasticRounding,
    "wave": SquareWave,
}
SCALES = ("log", "linear")
LOG_STEPS = 2047
"""On the logarithmic scale a value of bound/2047 lies one doubling from 0, and the bound eleven."""
SMALLEST_BOUND, LARGEST_BOUND = 1e-3, 2.0**40


@dataclass(frozen=True, slots=True)
class ToPLProtocol:
    """What devices and server agree on: values in [0, bound], and one ε-LDP report per user, of one of two kinds.

    *First*: the square wave of the value's position on a scale from 0 to 1. On the linear scale, the paper's, all
    values far below the bound look alike. On the logarithmic one (default) the reports show the order of magnitude,
    which is what a threshold has to get right. *Second*, once a threshold θ is announced: min(value, θ) through a
    mechanism for numbers in [0, θ]: the hybrid one unless a comparison asks for another.

    `renewal`: the chance, whatever the value, that a user sends a first report although a threshold is announced. From
    these a server can choose a new one for users who have not answered.

    `name` distinguishes streams: a user who takes part in two spends ε on each. `grid` coarsens both mechanisms, for
    tests.

    >>> ToPLProtocol(epsilon=1.0, bound=2047).position(1.0)
    0.09090909090909091
    """

    epsilon: float
    bound: float
    name: str = ""
    scale: str = "log"
    mechanism: str = "hybrid"
    grid: int | None = None
    renewal: float = 0.0

    def __post_init__(self) -> None:
        check_number("bound", self.bound, "must be a finite number", "Give the public upper bound of the values.")
        problem, repair = "must lie between 0.001 and 2^40", "Change the unit of the values."
        check_number("bound", self.bound, problem, repair, smallest=SMALLEST_BOUND, largest=LARGEST_BOUND)
        if self.scale not in SCALES:
            raise InvalidParameter("scale", f"must be one of {', '.join(SCALES)}", "Use the default.")
        if self.mechanism not in MECHANISMS:
            raise InvalidParameter("mechanism", f"must be one of {', '.join(MECHANISMS)}", "Use the default.")
        if not isinstance(self.name, str):
            raise InvalidParameter("name", "must be a text", "Name the stream.")
        problem, repair = "must be a share of users, from 0 to 1/2", "Use 0.05, or 0 for one threshold for ever."
        check_number("renewal", self.renewal, problem, repair, smallest=0, largest=0.5)
        self.wave  # noqa: B018 - for its checks

    @property
    def wave(self) -> SquareWave:
        """The mechanism of first reports, on positions in [0, 1]."""
        return SquareWave(self.epsilon, 0.0, 1.0, self.grid)

    def second(self, theta: float) -> Mechanism:
        """The mechanism of second reports, on values in [0, θ]."""
        kind = MECHANISMS[self.mechanism]
        if kind is StochasticRounding:
            return kind(self.epsilon, 0.0, theta)
        return kind(self.epsilon, 0.0, theta, self.grid)  # type: ignore[call-arg]

    @property
    def spends(self) -> Spending:
        """ε for any two values of a user, who sends one report. Of which kind does not depend on the value."""
        return replace(in_parallel([self.wave.spends, self.second(self.bound).spends]), unit=Unit.USER)

    def outputs(self, theta: float | None = None) -> int:
        """How many different first reports there are, or second ones under θ."""
        mechanism = self.wave if theta is None else self.second(theta)
        if isinstance(mechanism, Hybrid):
            return mechanism.outputs
        return 2 if isinstance(mechanism, StochasticRounding) else mechanism.window.outputs

    def mean_variance(self, theta: float, mean: float, square: float) -> float:
        """Variance of second reports, averaged over values with this mean and mean square.

        For every mechanism this is a quadratic in the value; for the hybrid one above ε = 0.61 it is constant.
        """
        low, middle, high = (self.second(theta).variance(share * theta) for share in (0.0, 0.5, 1.0))
        bend, slope = 2 * (low + high - 2 * middle), 4 * middle - 3 * low - high
        return low + slope * mean / theta + bend * square / theta**2

    def check_theta(self, theta: float) -> float:
        """θ as a float, refused unless it lies in (0, bound]."""
        problem = f"must lie above 0 and not above the bound {self.bound:g}"
        check_number("theta", theta, problem, "Announce another.", above=0, largest=self.bound)
        return float(theta)

    def position(self, value: float) -> float:
        """Where a value in [0, bound] lies on the scale from 0 to 1."""
        share = value / self.bound
        if self.scale == "linear":
            return min(share, 1.0)
        return min(math.log1p(LOG_STEPS * share) / math.log1p(LOG_STEPS), 1.0)

    def value(self, position: float) -> float:
        """The value at a position: the inverse of `position`."""
        if self.scale == "linear":
            return position * self.bound
        return math.expm1(position * math.log1p(LOG_STEPS)) / LOG_STEPS * self.bound

    @property
    def sha256(self) -> str:
        """The hash of all settings. Reports made under other settings are refused."""
        facts = {**asdict(self), "epsilon": float(self.epsilon), "bound": float(self.bound)}
        if not facts["renewal"]:  # as before there was such a share
            del facts["renewal"]
        return hashlib.sha256(json.dumps({"topl": facts}, sort_keys=True).encode()).hexdigest()

    @property
    def tag(self) -> int:
        """The first two bytes of that hash, which every report of a release carries."""
        return int(self.sha256[:4], 16)

    def run_tag(self, *, simulation: bool) -> int:
        """The two bytes that reports carry: `tag` in a release, and other bytes in a simulation."""
        return self.tag ^ 0xFFFF if simulation else self.tag
