"""For tests that add the same noise twice, which the library refuses."""

from deniable import addresses


def forget_what_was_drawn():
    """Let sources and publishers of known keys be made anew, as another process would."""
    addresses.OF_GIVEN_KEYS.clear()
