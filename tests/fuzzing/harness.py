"""What all fuzzers share: seeded cases, and one oracle.

A case works, or it raises a `DeniableError` whose text does not hold the planted secret. Any other exception, a leak or
a case that takes minutes fails, and the message names the case: `only(attempt, name, case)` runs it alone. `make test`
runs a few hundred cases of each fuzzer, `make test-all` 10^5; DENIABLE_FUZZ_CASES says another number.
"""

import os
import random
import signal
import traceback
from collections import Counter
from contextlib import contextmanager

import pytest

from deniable.errors import DeniableError

SECRET = 86_420_713
"""A number that stands in the data of all fuzzers, and in no message."""
HANG_S = 300
MANY = 10**5


def cases(few):
    """The numbers of cases that a fuzzer is tested with: a few, and in `make test-all` many."""
    chosen = os.environ.get("DENIABLE_FUZZ_CASES")
    counts = [int(chosen)] if chosen else [few, pytest.param(MANY, marks=pytest.mark.slow)]
    return pytest.mark.parametrize("count", counts)


def fuzz(attempt, name, count):
    """Run cases; returns how many worked and how many were refused, by the kind of the refusal."""
    outcomes = Counter()
    for case in range(count):
        outcomes[only(attempt, name, case)] += 1
    return outcomes


def only(attempt, name, case):
    """Run one case: `attempt` gets a source of its own."""
    try:
        with _hanging_fails():
            attempt(random.Random(f"{name} {case}"))  # noqa: S311 - no secret
    except DeniableError as refusal:
        if str(SECRET) in f"{refusal} {refusal!r}":
            raise AssertionError(f"{name}, case {case}: a value of the data is shown: {refusal}") from None
        return type(refusal).__name__
    except BaseException as foreign:
        if isinstance(foreign, KeyboardInterrupt):
            raise
        trace = "".join(traceback.format_exception(foreign)[-6:])
        raise AssertionError(f"{name}, case {case}: {type(foreign).__name__} reached the user\n{trace}") from None
    return "works"


class Hangs(BaseException):
    """Not an Exception, so that nothing but the harness catches it."""


@contextmanager
def _hanging_fails():
    def ring(*_):
        raise Hangs

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANG_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
