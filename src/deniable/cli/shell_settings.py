"""How the shell's questions are answered: each option of `deniable query` as a command that can be changed midway."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deniable.errors import BadInput


@dataclass(frozen=True, slots=True)
class Setting:
    """One option: the words it takes, what they stand for, and what it does."""

    choices: str
    meaning: str
    read: Callable[[str], Any]


def _one_of(**values: Any) -> Callable[[str], Any]:
    def read(word: str) -> Any:
        if word.casefold() not in values:
            raise BadInput(f"that is no choice. Nothing was changed. Use {' or '.join(values)}.")
        return values[word.casefold()]

    return read


def _confidence(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise BadInput("confidence must lie between 0 and 1. Nothing was changed. Use 0.95.")
    return value


def _weights(word: str) -> str:
    from deniable.queries.weights.axis_weights import Rule

    return str(Rule.of(word))


_SWITCH = _one_of(on=True, off=False)
SETTINGS = {
    "weights": Setting("optimal|greedy|rdc(8)", "how nodes of trees are weighed", _weights),
    "sums": Setting("direct|designed", "by the values, or as collected", _one_of(direct="direct", designed="designed")),
    "confidence": Setting("0.95", "of the intervals", _confidence),
    "simultaneous": Setting("on|off", "all intervals of an answer hold at once", _SWITCH),
    "clip": Setting("on|off", "cut estimates to what is possible; biased", _SWITCH),
    "nonnegative": Setting("on|off", "cut at zero what cannot be negative; biased", _SWITCH),
    "unbiased": Setting("on|off", "of a grid, only what it tells without assuming", _SWITCH),
    "postprocess": Setting(
        "consistent|off", "of a grid: from possible frequencies; biased", _one_of(consistent="consistent", off=None)
    ),
}


def shown(value: Any) -> str:
    """A setting's value in the words that set it.

    >>> shown(True), shown(None), shown(0.9)
    ('on', 'off', '0.9')
    """
    if value is None or isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
