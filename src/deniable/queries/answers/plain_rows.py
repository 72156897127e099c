"""An answer as plain rows, for JSON and CSV: an unclear number is missing, because JSON has no NaN."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from typing import Any

from deniable.queries.answers.result import Result


def plain_rows(result: Result) -> list[dict[str, Any]]:
    """One mapping per row.

    >>> from deniable.queries.answers.result import Estimate
    >>> plain_rows(Result({}, {"n": (Estimate(float("nan"), 0.5),)}))[0]["n"] is None
    True
    """
    return [
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in result.to_arrow().to_pylist()
    ]


def first_rows(result: Result, most: int | None) -> Result:
    """The first rows of an answer, with what stands below it.

    >>> from deniable.queries.answers.result import Estimate
    >>> len(first_rows(Result({}, {"n": (Estimate(7.0, 0.5), Estimate(5.0, 0.5))}), 1))
    1
    """
    groups = {name: values[:most] for name, values in result.groups.items()}
    return replace(result, groups=groups, answers={name: values[:most] for name, values in result.answers.items()})


def as_csv(result: Result) -> str:
    """A header and one line per row."""
    out = io.StringIO()
    writer = csv.DictWriter(out, result.to_arrow().column_names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain_rows(result))
    return out.getvalue()
