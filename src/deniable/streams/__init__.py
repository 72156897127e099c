"""Private streams: values in one by one, private values out, the sum or mean over any window with its standard error.

`ToPS` is the publisher to use where whoever runs it is trusted; the others of its kind are for comparison. Where nobody
is, devices are `ToPLClient`s and `ToPLServer` adds up what they send; `ToPL` simulates both.
"""

from deniable.local_streams import Protocol, StreamReport, ToPLClient
from deniable.streams.covariance import IndependentNoise, TreeNoise
from deniable.streams.forecast import Expectation, Plan, choose_plan, forecast
from deniable.streams.grid import Grid
from deniable.streams.hierarchy import Hierarchy
from deniable.streams.local_belief import Belief
from deniable.streams.local_reports import report_table
from deniable.streams.local_server import ToPLServer
from deniable.streams.local_simulation import ToPL
from deniable.streams.local_threshold import (
    CutTail,
    LocalChoice,
    LocalPercentile,
    NoThreshold,
    Reconstructed,
    SmoothTail,
)
from deniable.streams.perturber import Perturber
from deniable.streams.publisher import Publisher
from deniable.streams.publishers import NME, PAK, Flat, Hc16, ToPS, restore
from deniable.streams.released import Released
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
from deniable.streams.windows import WindowEstimate

__all__ = [  # noqa: RUF022 - in the order of sorted(), which another test asks for
    "Belief",
    "CutTail",
    "Expectation",
    "Exponential",
    "FixedPercentile",
    "Flat",
    "Grid",
    "Hc16",
    "Hierarchy",
    "IndependentNoise",
    "Learnt",
    "LocalChoice",
    "LocalPercentile",
    "Mean",
    "Median",
    "MovingAverage",
    "NME",
    "NoThreshold",
    "PAK",
    "PAKPercentile",
    "PaperScore",
    "Perturber",
    "Plan",
    "PredictedError",
    "Protocol",
    "PublicThreshold",
    "Publisher",
    "Recent",
    "Reconstructed",
    "Released",
    "Settings",
    "SmoothTail",
    "SmoothThreshold",
    "StreamReport",
    "ToPL",
    "ToPLClient",
    "ToPLServer",
    "ToPS",
    "TreeNoise",
    "WindowEstimate",
    "choose_plan",
    "forecast",
    "report_table",
    "restore",
]
