"""One randomiser per file, each a frozen value with an exact law.

Importing this package needs the standard library alone, and so does `perturb_one` of every randomiser: that is what a
device runs. Arrays (numpy, Arrow) are imported when an array is handed in, and randomisers when they are named.
"""

from typing import TYPE_CHECKING

from deniable.lazy_names import lazy_names

if TYPE_CHECKING:
    from deniable.mechanisms.admissible_noise import CauchyNoise, GaussianNoise, LaplaceNoise
    from deniable.mechanisms.discrete_laplace import DiscreteLaplace
    from deniable.mechanisms.hybrid import Hybrid
    from deniable.mechanisms.local_hashing import HashedReports, LocalHashing
    from deniable.mechanisms.noisy_max import NoisyMax
    from deniable.mechanisms.pak_threshold import PAKThreshold
    from deniable.mechanisms.permute_and_flip import PermuteAndFlip
    from deniable.mechanisms.piecewise import Piecewise
    from deniable.mechanisms.randomized_response import RandomizedResponse
    from deniable.mechanisms.smooth_sensitivity import SmoothPercentile
    from deniable.mechanisms.square_wave import SquareWave
    from deniable.mechanisms.stochastic_rounding import StochasticRounding
    from deniable.mechanisms.subset_selection import SubsetSelection

__all__ = [
    "CauchyNoise",
    "DiscreteLaplace",
    "GaussianNoise",
    "HashedReports",
    "Hybrid",
    "LaplaceNoise",
    "LocalHashing",
    "NoisyMax",
    "PAKThreshold",
    "PermuteAndFlip",
    "Piecewise",
    "RandomizedResponse",
    "SmoothPercentile",
    "SquareWave",
    "StochasticRounding",
    "SubsetSelection",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "CauchyNoise": "deniable.mechanisms.admissible_noise",
        "DiscreteLaplace": "deniable.mechanisms.discrete_laplace",
        "GaussianNoise": "deniable.mechanisms.admissible_noise",
        "HashedReports": "deniable.mechanisms.local_hashing",
        "Hybrid": "deniable.mechanisms.hybrid",
        "LaplaceNoise": "deniable.mechanisms.admissible_noise",
        "LocalHashing": "deniable.mechanisms.local_hashing",
        "NoisyMax": "deniable.mechanisms.noisy_max",
        "PAKThreshold": "deniable.mechanisms.pak_threshold",
        "PermuteAndFlip": "deniable.mechanisms.permute_and_flip",
        "Piecewise": "deniable.mechanisms.piecewise",
        "RandomizedResponse": "deniable.mechanisms.randomized_response",
        "SmoothPercentile": "deniable.mechanisms.smooth_sensitivity",
        "SquareWave": "deniable.mechanisms.square_wave",
        "StochasticRounding": "deniable.mechanisms.stochastic_rounding",
        "SubsetSelection": "deniable.mechanisms.subset_selection",
    },
)
