"""How all tests run: without a clock (Hypothesis would fail an example that takes 200 ms), and Spark's together.

What publishers note about streams they go on with goes to a folder of the run, not to the home of whoever runs it.
"""

import atexit
import os
import shutil
import tempfile

from hypothesis import settings

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="deniable-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")


def pytest_xdist_make_scheduler(config, log):
    """Tests go to whichever worker is free, but those of Spark to one: they share a session, and so a JVM."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith("tests/engines/spark/") else nodeid

    return Scheduling(config, log)
