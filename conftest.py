"""How all tests run: without a clock (Hypothesis would fail an example that takes 200 ms), and Spark's together.

An example of a method goes on from the example of its class, which shows the set-up once.

What publishers note about streams they go on with goes to a folder of the run, not to the home of whoever runs it.
"""

import atexit
import doctest
import inspect
import os
import shutil
import tempfile

import pytest
from hypothesis import settings

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="deniable-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")


@pytest.fixture(autouse=True)
def _set_up_of_the_class(request):
    """Run what the class of a method imports and assigns in its own example, unless the method begins anew."""
    example = getattr(request.node, "dtest", None)
    if example is None or any("import deniable" in line.source for line in example.examples):
        return
    owner = example.globs.get(example.name.split(".")[-2])
    if inspect.isclass(owner) and owner.__module__ == example.globs["__name__"]:
        for line in doctest.DocTestParser().get_examples(inspect.getdoc(owner) or ""):
            if not line.want:
                exec(line.source, example.globs)  # noqa: S102 - the project's own docstring


def pytest_xdist_make_scheduler(config, log):
    """Tests go to whichever worker is free, but those of Spark to one: they share a session, and so a JVM."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith("tests/engines/spark/") else nodeid

    return Scheduling(config, log)
