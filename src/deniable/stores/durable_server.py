"""A server of a stream without trust that survives its process: nobody is counted twice, and its threshold holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from os import PathLike
from typing import Any, Self

import numpy as np

from deniable.arrays import Floats
from deniable.errors import Failure, InvalidParameter
from deniable.locking import Turn, in_turn
from deniable.stores.report_batches import ReportBatch
from deniable.stores.state_file import StateFile
from deniable.stores.threshold_announcement import announce_theta, check_announcement
from deniable.streams.local.report_arrays import MALFORMED
from deniable.streams.local.server import ToPLServer

SAVE_EVERY_S = 60.0


def _ignore(theta: float) -> None:
    """Nobody waits for the threshold."""


class DurableServer:
    """A `ToPLServer` whose state is on disk before its threshold is announced. Locked until `close`.

    `server` is a new one with the settings of the stream. If there is a state already, its own server continues, and
    other settings are refused. Without a `path` nothing is kept. `read` counts the reports of all runs.

    `tell` is called with the threshold as soon as there is one, and with every later one. `announcement` names a file
    or a named pipe at which devices wait for it. Devices that wait send no more, so θ is then chosen as soon as `first`
    reports were read, even if some of them were refused.

    The state is saved every minute and by `close`. After a crash, continue with report number `read`: reports that come
    again give the same estimates as before.

    >>> import pathlib, tempfile
    >>> import deniable as dn
    >>> path = pathlib.Path(tempfile.mkdtemp(), "state.json")
    >>> client = dn.client.ToPLClient(epsilon=1.0, bound=10)
    >>> code = np.array([client.report(4, theta=10.0).y])
    >>> reports = dn.streams.report_table(client.protocol, code, theta=10.0, uid=["ann"])
    >>> with DurableServer(path, dn.streams.ToPLServer(1.0, 10, theta=10.0, keep=False)) as durable:
    ...     durable.publish(ReportBatch(reports), lambda estimates: print(estimates.size, "estimate"))
    1 estimate
    >>> with DurableServer(path, dn.streams.ToPLServer(1.0, 10, theta=10.0, keep=False)) as durable:
    ...     durable.publish(ReportBatch(reports), print)
    ...     durable.read, dict(durable.server.refused)
    (2, {'of a user who has answered': 1})
    """

    def __init__(
        self,
        path: str | PathLike[str] | None,
        server: ToPLServer,
        *,
        tell: Callable[[float], None] = _ignore,
        announcement: str | PathLike[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell, self._announcement, self._clock = tell, announcement, clock
        self._turn = Turn()
        self._announced = 0  # how many thresholds are saved and announced, as far as this run knows
        self._closed = False
        self._file = None if path is None else StateFile(path, holds="who has answered")
        try:
            record: dict[str, Any] = (self._file and self._file.record) or {}
            self.server = _restored(record["state"], server) if record else server
            if announcement is not None:
                check_announcement(announcement, *self.server.thetas)
        except BaseException:
            self._release()
            raise
        self.first = self.server.published
        self.read: int = record.get("read", 0)
        self._waiting: list[float] = record.get("waiting", [])  # estimates of a mean that is not complete
        self._waiting_noise: list[float] = record.get("waiting_noise") or self._noise_of(len(self._waiting)).tolist()
        self.phases = np.zeros(0, dtype=np.uint8)
        """The phase of each estimate that is being delivered: the number of its θ in `server.thetas`."""
        self._saved = clock()

    @in_turn
    def publish(self, batch: ReportBatch, deliver: Callable[[Floats], None]) -> None:
        """Take reports. Estimates leave only after every θ that they depend on is on disk.

        Those of a batch that completes a later θ leave before it is saved: they are under earlier ones, and after a
        crash in between the same reports give them again.
        """
        if self._closed:
            raise Failure("this server is closed. Nothing was taken or published. Open the state file again.")
        if batch.malformed:
            self.server.refused[MALFORMED] += batch.malformed
        self.read += batch.number
        estimates, self.phases = self.server.take_many(batch.reports)
        if self.server.theta is None and self._announcement is not None and self.read >= self.server.first:
            self._choose_early()
        known = estimates.size > 0 and int(self.phases.max()) < self._announced
        if not known:
            self._announce()
        if estimates.size:
            deliver(estimates)
        if known:
            self._announce()
        if self._clock() - self._saved > SAVE_EVERY_S:
            self._save()

    @in_turn
    def announce(self) -> None:
        """Announce the threshold, if there is one that this run has not announced. It is saved first."""
        self._announce()

    @in_turn
    def renew(self) -> float:
        """Choose a new θ, and announce it. It is saved first."""
        theta = self.server.renew()
        self._announce()
        return theta

    def means(self, estimates: Floats, every: int) -> Floats:
        """The means of `every` consecutive estimates. Those that are left over wait for more, also in the next run."""
        return self.means_with_errors(estimates, every, self._noise_of(estimates.size))[0]

    def means_with_errors(self, estimates: Floats, every: int, noise: Floats) -> tuple[Floats, Floats]:
        """As `means`, with their standard errors; `noise` holds the variance of each estimate."""
        pending, variances = np.concatenate((self._waiting, estimates)), np.concatenate((self._waiting_noise, noise))
        whole = pending.size // every * every
        self._waiting, self._waiting_noise = pending[whole:].tolist(), variances[whole:].tolist()
        means, squares = (part[:whole].reshape(-1, every).mean(axis=1) for part in (pending, variances))
        return means, np.sqrt(squares / every)

    def _noise_of(self, number: int) -> Floats:
        """The variance of so many estimates under the present θ."""
        return np.full(number, self.server.variance if number else 0.0)

    @property
    def refusals(self) -> str:
        """How many reports were refused, by reason."""
        return ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.server.refused.items()))

    @in_turn
    def save(self) -> None:
        """Replace the file by the present state, and wait until it is on the disk."""
        self._save()

    @in_turn
    def close(self) -> None:
        """Save, and let others open the file. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._save()
        finally:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _save(self) -> None:
        if self._file is not None:
            waiting = {"waiting": self._waiting, "waiting_noise": self._waiting_noise}
            self._file.write(self.server.state(), read=self.read, **waiting)
            self._saved = self._clock()

    def _announce(self) -> None:
        if self.server.theta is not None and len(self.server.thetas) > self._announced:
            self._save()  # what devices were told must hold in every later run
            self._announced = len(self.server.thetas)
            self._tell(self.server.theta)
            if self._announcement is not None:
                announce_theta(self._announcement, self.server.theta)

    def _choose_early(self) -> None:
        """Some reports were refused, so the number that was hoped for may never come."""
        if not self.server.heard:
            raise Failure(f"all {self.read:,} reports were refused: {self.refusals}. No threshold was announced.")
        self.server.announce()

    def _release(self) -> None:
        if self._file is not None:
            self._file.close()


def _restored(state: dict[str, Any], server: ToPLServer) -> ToPLServer:
    restored = ToPLServer.restore(state)
    if restored.settings != server.settings:
        raise InvalidParameter("the settings", "are not those of the state file", "Give the same, or a new file.")
    return restored
