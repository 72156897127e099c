"""Attacks on claims of ε: a guessing game against mechanisms, clients and publishers, and who wins it.

`attack` plays the game, `features` and `events` hold what an attacker may look at, and the `…_targets` files what is
attacked: mechanisms, the clients of a specification, and streams.
"""

from deniable.audit.attack import Finding, Target, audit, noticed_factor
from deniable.audit.events import FALSE_ALARM
from deniable.audit.laws import worst_ratio
from deniable.audit.output import Output
from deniable.audit.targets import collection_targets, targets

__all__ = [
    "FALSE_ALARM",
    "Finding",
    "Output",
    "Target",
    "audit",
    "collection_targets",
    "noticed_factor",
    "targets",
    "worst_ratio",
]
