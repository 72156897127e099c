"""The shell's settings: each option of `deniable query` as a command that changes it for the next questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deniable.errors import BadInput


@dataclass(frozen=True, slots=True)
class Setting:
    """One of the `AnswerOptions`: the words it takes, what it does, and how a word is read."""

    choices: str
    meaning: str
    read: Callable[[str], Any]


def _word_of(**values: Any) -> Callable[[str], Any]:
    def read(word: str) -> Any:
        if word.casefold() not in values:
            raise BadInput(f"that value is unknown. Nothing was changed. Use {' or '.join(values)}.")
        return values[word.casefold()]

    return read


def _number(word: str) -> float | str:
    """A number. Any other word is refused with the option's own message."""
    try:
        return float(word)
    except ValueError:
        return word


def _weights(word: str) -> str:
    from deniable.queries.weights.axis_weights import Rule

    return str(Rule.of(word))


_on_or_off = _word_of(on=True, off=False)
SETTINGS = {
    "weights": Setting("optimal|greedy|rdc(8)", "how nodes of trees are weighted", _weights),
    "sums": Setting(
        "direct|designed", "of the values, or as collected", _word_of(direct="direct", designed="designed")
    ),
    "confidence": Setting("0.95", "of the intervals", _number),
    "simultaneous": Setting("on|off", "all intervals of an answer hold at once", _on_or_off),
    "clip": Setting("on|off", "cut estimates to the possible range; biased", _on_or_off),
    "nonnegative": Setting("on|off", "cut negative counts and sums at 0; biased", _on_or_off),
    "unbiased": Setting("on|off", "on a grid, assume nothing", _on_or_off),
    "postprocess": Setting(
        "consistent|off", "on a grid, use possible frequencies; biased", _word_of(consistent="consistent", off=None)
    ),
}


def setting_word(value: Any) -> str:
    """A setting's value as the word that sets it.

    >>> setting_word(True), setting_word(None), setting_word(0.9)
    ('on', 'off', '0.9')
    """
    if value is None or isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
