"""No test asserts a time: unless told otherwise, Hypothesis would fail an example that takes 200 ms."""

from hypothesis import settings

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")
