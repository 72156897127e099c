"""Sorted rows are cut between users, wherever batches of input end."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.engines.collecting import user_batches
from deniable.engines.collecting.user_batches import few_users, sorted_users, starts_of, whole_users
from deniable.errors import Failure

COUNTS = st.lists(st.integers(1, 7), min_size=1, max_size=12)
CUTS = st.lists(st.integers(0, 90), max_size=8)


def sorted_rows(counts, *, text):
    ids = [f"user {user:03}" if text else user for user, count in enumerate(counts) for _ in range(count)]
    return pa.table({"uid": ids, "row": range(len(ids))})


def pieces(table, cuts):
    """A table in pieces, some of them empty."""
    ends = sorted(min(cut, table.num_rows) for cut in cuts)
    return [table.slice(first, last - first) for first, last in zip([0, *ends], [*ends, table.num_rows], strict=True)]


def users_of(tables):
    return [set(table["uid"].to_pylist()) for table in tables]


@given(COUNTS, CUTS, st.integers(1, 20), st.booleans())
def test_every_user_is_whole_in_one_batch(counts, cuts, least, text):
    table = sorted_rows(counts, text=text)
    batches = list(whole_users(pieces(table, cuts), least=least))
    assert pa.concat_tables(batches).equals(table)
    assert sum(map(len, users_of(batches))) == len(counts)
    small = [batch.num_rows for batch in batches[:-1] if batch.num_rows < least]
    assert not small or least > 1  # a batch waits for its rows, then the last user stays behind


@given(st.integers(1, 12), st.integers(1, 5), CUTS)
def test_complete_users_do_not_wait(users, slots, cuts):
    table = sorted_rows([slots] * users, text=False)
    parts = pieces(table, cuts)
    batches = list(whole_users(parts, incomplete=lambda rows: rows.num_rows // slots * slots))
    assert pa.concat_tables(batches).equals(table)
    assert all(batch.num_rows % slots == 0 for batch in batches)
    if all(part.num_rows % slots == 0 for part in parts):
        assert len(batches) == sum(part.num_rows > 0 for part in parts)


@given(COUNTS, CUTS)
def test_what_is_held_of_a_user_can_be_bounded(counts, cuts):
    batches = whole_users(pieces(sorted_rows(counts, text=False), cuts), hold=lambda rows: rows.slice(0, 3))
    seen = [batch.num_rows for batch in batches]
    assert sum(seen) >= sum(min(count, 3) for count in counts)
    assert max(seen) <= sum(counts)


@given(COUNTS, st.integers(1, 5))
def test_few_users_are_at_most_so_many(counts, most):
    batches = list(few_users([sorted_rows(counts, text=False)], most))
    sizes = [len(users) for users in users_of(batches)]
    assert sum(sizes) == len(counts)
    assert all(size == most for size in sizes[:-1])


def test_starts_of_users():
    assert starts_of(pa.array([4])).tolist() == [0]
    assert starts_of(pa.array(["a", "a", "b", "c", "c"])).tolist() == [0, 2, 3]


def test_rows_out_of_order_end_the_run(monkeypatch):
    for ids in ([[1, 3, 2]], [[1, 3], [2, 4]], [["b"], ["a"]]):
        batches = [pa.record_batch({"uid": chunk}) for chunk in ids]
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        with pytest.raises(Failure, match="out of the order"):
            list(sorted_users(reader))
    monkeypatch.setattr(user_batches, "USER_BATCH_ROWS", 2)
    batches = [pa.record_batch({"uid": chunk}) for chunk in (["a", "b"], ["b", "c"], [])]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches[:2])
    assert users_of(sorted_users(reader)) == [{"a"}, {"b"}, {"c"}]
