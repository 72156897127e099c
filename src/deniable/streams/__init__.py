"""Private streams: values in one by one, private values out, the sum or mean over any window with its standard error.

`ToPS` is the publisher to use where whoever runs it is trusted; the others of its kind are for comparison. Where nobody
is, devices are `ToPLClient`s and `ToPLServer` adds up what they send; `ToPL` simulates both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable.lazy_names import lazy_names

if TYPE_CHECKING:
    from deniable.streams.central.keyed_publisher import KeyedPublisher
    from deniable.streams.central.named_publishers import NME, PAK, Flat, Hc16, SmoothHc16, ToPS, restore
    from deniable.streams.central.person_bound import PersonBound, person_events
    from deniable.streams.central.person_forecast import PersonForecast, person_forecast
    from deniable.streams.central.person_stream import PersonSettings, PersonStream
    from deniable.streams.central.perturber import Perturber
    from deniable.streams.central.publisher import Publisher
    from deniable.streams.central.settings import Settings
    from deniable.streams.central.stream_forecast import Expectation, StreamPlan, choose_plan, forecast
    from deniable.streams.central.stream_keys import KeyedValues
    from deniable.streams.central.threshold import (
        FixedPercentile,
        PAKPercentile,
        PaperScore,
        PredictedError,
        PublicThreshold,
        SmoothThreshold,
    )
    from deniable.streams.central.warmup import Learnt
    from deniable.streams.local.report_arrays import report_table
    from deniable.streams.local.server import ToPLServer
    from deniable.streams.local.simulated_stream import ToPL
    from deniable.streams.local.stream_client import ToPLClient
    from deniable.streams.local.stream_protocol import ToPLProtocol
    from deniable.streams.local.stream_report import StreamReport
    from deniable.streams.local.threshold_choice import (
        CutTail,
        LocalChoice,
        LocalPercentile,
        NoThreshold,
        Reconstructed,
        SmoothTail,
    )
    from deniable.streams.local.value_distribution import DistributionBelief
    from deniable.streams.released.covariance import IndependentNoise, TreeNoise
    from deniable.streams.released.joint_windows import JointWindows
    from deniable.streams.released.keyed_release import KeyedReleased
    from deniable.streams.released.profile import Profile
    from deniable.streams.released.released_stream import Released
    from deniable.streams.released.trend import Trend
    from deniable.streams.released.windows import WindowEstimate
    from deniable.streams.structure.hierarchy import Hierarchy
    from deniable.streams.structure.smoother import Exponential, Mean, Median, MovingAverage, Recent
    from deniable.streams.structure.tents import Tents
    from deniable.streams.structure.value_grid import Grid

__all__ = [  # noqa: RUF022 - in the order of sorted(), which another test asks for
    "CutTail",
    "DistributionBelief",
    "Expectation",
    "Exponential",
    "FixedPercentile",
    "Flat",
    "Grid",
    "Hc16",
    "Hierarchy",
    "IndependentNoise",
    "JointWindows",
    "KeyedPublisher",
    "KeyedReleased",
    "KeyedValues",
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
    "PersonBound",
    "PersonForecast",
    "PersonSettings",
    "PersonStream",
    "Perturber",
    "PredictedError",
    "Profile",
    "PublicThreshold",
    "Publisher",
    "Recent",
    "Reconstructed",
    "Released",
    "Settings",
    "SmoothHc16",
    "SmoothTail",
    "SmoothThreshold",
    "StreamPlan",
    "StreamReport",
    "Tents",
    "ToPL",
    "ToPLClient",
    "ToPLProtocol",
    "ToPLServer",
    "ToPS",
    "TreeNoise",
    "Trend",
    "WindowEstimate",
    "choose_plan",
    "forecast",
    "person_events",
    "person_forecast",
    "report_table",
    "restore",
]

# Most of these modules need numpy; a device needs `local` only, with the standard library.
_LAZY = {
    "CutTail": "deniable.streams.local.threshold_choice",
    "DistributionBelief": "deniable.streams.local.value_distribution",
    "Expectation": "deniable.streams.central.stream_forecast",
    "Exponential": "deniable.streams.structure.smoother",
    "FixedPercentile": "deniable.streams.central.threshold",
    "Flat": "deniable.streams.central.named_publishers",
    "Grid": "deniable.streams.structure.value_grid",
    "Hc16": "deniable.streams.central.named_publishers",
    "Hierarchy": "deniable.streams.structure.hierarchy",
    "IndependentNoise": "deniable.streams.released.covariance",
    "JointWindows": "deniable.streams.released.joint_windows",
    "KeyedPublisher": "deniable.streams.central.keyed_publisher",
    "KeyedReleased": "deniable.streams.released.keyed_release",
    "KeyedValues": "deniable.streams.central.stream_keys",
    "Learnt": "deniable.streams.central.warmup",
    "LocalChoice": "deniable.streams.local.threshold_choice",
    "LocalPercentile": "deniable.streams.local.threshold_choice",
    "Mean": "deniable.streams.structure.smoother",
    "Median": "deniable.streams.structure.smoother",
    "MovingAverage": "deniable.streams.structure.smoother",
    "NME": "deniable.streams.central.named_publishers",
    "NoThreshold": "deniable.streams.local.threshold_choice",
    "PAK": "deniable.streams.central.named_publishers",
    "PAKPercentile": "deniable.streams.central.threshold",
    "PaperScore": "deniable.streams.central.threshold",
    "PersonBound": "deniable.streams.central.person_bound",
    "PersonForecast": "deniable.streams.central.person_forecast",
    "PersonSettings": "deniable.streams.central.person_stream",
    "PersonStream": "deniable.streams.central.person_stream",
    "Perturber": "deniable.streams.central.perturber",
    "PredictedError": "deniable.streams.central.threshold",
    "Profile": "deniable.streams.released.profile",
    "PublicThreshold": "deniable.streams.central.threshold",
    "Publisher": "deniable.streams.central.publisher",
    "Recent": "deniable.streams.structure.smoother",
    "Reconstructed": "deniable.streams.local.threshold_choice",
    "Released": "deniable.streams.released.released_stream",
    "Settings": "deniable.streams.central.settings",
    "SmoothHc16": "deniable.streams.central.named_publishers",
    "SmoothTail": "deniable.streams.local.threshold_choice",
    "SmoothThreshold": "deniable.streams.central.threshold",
    "StreamPlan": "deniable.streams.central.stream_forecast",
    "StreamReport": "deniable.streams.local.stream_report",
    "Tents": "deniable.streams.structure.tents",
    "ToPL": "deniable.streams.local.simulated_stream",
    "ToPLClient": "deniable.streams.local.stream_client",
    "ToPLProtocol": "deniable.streams.local.stream_protocol",
    "ToPLServer": "deniable.streams.local.server",
    "ToPS": "deniable.streams.central.named_publishers",
    "TreeNoise": "deniable.streams.released.covariance",
    "Trend": "deniable.streams.released.trend",
    "WindowEstimate": "deniable.streams.released.windows",
    "choose_plan": "deniable.streams.central.stream_forecast",
    "forecast": "deniable.streams.central.stream_forecast",
    "person_events": "deniable.streams.central.person_bound",
    "person_forecast": "deniable.streams.central.person_forecast",
    "report_table": "deniable.streams.local.report_arrays",
    "restore": "deniable.streams.central.named_publishers",
}

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
