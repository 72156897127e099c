"""How all tests run: without a clock (Hypothesis would fail an example that takes 200 ms), a file's together.

The example of a method continues the example of its class.

Garbage is looked for less often than usual, and not among the tests themselves.

What is compiled is kept, also where the environment says otherwise: tests start a hundred interpreters.

What publishers note about streams they go on with goes to a folder of the run, not to the home of whoever runs it.

Ctrl-C reaches commands that tests start, also where whoever started the run ignores it: shells do so in the background,
and children inherit it.
"""

import ast
import atexit
import builtins
import doctest
import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter

import pytest
from hypothesis import settings

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="deniable-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)

# Otherwise every interpreter that a test starts compiles the library from its sources once more.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests run on every core already: matrix products that start threads of their own only make each other wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Modules and tests stay: looking through all of them for garbage again and again took a twentieth of the time.
gc.set_threshold(50_000, 20, 50)

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")


def pytest_collection_finish():
    """What was collected stays until the end."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure():
    """At the end modules go, too, and some say so if they cannot."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _example_of_the_class(request):
    """Before the example of a method, run that of its class, if it sets up a name that the method's begins with."""
    test = getattr(request.node, "dtest", None)
    if test is None:
        return
    owner, dot, _ = test.name.removeprefix(test.globs["__name__"] + ".").partition(".")
    if dot and _names_taken_over(test):
        for example in doctest.DocTestParser().get_examples(test.globs[owner].__doc__ or ""):
            exec(compile(example.source, test.name, "single"), test.globs)  # noqa: S102 - as doctest does


def _names_taken_over(test):
    """The names that an example uses, and that neither it nor its module defines."""
    used, defined = set(), {*vars(builtins), *test.globs}
    for node in ast.walk(ast.parse("".join(example.source for example in test.examples))):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, ast.alias):
            defined.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.arg, ast.FunctionDef, ast.ClassDef, ast.ExceptHandler)):
            defined.add(node.arg if isinstance(node, ast.arg) else node.name)
    return used - defined


LONGEST = (
    "tests/engines/spark/",
    "tests/service/test_console.py",
    "tests/cli/test_demo.py",
    "tests/service/test_collector_simulation.py",
    "tests/stores/test_crashes.py",
    "lab/tests/benchmarks/test_stream_coverage.py",
    "lab/tests/benchmarks/test_stream_parts.py",
    "lab/tests/experiments/test_stream_findings.py",
    "lab/tests/experiments/test_table_findings.py",
    "lab/tests/experiments/test_zoo.py",
    "lab/tests/experiments/test_infinite_tree.py",
    "tests/queries/forecasts/test_fit.py",
    "tests/queries/forecasts/test_first_look.py",
    "tests/queries/forecasts/test_assumed_rows.py",
    "tests/service/test_served_streams.py",
    "tests/service/test_live_streams.py",
    "tests/tables/test_user_level_privacy.py",
    "tests/tables/test_round_bulk_privacy.py",
    "tests/engines/reports/test_stores.py",
    "tests/cli/test_stream_local_commands.py",
    "tests/database/test_calibration.py",
    "tests/database/test_random_queries.py",
    "tests/database/test_liars.py",
    "tests/database/test_joint_database.py",
    "tests/database/test_paper_bounds.py",
    "tests/golden/",
)
"""Files whose few tests take long. They come first, because a worker with nothing left waits for the other one."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Where workers share the tests, long files come first, then those with many tests."""
    if not hasattr(config, "workerinput"):
        return
    tests = Counter(_together(item.nodeid) for item in items)
    ranks = {start: rank for rank, start in enumerate(LONGEST)}

    def place(item):
        scope = _together(item.nodeid)
        rank = next((rank for start, rank in ranks.items() if item.nodeid.startswith(start)), len(ranks))
        return rank, -tests[scope], scope

    items.sort(key=place)


def _together(nodeid):
    """A file's tests go to one worker, so that what they share is set up once; all of Spark's to one, with its JVM."""
    return "spark" if nodeid.startswith("tests/engines/spark/") else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config, log):
    """What belongs together stays together, and is handed out in the order above."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _together(nodeid)

    config.option.loadscopereorder = False  # it would put files with few tests last
    return Scheduling(config, log)
