"""How all tests run: without a clock (Hypothesis would fail an example that takes 200 ms), a file's together.

The example of a method continues the example of its class.

Garbage is looked for less often than usual, and not among the tests themselves.

What is compiled is kept, also where the environment says otherwise: tests start a hundred interpreters.

What publishers note about streams they go on with goes to a folder of the run, not to the home of whoever runs it.
"""

import ast
import atexit
import builtins
import doctest
import gc
import os
import shutil
import sys
import tempfile

import pytest
from hypothesis import settings

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="deniable-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

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


def pytest_xdist_make_scheduler(config, log):
    """A file's tests go to one worker, so that what they share is set up once; all of Spark's to one, with its JVM."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith("tests/engines/spark/") else nodeid.partition("::")[0]

    return Scheduling(config, log)
