"""What a stream promises, in words: streams that devices report to, and streams that somebody trusted publishes."""

from __future__ import annotations

from typing import Any

from deniable.promise import odds
from deniable.simulation import has_noise
from deniable.stores.live.folder_files import StoreSettings
from deniable.streams.central.keyed_publisher import KeyedPublisher
from deniable.wording import counted

_MANY_VALUES = 100
NO_NOISE = "Nobody: this stream has no noise, and is for simulations only."


def device_stream_promise(epsilon: float, bound: float) -> dict[str, list[str]]:
    """A stream without trust: every device randomises its own value.

    >>> device_stream_promise(2.0, 100)["How much"][0]
    'A person sends one report, and spends ε = 2 on this stream once in her life.'
    """
    return {
        "Who is protected": [_protected(epsilon, f"Every person who reports, with her value (0 to {bound:,.6g}).")],
        "Against whom": ["Everybody, this server included: only her device sees the value."],
        "How much": [
            f"A person sends one report, and spends ε = {epsilon:g} on this stream once in her life.",
            f"An attacker who would bet 1:1 on her value can bet at most {odds(epsilon)} afterwards.",
        ],
        "What is not hidden": [
            "That she reports, when, and from where; whether she reported before or after θ was announced.",
            "Other streams and collections about the same facts spend again: give her devices one ledger with a limit.",
        ],
    }


def published_stream_promise(about: StoreSettings) -> dict[str, list[str]]:
    """A stream in a store: whoever runs the publisher sees the values."""
    return {
        "Who is protected": [_protected(about.epsilon, _unit(about))],
        "Against whom": [
            "Everybody who reads what is published, whatever else they know, however long the stream runs.",
            "Not against whoever sends the values, this server, or anyone who reads the store's private folder.",
        ],
        "How much": _how_much(about),
        "What is not hidden": _not_hidden(about),
    }


def _protected(epsilon: float, words: str) -> str:
    return words if has_noise(epsilon) else NO_NOISE


def _unit(about: StoreSettings) -> str:
    if about.person is None:
        whose = " of one key, whatever the key" if about.kind == KeyedPublisher.kind else ""
        less = "Anyone with many values is protected less."
        return f"One value{whose}: what is published is nearly as likely with any other. {less}"
    epoch, most = about.person["epoch"], about.person["most"]
    length = f"an epoch of {epoch:,} events" if epoch else "an epoch, which ends when the operator says so"
    return f"Every person, with everything she does within {length}. Up to {most:,} of her values count."


def _how_much(about: StoreSettings) -> list[str]:
    epsilon = about.epsilon
    if about.person is None:
        many = epsilon * _MANY_VALUES
        return [
            f"Each value spends ε = {epsilon:g}, once, however many values and questions follow.",
            f"An attacker who would bet 1:1 on one value can bet at most {odds(epsilon)} afterwards.",
            f"A person with {_MANY_VALUES} values in the stream spends up to ε = {many:g}, which is {odds(many)}.",
        ]
    window = about.person["window"]
    return [
        f"A person spends ε = {epsilon:g} over any {counted(window, 'consecutive epoch')}, compared with her absence; "
        f"two different behaviours are up to ε = {2 * epsilon:g} apart.",
        f"An attacker who would bet 1:1 on whether she took part can bet at most {odds(epsilon)} after these epochs.",
        "Later epochs spend again. Over a year they add up.",
    ]


def _not_hidden(about: StoreSettings) -> list[str]:
    lines = ["How many values there are, and when they arrive: timestamps are published as they are."]
    if about.kind == KeyedPublisher.kind:
        lines.append("Which keys there are, when each appeared, and how many values each has: keys are public.")
    bad: dict[str, Any] = {
        "stop": "That a value was not as declared: the stream ends there.",
        "skip": "That a value was not as declared: there is one value less.",
    }
    if about.on_bad in bad:
        lines.append(bad[about.on_bad])
    lines.append("The settings: ε, the range of values, the lengths of warm-up, chunks and blocks, and θ.")
    return lines
