"""A collector in a process of its own, which can be killed and started again, and never outlives the demonstration."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from deniable.cli.demo.collector_requests import asked
from deniable.errors import Failure

_ALL_FROM_ONE_ADDRESS = {"DENIABLE_SERVE_REQUESTS_PER_MINUTE": "1e8", "DENIABLE_SERVE_REPORTS_PER_MINUTE": "1e8"}
"""Every device of the demonstration has the same address: limits of pace are for each."""
_END_S = 20.0


class RunningCollector:
    """`deniable serve` on a free port of this machine.

    As a context it stops the process at its end, whatever happens.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Where it listens. The port stays the same when it is started again."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, and wait until its port is open."""
        try:
            self._start()
        except BaseException:  # Ctrl-C, too: nobody else would stop it
            self.stop()
            raise

    def _start(self) -> None:
        command = [sys.executable, "-P", "-m", "deniable", "serve", str(self._folder), "--port", str(self._port)]
        settings = {**os.environ, **_ALL_FROM_ONE_ADDRESS, "PYTHONUTF8": "1"}
        with _signals_later():  # or nobody would know the process that was just begun
            self._process = process = subprocess.Popen(  # noqa: S603 - this program
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=settings,
            )
        log = process.stderr
        assert log is not None  # noqa: S101 - it is a pipe
        for line in log:
            if (listening := re.search(r"listening on \S+:(\d+)$", line)) is not None:
                self._port = int(listening[1])
                threading.Thread(target=_read_to_the_end, args=(log,), daemon=True).start()
                return
        log.close()
        raise Failure(
            f"the collector did not start in {self._folder.name!r}. Nothing was collected. "
            f"See why: deniable serve {self._folder} --check"
        )

    def kill(self) -> None:
        """End it as a power cut would: kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Let it finish what is under way; end it if it does not."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def ask(self, path: str, body: bytes | None = None, **options: Any) -> Any:
        """The answer to a request."""
        return asked(self.address, path, body, **options)


def _read_to_the_end(log: Any) -> None:
    """Take what the process writes, so that it never waits for a reader."""
    with log:
        for _ in log:
            pass


@contextmanager
def _signals_later() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM take effect at the end of a few lines. Only the main thread gets them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: caught.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for arrived in caught:
            signal.raise_signal(arrived)


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM end the program as Ctrl-C does: through every `finally`. Only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
