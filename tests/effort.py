"""How often a test repeats itself: a little in `make test`, thoroughly in `make test-all` (DENIABLE_THOROUGH=1)."""

import os

THOROUGH = bool(os.environ.get("DENIABLE_THOROUGH"))


def repetitions(usual: int, thorough: int) -> int:
    """So many repetitions, cases or draws."""
    return thorough if THOROUGH else usual


NOTICED = 0.05 if THOROUGH else 0.1
"""By which share ε may be off before a test of a sampler has to notice."""


def some(cases, each: int):
    """Every so many of the cases, the first one included; all of them in `make test-all`."""
    return list(cases)[:: 1 if THOROUGH else each]
