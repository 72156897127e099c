"""The loops of questions over reports sorted by view: every cell of a view is compared with many reports at once.

A report's contribution is the base of its view, plus what the cells that it supports add (`contributions.py`). All
reports of a view are compared with the same cells, so the innermost loop runs over reports, in blocks that stay in the
nearest cache, and becomes vector instructions. Reports that name their cell are counted by cell; those that name
several have a bit for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.engines.kernel.plain_loops import MASKED, NAMED
from deniable.mechanisms._compiled import compiled, compiled_sum
from deniable.mechanisms._support import hash_cell

MOST_BLOCK = 1024
LEAST_BLOCK = 32
CACHED = 2**15
"""Contributions that are worked on at a time, by each core."""
MOST_LISTED_CELLS = 2**22
"""Up to this number, cells that reports name are counted in a list of all."""


@compiled
def _add_cells(seeds: Any, lows: Any, widths: Any, keys: Any, factors: Any, weights: Any, scale: Any, out: Any) -> None:
    """Add the weights of cells whose hash lies in the reported bucket, two at a time: that halves loads and stores."""
    for second in range(1, keys.size, 2):
        key, factor, weight = keys[second - 1], factors[second - 1], scale * weights[second - 1]
        other_key, other_factor, other_weight = keys[second], factors[second], scale * weights[second]
        for report in range(seeds.size):
            distance = np.uint32(hash_cell(seeds[report], key, factor) - lows[report])
            other = np.uint32(hash_cell(seeds[report], other_key, other_factor) - lows[report])
            added = weight if distance < widths[report] else 0.0
            out[report] += added + (other_weight if other < widths[report] else 0.0)
    if keys.size % 2:
        key, factor, weight = keys[-1], factors[-1], scale * weights[-1]
        for report in range(seeds.size):
            distance = np.uint32(hash_cell(seeds[report], key, factor) - lows[report])
            out[report] += weight if distance < widths[report] else 0.0


@compiled
def _add_masked(y: Any, keys: Any, weights: Any, scale: Any, out: Any) -> None:
    """Add the weights of cells whose bits are set."""
    for cell in range(keys.size):
        bit, weight = np.int64(keys[cell]), scale * weights[cell]
        for report in range(y.size):
            out[report] += weight * np.float64((np.int64(y[report]) >> bit) & 1)


@compiled
def _add_scaled(values: Any, scale: Any, out: Any) -> None:
    for report in range(values.size):
        out[report] += scale * values[report]


@compiled_sum
def _total(values: Any) -> Any:
    total = 0.0
    for report in range(values.size):
        total += values[report]
    return total


@compiled_sum
def _product(first: Any, second: Any) -> Any:
    total = 0.0
    for report in range(first.size):
        total += first[report] * second[report]
    return total


@compiled
def _contributed(
    seeds: Any,
    y: Any,
    bucket_start: Any,
    lowest: Any,
    widest: Any,
    first_row: Any,
    last_row: Any,
    row_starts: Any,
    keys: Any,
    factors: Any,
    weights: Any,
    column_starts: Any,
    columns: Any,
    coefficients: Any,
    base: Any,
    lows: Any,
    widths: Any,
    supported: Any,
    out: Any,
) -> None:
    """What each of a block's reports contributes: `out` is columns × reports."""
    masked = bucket_start == MASKED
    for report in range(0 if masked else seeds.size):
        bucket = bucket_start + np.int64(y[report])
        lows[report], widths[report] = lowest[bucket], widest[bucket]
    for column in range(base.size):
        for report in range(seeds.size):
            out[column, report] = base[column]
    for row in range(first_row, last_row):
        low, high = row_starts[row], row_starts[row + 1]
        entry, end = column_starts[row], column_starts[row + 1]
        if end == entry + 1:  # straight into its column
            scale = coefficients[entry]
            mine = out[columns[entry], : seeds.size]
            if masked:
                _add_masked(y, keys[low:high], weights[low:high], scale, mine)
            else:
                _add_cells(seeds, lows, widths, keys[low:high], factors[low:high], weights[low:high], scale, mine)
            continue
        for report in range(seeds.size):
            supported[report] = 0.0
        if masked:
            _add_masked(y, keys[low:high], weights[low:high], 1.0, supported)
        else:
            _add_cells(seeds, lows, widths, keys[low:high], factors[low:high], weights[low:high], 1.0, supported)
        for term in range(entry, end):
            _add_scaled(supported, coefficients[term], out[columns[term], : seeds.size])


@compiled
def _sought_cells(y: Any, first_row: Any, last_row: Any, row_starts: Any, keys: Any) -> Any:
    """The same where cells have numbers too large to list: each report looks for its cell, which are sorted."""
    counts = np.zeros(last_row - first_row + 1, dtype=np.int64)
    for report in range(y.size):
        low, high = first_row, last_row
        while low < high:
            middle = (low + high) // 2
            if np.int64(keys[row_starts[middle]]) < np.int64(y[report]):
                low = middle + 1
            else:
                high = middle
        hit = low < last_row and np.int64(keys[row_starts[low]]) == np.int64(y[report])
        counts[low - first_row if hit else last_row - first_row] += 1
    return counts


@compiled
def _named_cells(y: Any, first_row: Any, last_row: Any, row_starts: Any, keys: Any) -> Any:
    """For each row of a view whose reports name one cell, the reports that name it; then how many name none of them."""
    most = np.uint32(0)
    for report in range(y.size):
        most = max(most, np.uint32(y[report]))
    if most > MOST_LISTED_CELLS:
        return _sought_cells(y, first_row, last_row, row_starts, keys)
    named = np.zeros(np.int64(most) + 1, dtype=np.int64)
    for report in range(y.size):
        named[y[report]] += 1
    counts = np.zeros(last_row - first_row + 1, dtype=np.int64)
    rest = y.size
    for row in range(first_row, last_row):
        cell = np.int64(keys[row_starts[row]])
        if cell < named.size:
            counts[row - first_row] = named[cell]
            rest -= named[cell]
    counts[last_row - first_row] = rest
    return counts


@compiled
def _outcomes_of(values: Any, size: Any, starts: Any, coefficients: Any, factors: Any, out: Any) -> None:
    """Outcomes × reports from columns × reports; each is a sum of columns. The factor 0 is the number one."""
    for outcome in range(out.shape[0]):
        mine = out[outcome, :size]
        mine[:] = 0.0
        for term in range(starts[outcome], starts[outcome + 1]):
            if factors[term] == 0:
                mine += coefficients[term]
            else:
                _add_scaled(values[factors[term] - 1, :size], coefficients[term], mine)


@compiled
def _add_moments(values: Any, first: Any, size: Any, moments: Any, times: Any, sums: Any, crosses: Any) -> None:
    """Add each outcome, and its products with the outcomes before it in its group; all of it so many times.

    Outcomes are the rows of `values` from the first on.
    """
    for outcome in range(sums.size):
        mine = values[first + outcome, :size]
        sums[outcome] += times * _total(mine)
        start = outcome // moments * moments
        for other in range(start, outcome + 1):
            crosses[outcome, other - start] += times * _product(mine, values[first + other, :size])


@compiled
def add_view_moments(
    seed: Any,
    y: Any,
    starts: Any,
    ends: Any,
    bucket_starts: Any,
    lowest: Any,
    widest: Any,
    rows_of: Any,
    row_starts: Any,
    keys: Any,
    factors: Any,
    weights: Any,
    column_starts: Any,
    columns: Any,
    coefficients: Any,
    bases: Any,
    term_starts: Any,
    term_coefficients: Any,
    term_factors: Any,
    plain_from: Any,
    moments: Any,
    sums: Any,
    crosses: Any,
) -> None:
    """Add the reports of every slot from `starts` to `ends`: sums is slots × outcomes, crosses outcomes × moments.

    From `plain_from` on columns are outcomes, one after the other, unless it is negative.
    """
    block = max(min(CACHED // max(bases.shape[1], 1), MOST_BLOCK), LEAST_BLOCK)
    lows, widths = np.empty(block, dtype=np.uint32), np.empty(block, dtype=np.uint32)
    supported, values = np.empty(block), np.empty((bases.shape[1], block))
    outcomes = sums.shape[1]
    combined = np.empty((outcomes if plain_from < 0 else 0, block))
    # Loops that are called with literals are compiled once for each.
    first_outcome, single = np.int64(0), np.int64(1)
    for slot in range(1, starts.size):
        first, last = rows_of[slot], rows_of[slot + 1]
        if bucket_starts[slot] == NAMED and ends[slot] > starts[slot]:
            counts = _named_cells(y[starts[slot] : ends[slot]], first, last, row_starts, keys)
            for row in range(first, last + 1):
                if counts[row - first] == 0:
                    continue
                for column in range(bases.shape[1]):
                    values[column, 0] = bases[slot, column]
                if row < last:
                    for entry in range(column_starts[row], column_starts[row + 1]):
                        values[columns[entry], 0] += coefficients[entry]
                if plain_from < 0:
                    _outcomes_of(values, single, term_starts, term_coefficients, term_factors, combined)
                    _add_moments(
                        combined, first_outcome, single, moments, float(counts[row - first]), sums[slot], crosses
                    )
                else:
                    _add_moments(values, plain_from, single, moments, float(counts[row - first]), sums[slot], crosses)
            continue
        for start in range(starts[slot], ends[slot], block):
            end = min(start + block, ends[slot])
            size = end - start
            _contributed(
                seed[start:end],
                y[start:end],
                bucket_starts[slot],
                lowest,
                widest,
                first,
                last,
                row_starts,
                keys,
                factors,
                weights,
                column_starts,
                columns,
                coefficients,
                bases[slot],
                lows,
                widths,
                supported[:size],
                values,
            )
            if plain_from < 0:
                _outcomes_of(values, size, term_starts, term_coefficients, term_factors, combined)
                _add_moments(combined, first_outcome, size, moments, 1.0, sums[slot], crosses)
            else:
                _add_moments(values, plain_from, size, moments, 1.0, sums[slot], crosses)


@compiled
def place_contributions(
    seed: Any,
    y: Any,
    positions: Any,
    starts: Any,
    ends: Any,
    bucket_starts: Any,
    lowest: Any,
    widest: Any,
    rows_of: Any,
    row_starts: Any,
    keys: Any,
    factors: Any,
    weights: Any,
    column_starts: Any,
    columns: Any,
    coefficients: Any,
    bases: Any,
    out: Any,
) -> None:
    """What the reports of every slot contribute, each at its position: `out` is columns × reports."""
    block = max(min(CACHED // max(bases.shape[1], 1), MOST_BLOCK), LEAST_BLOCK)
    lows, widths = np.empty(block, dtype=np.uint32), np.empty(block, dtype=np.uint32)
    supported, values = np.empty(block), np.empty((bases.shape[1], block))
    for slot in range(1, starts.size):
        first, last = rows_of[slot], rows_of[slot + 1]
        if bucket_starts[slot] == NAMED:
            for report in range(starts[slot], ends[slot]):
                for column in range(bases.shape[1]):
                    out[column, positions[report]] = bases[slot, column]
                low, high = first, last  # one cell per row here, sorted
                while low < high:
                    middle = (low + high) // 2
                    if keys[row_starts[middle]] < y[report]:
                        low = middle + 1
                    else:
                        high = middle
                if low < last and keys[row_starts[low]] == y[report]:
                    for entry in range(column_starts[low], column_starts[low + 1]):
                        out[columns[entry], positions[report]] += coefficients[entry]
            continue
        for start in range(starts[slot], ends[slot], block):
            end = min(start + block, ends[slot])
            _contributed(
                seed[start:end],
                y[start:end],
                bucket_starts[slot],
                lowest,
                widest,
                first,
                last,
                row_starts,
                keys,
                factors,
                weights,
                column_starts,
                columns,
                coefficients,
                bases[slot],
                lows,
                widths,
                supported[: end - start],
                values,
            )
            for column in range(bases.shape[1]):
                for report in range(start, end):
                    out[column, positions[report]] = values[column, report - start]
