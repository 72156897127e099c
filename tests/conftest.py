"""How all tests run: without a clock (Hypothesis would fail an example that takes 200 ms), and Spark's together."""

from hypothesis import settings

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")


def pytest_xdist_make_scheduler(config, log):
    """Tests go to whichever worker is free, but those of Spark to one: they share a session, and so a JVM."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith("tests/engines/spark/") else nodeid

    return Scheduling(config, log)
