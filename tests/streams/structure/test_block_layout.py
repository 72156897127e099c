"""Chunks, blocks and positions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.streams.structure.block_layout import BlockLayout


@settings(deadline=None)
@given(st.integers(1, 50), st.data())
def test_positions_edges_and_lengths_fit_together(horizon, data):
    layout = BlockLayout(horizon, data.draw(st.integers(1, horizon)))
    positions = np.arange(3 * horizon + 1)
    edge, over = layout.locate(positions)
    assert (layout.position(edge) + over == positions).all()
    starts = layout.position(np.arange(3 * layout.blocks + 1))
    assert np.diff(starts).tolist() == [layout.length(block) for block in range(3 * layout.blocks)]
    assert starts[-1] == 3 * horizon
    assert (over < np.diff(starts)[np.minimum(edge, 3 * layout.blocks - 1)]).all()


def test_an_ended_stream_has_an_edge_at_its_end():
    layout = BlockLayout(10, 4, end=6)
    edge, over = layout.locate(np.array([4, 5, 6]))
    assert edge.tolist() == [1, 1, 2]
    assert over.tolist() == [0, 1, 0]
    assert layout.position(np.array([0, 1, 2])).tolist() == [0, 4, 6]
