"""Runs of an experiment over processes; finished ones are kept on disk, so that an interrupted command can go on."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import deniable
from deniable.errors import DeniableError, Failure
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting, experiments, summarise

LIBRARY, EXPERIMENTS = Path(deniable.__file__).parent, Path(__file__).parent
_AHEAD = 4 * (os.cpu_count() or 1)
_Numbers = list[tuple[Setting, dict[str, float]]]


@contextmanager
def workers(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes that share the cores; compiled loops in them take no more threads than that."""
    threads = str(max((os.cpu_count() or 1) // processes, 1))
    wanted = {"NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin) as pool:
            try:
                yield pool
            except BaseException:  # what they are at takes minutes, perhaps, and would be thrown away
                for child in multiprocessing.active_children():
                    child.terminate()
                raise
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _begin() -> None:
    """In a new process: leave interruptions to the one that started it, and end when that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def tasks(experiment: Experiment, data: Data, quick: bool, least: int = 1) -> list[tuple[Setting, int]]:
    """Every setting with every seed, of which there are at least `least`."""
    usual = max(experiment.repetitions[0 if quick else 1], least)
    return [
        (setting, seed)
        for setting in experiment.settings(data, quick)
        for seed in range(max(usual, experiment.fewest(setting)))
    ]


def run(
    name: str,
    experiment: Experiment,
    data: Data,
    *,
    quick: bool,
    kept: Path,
    least: int = 1,
    pool: ProcessPoolExecutor | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Rows:
    """All numbers of an experiment. `kept` is the file of finished runs; without a pool everything happens here."""
    todo = tasks(experiment, data, quick, least)
    mark = fingerprint(name, data)
    finished = _read(kept, mark)
    keys = [_key(setting, seed) for setting, seed in todo]
    advance(sum(key in finished for key in keys))
    missing = [(key, *task) for key, task in zip(keys, todo, strict=True) if key not in finished]
    if missing:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with kept.open("a", encoding="utf-8") as file:
            file.write("\n" * _cut_off(kept))
            for key, numbers in _measured(name, experiment, data, missing, pool):
                finished[key] = numbers
                file.write(json.dumps([mark, key, numbers]) + "\n")
                file.flush()
                advance(1)
    gathered: dict[str, tuple[Setting, list[Mapping[str, float]]]] = {}
    for key in keys:
        for setting, named in finished[key]:
            gathered.setdefault(json.dumps(setting, sort_keys=True), (setting, []))[1].append(named)
    return summarise(gathered.values())


def _measured(
    name: str,
    experiment: Experiment,
    data: Data,
    missing: list[tuple[str, Setting, int]],
    pool: ProcessPoolExecutor | None,
) -> Iterator[tuple[str, _Numbers]]:
    if pool is None:
        for key, setting, seed in missing:
            yield key, _flat(setting, experiment.measure(setting, seed, data))
        return
    waiting = iter(missing)
    running: dict[Future[_Numbers], str] = {}
    while True:
        for key, setting, seed in waiting:  # a few ahead of the workers, so that an interruption loses little
            running[pool.submit(measure_one, name, setting, seed, data)] = key
            if len(running) >= _AHEAD:
                break
        if not running:
            return
        for done in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(done), done.result()


def measure_one(name: str, setting: Setting, seed: int, data: Data) -> _Numbers:
    """One run, in a process of its own. Errors of this package do not travel between processes; their text does."""
    try:
        return _flat(setting, experiments()[name].measure(setting, seed, data))
    except DeniableError as error:
        raise Failure(str(error)) from None


def _flat(setting: Setting, measured: Measured) -> _Numbers:
    if isinstance(measured, Mapping):
        measured = [({}, measured)]
    return [
        ({**setting, **more}, {name: float(value) for name, value in numbers.items()}) for more, numbers in measured
    ]


def _key(setting: Setting, seed: int) -> str:
    return json.dumps([setting, seed], sort_keys=True)


def _cut_off(kept: Path) -> bool:
    """Whether an interruption left the last line without its end."""
    return kept.stat().st_size > 0 and not kept.read_bytes().endswith(b"\n")


def _read(kept: Path, mark: str) -> dict[str, _Numbers]:
    finished: dict[str, Any] = {}
    if kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            try:
                made_by, key, numbers = json.loads(line)
            except ValueError:  # cut off by an interruption
                continue
            if made_by == mark:
                finished[key] = [(setting, named) for setting, named in numbers]
    return finished


def fingerprint(name: str, data: Data) -> str:
    """Changes with the data folder and with any code that a run of this experiment may use."""
    group, _, stem = name.partition("/")
    own = Path(group, f"{stem.replace('-', '_')}.py")
    digest = hashlib.sha256(str(data.folder and data.folder.resolve()).encode())
    for folder, needed in ((LIBRARY, _computes), (EXPERIMENTS, partial(_measures, own))):
        for file in sorted(folder.rglob("*.py")):
            if needed(file.relative_to(folder)):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _computes(file: Path) -> bool:
    """Whether numbers may depend on a file of the library."""
    return file.parts[0] not in ("cli", "audit")


def _measures(own: Path, file: Path) -> bool:
    """Whether numbers of the experiment in `own` may depend on a file of this package: not on another experiment."""
    if len(file.parts) == 1:
        return file.name not in ("running.py", "writing.py")
    return file == own or file.name.startswith("_")
