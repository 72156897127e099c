"""Real streams, where the development data are present: errors next to those of the authors' code, seeded."""

from pathlib import Path

import numpy as np
import pytest

from deniable.streams import ToPS
from deniable_lab.benchmarks import stream_error
from deniable_lab.experiments import stream_reference
from deniable_lab.experiments.data import Data
from effort import some

FOLDER = Path(__file__).parents[4] / "shared" / "data"
present = pytest.mark.skipif(not FOLDER.is_dir(), reason="the development data are not next to the checkout")


@present
def test_streams_are_extended_by_their_own_reverse():
    values = stream_error.load(Data(FOLDER), "pos_length").values
    assert values.size == 2**20 + 2**16
    assert (values[:515_597].max(), values.min()) == (165, 2)
    first, size = values[:515_597], 515_597
    assert np.array_equal(values[size : 2 * size - 1], first[:0:-1])  # backwards, without the very first value
    assert np.array_equal(values[2 * size - 1 :], values[82_919:0:-1])


@present
@pytest.mark.parametrize("name", ["pos_length", "dns_google_rps"])
def test_the_defaults_are_better_than_the_authors_code(name):
    stream, bound = stream_error.load(Data(FOLDER), name), stream_reference.BOUNDS[name]
    for epsilon in some((0.02, 0.1), 2):
        errors, _ = stream_error.repeated(stream, stream_error._maker(ToPS, epsilon, bound), 8)
        assert errors.mean() < 0.75 * stream_reference.TOPS[name][epsilon].mean


def test_the_ranges_are_those_of_the_reference():
    starts, stops = stream_reference.queries()
    assert (starts.size, int(starts[0]), int(stops[0])) == (200, 793_717, 794_433)
    assert (starts <= stops).all()
