"""Private streams: values in one by one, private values out, the sum or mean over any window with its standard error.

`ToPS` is the publisher to use; the others are for comparison. All trust whoever runs them.
"""

from deniable.streams.covariance import IndependentNoise, TreeNoise
from deniable.streams.forecast import Expectation, Plan, choose_plan, forecast
from deniable.streams.hierarchy import Hierarchy
from deniable.streams.layout import Grid
from deniable.streams.perturber import Perturber
from deniable.streams.publisher import Publisher
from deniable.streams.publishers import NME, PAK, Flat, Hc16, ToPS, restore
from deniable.streams.released import Released, WindowEstimate
from deniable.streams.settings import Settings
from deniable.streams.smoother import Exponential, Mean, Median, MovingAverage, Recent
from deniable.streams.threshold import (
    FixedPercentile,
    PAKPercentile,
    PaperScore,
    PredictedError,
    PublicThreshold,
    SmoothThreshold,
)
from deniable.streams.warmup import Learnt

__all__ = [  # noqa: RUF022 - in the order of sorted(), which another test asks for
    "Expectation",
    "Exponential",
    "FixedPercentile",
    "Flat",
    "Grid",
    "Hc16",
    "Hierarchy",
    "IndependentNoise",
    "Learnt",
    "Mean",
    "Median",
    "MovingAverage",
    "NME",
    "PAK",
    "PAKPercentile",
    "PaperScore",
    "Perturber",
    "Plan",
    "PredictedError",
    "PublicThreshold",
    "Publisher",
    "Recent",
    "Released",
    "Settings",
    "SmoothThreshold",
    "ToPS",
    "TreeNoise",
    "WindowEstimate",
    "choose_plan",
    "forecast",
    "restore",
]
