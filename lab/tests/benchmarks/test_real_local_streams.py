"""Streams without trust on the development data, where they are present: θ from real first reports, error computed."""

from pathlib import Path

import numpy as np
import pytest

from deniable.randomness import SeededSource
from deniable.streams import ToPL
from deniable_lab.benchmarks.local_streams import CEILINGS, REFERENCE, STRICT, expected
from deniable_lab.benchmarks.stream_error import load
from deniable_lab.experiments.data import Data
from deniable_lab.experiments.stream_reference import BOUNDS, WARMUP

FOLDER = Path(__file__).parents[4] / "shared" / "data"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the development data are not next to the checkout")


@pytest.mark.parametrize("name", list(REFERENCE))
def test_thresholds_lead_to_errors_far_below_the_authors(name):
    stream = load(Data(FOLDER), name)
    for epsilon in (0.2, 1.0, 2.0):
        errors = []
        for seed in range(3):
            topl = ToPL(epsilon, BOUNDS[name], source=SeededSource(100 + seed), simulation=True)
            topl.publish(stream.values[:WARMUP])
            errors.append(expected(stream, topl.protocol, topl.theta))
        most = STRICT.get(epsilon, 1.0) * REFERENCE[name][epsilon][0]
        assert np.mean(errors) <= min(most, CEILINGS.get((name, epsilon), most))
