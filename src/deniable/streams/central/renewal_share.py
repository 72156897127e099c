"""Which share of ε the values of an epoch spend on what the next epoch is told, by predicted error.

A larger share leaves less for the epoch's tree, whose variance grows by 1/(1 − share)²; a smaller one leaves the next
θ to chance. How much that costs was measured on drawn streams (even seeds): where θ is learnt from x·r values with all
of ε, or from as much information, errors of an epoch of r values are about 1 + 1/(8x) times those of the best θ.

Privacy: a share follows from public settings and from what was published and answered before the epoch begins. So it
is fixed when its first value comes, and the ε of the tree and of what is asked add up to at most ε, whichever it is.
"""

from __future__ import annotations

from fractions import Fraction

SHARES = tuple(Fraction(share) for share in ("1/32", "1/16", "1/8", "1/4", "3/8"))
"""Those that are compared. Smaller and larger ones never have the least predicted error."""
_LARGEST_STEADY = Fraction(1, 16)
"""Of an epoch as long as the next one: more would raise the variance of its tree by more than a seventh."""
_CHANCE = 1 / 8
_LOST = 1 / 32
"""One of so many epochs shows a change behind which nothing holds that was known before. Chosen, not measured."""


def renewal_share(length: int, following: int, known: float, shares: tuple[Fraction, ...] = SHARES) -> Fraction:
    """The share for an epoch of `length` values before one of `following`.

    `known`: θ was learnt from so many values with all of ε, or from more with less. As long as nothing changes, that
    adds up. `shares` are those that are possible.

    >>> [str(renewal_share(1 << 16, 1 << 16, known)) for known in (0, 1 << 13, 1 << 16)]
    ['1/16', '1/16', '1/32']
    >>> [str(renewal_share(1 << 14, 1 << 16, known)) for known in (0, 1 << 12, 1 << 14)]
    ['3/8', '3/8', '1/8']
    """

    def predicted(share: Fraction) -> float:
        asked, before = float(share) * length / following, known / following
        chance = _CHANCE * ((1 - _LOST) / (before + asked) + _LOST / asked)
        return length / following / (1 - float(share)) ** 2 + chance

    possible = shares if following > length else tuple(share for share in shares if share <= _LARGEST_STEADY)
    return min(possible, key=predicted)
