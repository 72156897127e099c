"""The weights of a plan as text: every weight of a small view, and sums and samples of a large one.

Numbers have six digits, counted from the first digit of the view's largest weight. `12/3` is cell 12, column 3.
`same` compares two such texts and forgives the last digit, so that no test depends on how a processor rounds.
"""

import math
import re

import numpy as np

FEW = 6
"""A view with at most so many weights shows all of them."""
SAMPLES = 3
DIGITS = 6
_NUMBER = re.compile(r"-?\d+\.\d+")
_WEIGHT_LINE = re.compile(r"  +(?:view \d+|constants)")


def weights_text(plan):
    """One line per view of every table."""
    lines = []
    for table in plan.tables:
        for number, part in enumerate(table.parts):
            lines.append(f"weights {table.table}" + (f", part {number + 1}" if len(table.parts) > 1 else ""))
            if part.constants.any():
                columns = [(column,) for column in range(part.constants.size)]
                lines.append("  constants" + _entries(columns, part.constants))
            lines += [f"  view {view.view}" + _entries(*_cells(view, part.constants.size)) for view in part.views]
    return "\n".join(lines)


def _cells(view, columns):
    """(cell, column) of every weight, and the weight; the cell alone if there is one column."""
    cells, _, rows = view.by_cell()
    numbers = np.repeat(cells, rows.counts).tolist()
    where = zip(numbers, rows.columns.tolist(), strict=True) if columns > 1 else zip(numbers, strict=True)
    return list(where), rows.values


def _entries(where, values):
    scale = float(np.abs(values).max(initial=0.0))
    if len(where) <= FEW:
        chosen = range(len(where))
        summary = ""
    else:
        chosen = np.linspace(0, len(where) - 1, SAMPLES).astype(int).tolist()
        # What stands where counts as well: positions modulo 7 weigh the third sum.
        positions = np.array([(3 * sum(position) + position[-1]) % 7 for position in where])
        norm = math.sqrt(float(values @ values))
        sums = (float(values.sum()), norm, float(values @ positions))
        total, squares, placed = (_number(value, norm) for value in sums)
        summary = f": {len(where)} weights, sum {total}, norm {squares}, by position {placed};"
    shown = (f" {'/'.join(map(str, where[index]))}: {_number(float(values[index]), scale)}" for index in chosen)
    return (summary or ":") + ",".join(shown)


def _number(value, scale):
    if not scale:
        return "0.0"
    decimals = max(DIGITS - 1 - math.floor(math.log10(scale)), 1)
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def same(expected, actual):
    """Whether two texts agree, but for the last digit of weights."""
    before, after = expected.splitlines(), actual.splitlines()
    return len(before) == len(after) and all(map(_same_line, before, after))


def _same_line(expected, actual):
    if expected == actual:
        return True
    if not _WEIGHT_LINE.match(expected) or _NUMBER.sub("", expected) != _NUMBER.sub("", actual):
        return False
    return all(map(_close, _NUMBER.findall(expected), _NUMBER.findall(actual)))


def _close(expected, actual):
    """Equal, or one unit apart in the last digit that is shown."""
    return abs(float(expected) - float(actual)) <= 1.5 * 10.0 ** -len(expected.partition(".")[2])
