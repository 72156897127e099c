"""How devices hear of a threshold: through a file, or a named pipe that `mkfifo` made."""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path

from deniable.errors import Failure, InvalidData
from deniable.files import LockedFile

_WAIT_S = 10.0  # for somebody who announces at the same time
_PAUSE_S = 0.02


def announce_theta(path: str | os.PathLike[str], theta: float) -> None:
    """Write θ where devices wait for it: into a named pipe, or as a new file, all at once."""
    target, text = Path(path), f"{theta!r}\n"
    if target.is_fifo():
        # Opening waits for a reader, and there is none if the values have ended: reports must be read meanwhile.
        threading.Thread(target=target.write_text, args=(text,), daemon=True).start()
        return
    with LockedFile(target, "the announcement", cost="The threshold was not announced", wait_s=_WAIT_S) as file:
        file.write(text.encode(), mode=0o644)


def check_announcement(path: str | os.PathLike[str], *thetas: float) -> None:
    """Refuse a file in which an earlier run announced another threshold than those of this collection."""
    announced = _announced_theta(Path(path))
    if announced is not None and announced not in thetas:
        raise InvalidData(f"{Path(path).name!r} exists already: devices may have read another threshold", "Remove it.")


def _announced_theta(path: Path) -> float | None:
    """θ of a file that an earlier run left; NaN if it holds something else, None if there is no file, or a pipe."""
    if not path.exists() or path.is_fifo():
        return None
    try:
        return float(path.read_text(encoding="ascii"))
    except ValueError:
        return math.nan


def wait_for_theta(path: str | os.PathLike[str], seconds: float) -> float:
    """θ, once the server has written it."""
    source, end = Path(path), time.monotonic() + seconds
    while not source.exists():
        _pause(source, end)
    try:
        return float(_from_pipe(source, end) if source.is_fifo() else source.read_text(encoding="ascii"))
    except (ValueError, OSError):
        raise InvalidData(f"{source.name!r} holds no threshold", "Let `deniable stream collect` write it.") from None


def _from_pipe(path: Path, end: float) -> str:
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    data = b""
    try:
        while not data.endswith(b"\n"):
            try:
                part = os.read(pipe, 100)
            except BlockingIOError:  # a writer is there and has not written yet
                part = b""
            data += part
            if not part:
                _pause(path, end)
    finally:
        os.close(pipe)
    return data.decode("ascii", errors="replace")


def _pause(path: Path, end: float) -> None:
    if time.monotonic() > end:
        raise Failure(
            f"no threshold was announced in {path.name!r} in time. First reports were sent and nothing else. "
            "Look at what `deniable stream collect` says, or give --wait more seconds."
        )
    time.sleep(_PAUSE_S)
