"""A released stream: private values, and the sum or mean over any window with its standard error.

Everything here is a function of published values and public settings, so any number of questions costs nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.errors import InvalidData, InvalidParameter, QueryRefused
from deniable.notebook import html_table
from deniable.queries.answers.answer_layout import number
from deniable.sealing import SEAL, sealed, unsealed
from deniable.simulation import NOTE, has_noise, mark
from deniable.streams.released.covariance import Covariance
from deniable.streams.released.many_windows import ManyWindows
from deniable.streams.released.prediction_error import Smoothing
from deniable.streams.released.stretch import Stretch, StretchSums, stretch_of
from deniable.streams.released.windows import Truncation, WindowEstimate, Windows
from deniable.streams.structure.hierarchy import WINDOWS_AT_ONCE
from deniable.streams.structure.value_grid import Grid
from deniable.wording import counted

METADATA_KEY, METADATA_VERSION = b"deniable.stream", 1
_RELEASE_SEAL_KEY = b"released"  # the seal is there for accidents
_DAMAGE = (
    *(ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, pa.ArrowException),
    InvalidParameter,
)
SHOWN_WINDOWS = 5
SIMULATION = "simulation"
_IN_COMMON = 0.5
"""Of the doubt about what lies above θ: what epochs share. They are judged by the same rule, and alike streams are off
the same way; what single windows lose by chance is their own. With 1/4, 1/2 and 3/4, windows of three epochs are
covered in 94, 98 and 100 % on heavy tails at ε = 0.5, even seeds; light tails need less."""


@dataclass(frozen=True, eq=False)
class Released(ManyWindows):
    """Private values in order of arrival, with everything that is needed to answer for windows of them.

    Answers are for the stream as it was: what cutting at θ takes away is estimated and added back where the publisher
    measured it (`cut=True` asks for the cut stream). They come from a better reconstruction than the published values:
    complete blocks are straight lines between their noisy sums.

    `values` are steps of the `grid`: integers, or floats if predictions or noise are real numbers. Positions count from
    the first value here, which is number `first` of its stream. Windows are half-open, as Python's slices are:
    `sum(1000, 5000)` adds 4,000 values.

    >>> import deniable as dn
    >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
    >>> private = tops.push_many([5, 6, 7, 8] * 1000)
    >>> tops.released
    Released(3,000 values; method=tops, epsilon=1.0, theta=8.0, warmup=1000, r=1000, b=4, s=256, chunk=3; simulation)
    """

    values: NDArray[Any]
    covariance: Covariance
    grid: Grid
    about: Mapping[str, Any] = field(default_factory=dict)
    truncation: Truncation | None = None
    smoothing: Smoothing | None = None
    timestamps: NDArray[Any] | None = None
    first: int = 0
    later: tuple[Stretch, ...] = ()
    """Further stretches with a θ and tree of their own. `covariance`, `truncation` and `smoothing` are the first's."""
    phases: NDArray[Any] | None = None
    """The number of each value's stretch, where values of several stand between each other."""

    def __post_init__(self) -> None:
        if self.phases is not None and self.phases.size != self.values.size:
            raise InvalidData("there must be one phase per value", "Give as many as there are values.")
        stamps = self.timestamps
        if stamps is not None and stamps.size != self.values.size:
            raise InvalidData("there must be one timestamp per value", "Give as many as there are values.")
        if stamps is not None and (stamps.dtype.kind not in "iufM" or np.isnan(stamps).any()):
            raise InvalidData("timestamps must be numbers or points in time", "Convert them, and leave out none.")
        if stamps is not None and (stamps[1:] < stamps[:-1]).any():
            raise InvalidData("timestamps must not go back", "Sort the stream by time before it is published.")

    def __len__(self) -> int:
        return int(self.values.size)

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self.about.items() if type(value) in (int, float, str))
        return f"Released({counted(len(self), 'value')}; {facts}{'; simulation' * self.simulation})"

    def _repr_html_(self) -> str:
        """Public facts, and the means of a few windows with their errors, for notebooks."""
        facts = ", ".join(f"{name} = {value}" for name, value in self.about.items() if type(value) in (int, float))
        ends = (
            np.linspace(0, len(self), min(len(self), SHOWN_WINDOWS) + 1).astype(int) if len(self) else np.zeros(1, int)
        )
        rows = []
        for start, stop in pairwise(ends.tolist()):
            answer = self.mean(start, stop)
            value, low, high = (number(end, answer.stderr) for end in (answer.value, *answer.interval))
            rows.append((f"{start:,} to {stop:,}", value, f"{low} to {high}"))
        title = f"Released stream of {counted(len(self), 'value')}"
        return html_table(
            ("window", "mean", "95 % interval"), rows, title=title, notes=[facts, *[NOTE] * self.simulation]
        )

    @property
    def simulation(self) -> bool:
        """Whether the stream protects nobody."""
        return bool(self.about.get(SIMULATION)) or not has_noise(self.about.get("epsilon", 0.0))

    @cached_property
    def _prefix(self) -> NDArray[Any]:
        kind = np.int64 if self.values.dtype.kind in "iu" else np.float64
        return np.concatenate((np.zeros(1, dtype=kind), np.cumsum(self.values, dtype=kind)))

    @cached_property
    def _stretches(self) -> list[StretchSums]:
        """Every stretch, with the part of it that is here."""
        stretches = [Stretch(0, self.covariance, self.truncation, self.smoothing), *self.later]
        end = self.first + len(self)
        result = []
        if self.phases is not None:
            for number, stretch in enumerate(stretches):
                places = np.flatnonzero(self.phases == number)
                prefix = np.concatenate((np.zeros(1), np.cumsum(self.values[places], dtype=np.float64)))
                result.append(StretchSums(stretch, prefix, 0, places + self.first))
            return result
        for stretch, stop in zip(stretches, [*(later.begin for later in self.later), end], strict=True):
            low, high = max(stretch.begin, self.first), min(stop, end)
            if low < high:
                prefix = self._prefix[low - self.first : high - self.first + 1]
                result.append(StretchSums(stretch, prefix, low - stretch.begin))
        return result

    def with_timestamps(self, timestamps: Any) -> Released:
        """The same stream with a timestamp for every value. Timestamps must not go back.

        >>> tops.released.with_timestamps(range(3000)).between(10, 20)
        (10, 20)
        """
        return replace(self, timestamps=np.asarray(timestamps))

    def array(self) -> NDArray[Any]:
        """The published values in the stream's own unit.

        >>> tops.released.array().size
        3000
        """
        return self.grid.values(self.values)

    # Windows -------------------------------------------------------------------------------------------------------

    def sum(self, start: int, stop: int, *, confidence: float = 0.95, cut: bool = False) -> WindowEstimate:
        """The sum of the values at positions start … stop − 1; with `cut`, of values cut at θ.

        >>> print(tops.released.sum(0, 2000))
        12,956 ± 33 (95%: 12,889 to 13,029)
        """
        return self._single(self.sums(np.array([start]), np.array([stop]), cut=cut), confidence)

    def mean(self, start: int, stop: int, *, confidence: float = 0.95, cut: bool = False) -> WindowEstimate:
        """The mean of the values at positions start … stop − 1; with `cut`, of values cut at θ.

        >>> print(tops.released.mean(0, 2000, confidence=0.99))
        6.478 ± 0.017 (99%: 6.432 to 6.527)
        """
        return self._single(self.means(np.array([start]), np.array([stop]), cut=cut), confidence)

    def sums(self, starts: Any, stops: Any, *, cut: bool = False, covariance: bool = False) -> Windows:
        """The sums over many windows. A million of them take about a second. With `covariance`, a `JointWindows`.

        >>> import numpy as np
        >>> tops.released.sums(np.array([0, 1000]), np.array([1000, 3000])).values.round()
        array([ 6499., 12960.])
        """
        starts, stops = self._checked(starts, stops)
        if covariance:
            return self._joint_sums(starts, stops, cut=cut)
        parts = [
            self._sums(starts[first : first + WINDOWS_AT_ONCE], stops[first : first + WINDOWS_AT_ONCE], cut=cut)
            for first in range(0, max(starts.size, 1), WINDOWS_AT_ONCE)
        ]
        return Windows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _sums(self, starts: Integers, stops: Integers, *, cut: bool) -> tuple[NDArray[Any], ...]:
        """The fields of `Windows`: what the stretches that a window lies in have of each, added up."""
        names = ("units", "noise", "smooth", "loss", "excess", "excess_noise", "excess_doubt", "tails", "beyond")
        total = {name: np.zeros(starts.shape) for name in names}
        for part in self._stretches:
            touched, low, high = part.within(starts + self.first, stops + self.first)
            total["units"][touched] += part.until(high) - part.until(low)
            noise, smooth, tails = part.variances(low, high)
            total["noise"][touched] += noise
            total["smooth"][touched] += smooth
            total["tails"][touched] += tails * noise**2
            if part.stretch.truncation is not None and not cut:
                count = (high - low).astype(np.float64)
                total["loss"][touched] += part.stretch.truncation.loss(count)
                excess, variance = part.added(low, high)
                total["excess"][touched] += excess
                total["excess_noise"][touched] += variance
                total["excess_doubt"][touched] += np.sqrt(variance)
                total["beyond"][touched] += part.beyond(low, high)
        step = float(self.grid.resolution)
        values = float(self.grid.low) * (stops - starts) + step * (total["units"] + total["excess"])
        noise, doubt = total["noise"], total["excess_noise"]
        total["excess_noise"] = doubt + _IN_COMMON * (total["excess_doubt"] ** 2 - doubt)
        tails = np.divide(total["tails"], noise**2, out=np.zeros_like(noise), where=noise > 0)
        errors = [step * np.sqrt(total[name]) for name in ("noise", "smooth", "excess_noise")]
        loss, excess, beyond = (step * total[name] for name in ("loss", "excess", "beyond"))
        return values, errors[0], errors[1], loss, excess, errors[2], tails, beyond

    def means(self, starts: Any, stops: Any, *, cut: bool = False) -> Windows:
        """The means over many windows. No window may be empty.

        >>> tops.released.means([0, 1000], [1000, 3000]).values.round(2)
        array([6.5 , 6.48])
        """
        starts, stops = self._checked(starts, stops)
        count = stops - starts
        if count.size and count.min() == 0:
            raise QueryRefused("a window is empty, so it has no mean", "Ask for at least one value.")
        sums = self.sums(starts, stops, cut=cut)
        scaled = {name: getattr(sums, name) / count for name in Windows.__slots__ if name != "tails"}
        return replace(sums, **scaled)

    def between(self, start: Any, stop: Any) -> tuple[int, int]:
        """The window of positions whose timestamps are at least `start` and before `stop`.

        >>> import numpy as np
        >>> days = np.datetime64("2024-01-01") + np.arange(3000)
        >>> stream = tops.released.with_timestamps(days)
        >>> stream.between("2024-02-01", "2024-03-01")
        (31, 60)
        """
        if self.timestamps is None:
            raise QueryRefused("this stream has no timestamps", "Ask by positions, or publish it with timestamps.")
        try:
            ends = [np.asarray(end).astype(self.timestamps.dtype) for end in (start, stop)]
        except (ValueError, TypeError):
            raise QueryRefused("an end of the window is not a time", "Write 2024-01-31T12:00.") from None
        first, last = (int(np.searchsorted(self.timestamps, end, side="left")) for end in ends)
        return first, max(first, last)

    def _checked(self, starts: Any, stops: Any) -> tuple[Integers, Integers]:
        first, last = np.atleast_1d(np.asarray(starts)), np.atleast_1d(np.asarray(stops))
        if first.dtype.kind not in "iu" or last.dtype.kind not in "iu" or first.shape != last.shape or first.ndim != 1:
            raise QueryRefused("windows must be pairs of whole positions", "Use integers, as many starts as stops.")
        first, last = first.astype(np.int64), last.astype(np.int64)
        if first.size and (first.min() < 0 or last.max() > len(self) or (first > last).any()):
            raise QueryRefused(
                f"a window does not lie within the {len(self):,} published values",
                "Use 0 ≤ start ≤ stop ≤ their number.",
            )
        return first, last

    def _single(self, windows: Windows, confidence: float) -> WindowEstimate:
        missing = float(windows.truncation[0])
        return WindowEstimate(
            float(windows.values[0]),
            float(windows.stderrs[0]),
            confidence,
            smoothing=float(windows.smoothing[0]),
            truncation=None if math.isnan(missing) else missing,
            excess=float(windows.excess[0]),
            cut=float(windows.cut[0]),
            tails=float(windows.tails[0]),
            beyond=float(windows.beyond[0]),
        )

    # Files ---------------------------------------------------------------------------------------------------------
    def metadata(self) -> dict[bytes, bytes]:
        """The metadata of a file: every public fact that answers need, as JSON.

        >>> list(tops.released.metadata())
        [b'deniable.stream', b'deniable.simulation']
        """
        facts: dict[str, Any] = {"version": METADATA_VERSION, "about": dict(self.about), "grid": asdict(self.grid)}
        facts["first"] = self.first
        first, *later = (
            {
                "begin": stretch.begin,
                "covariance": stretch.covariance.describe(),
                "truncation": None if stretch.truncation is None else asdict(stretch.truncation),
                "smoothing": None if stretch.smoothing is None else asdict(stretch.smoothing),
            }
            for stretch in (Stretch(0, self.covariance, self.truncation, self.smoothing), *self.later)
        )
        facts |= {**first, "later": later}
        return {METADATA_KEY: json.dumps(sealed(facts, _RELEASE_SEAL_KEY)).encode(), **mark(simulation=self.simulation)}

    def to_arrow(self) -> pa.Table:
        """A table with a column `value`, in the stream's own unit, `timestamp` if there are any, and the metadata.

        >>> tops.released.to_arrow().column_names
        ['value']
        """
        columns: dict[str, Any] = {} if self.timestamps is None else {"timestamp": self.timestamps}
        columns |= {} if self.phases is None else {"phase": self.phases.astype(np.uint8)}
        return pa.table({**columns, "value": self.array()}).replace_schema_metadata(self.metadata())

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Released:
        """The stream that `to_arrow` wrote.

        >>> same = dn.streams.Released.from_arrow(tops.released.to_arrow())
        >>> same.sum(0, 2000) == tops.released.sum(0, 2000)
        True
        """
        text = (table.schema.metadata or {}).get(METADATA_KEY)
        if text is None:
            raise InvalidData(
                "this is not a released stream: its metadata are missing", "Use a file of stream publish."
            )
        try:
            facts = _facts(text)
            if facts.get("version") != METADATA_VERSION:
                raise InvalidData(
                    "this stream was written by another version", "Read it with the version that wrote it."
                )
            return cls._from_facts(facts, table)
        except _DAMAGE:
            raise InvalidData(
                "the released stream is damaged", "Restore it from a copy: publishing again spends ε again."
            ) from None

    @classmethod
    def _from_facts(cls, facts: dict[str, Any], table: pa.Table) -> Released:
        grid = Grid(**facts["grid"])
        values = table.column("value").to_numpy()
        if grid.low != 0 or grid.resolution != 1:
            values = (values - grid.low) / grid.resolution
        if facts["covariance"].get("block") == 1:  # whole steps: undo the rounding of the conversion
            values = np.rint(values).astype(np.int64)
        first, *later = (stretch_of(entry) for entry in (facts, *facts.get("later", ())))
        stamps = table.column("timestamp").to_numpy() if "timestamp" in table.column_names else None
        phases = table.column("phase").to_numpy() if "phase" in table.column_names else None
        if phases is not None and phases.size and int(phases.max()) > len(later):
            raise ValueError
        return cls(
            values,
            first.covariance,
            grid,
            facts["about"],
            first.truncation,
            first.smoothing,
            stamps,
            facts["first"],
            tuple(later),
            phases,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file that DuckDB, pandas and `deniable stream query` read.

        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "private.parquet")
        >>> tops.released.save(path)
        >>> path.exists()
        True
        """
        from deniable.streams.released.release_file import write_release

        write_release(self.to_arrow(), path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Released:
        """Read a file that `save` or `deniable stream publish` wrote.

        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "private.parquet")
        >>> tops.released.save(path)
        >>> len(dn.streams.Released.load(path))
        3000
        """
        from deniable.streams.released.release_file import read_release

        return cls.from_arrow(read_release(path))


def _facts(text: bytes) -> dict[str, Any]:
    """The metadata of a file; a ValueError if anything in it was changed."""
    facts: dict[str, Any] = json.loads(text)
    if SEAL not in facts:  # earlier versions wrote none
        return facts
    try:
        return unsealed(facts, _RELEASE_SEAL_KEY)
    except InvalidData:
        raise ValueError from None
