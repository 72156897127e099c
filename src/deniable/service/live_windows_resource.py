"""GET /v1/streams/{stream}/windows: sums and means over windows, with error bars and a key of the scope ask.

?window=0:1000&window=2026-01-01..2026-02-01     these windows, by position or by time
?every=1h&from=0                                 windows that follow one another, as far as they are complete
&key=north  or  &all_keys=true                   in a stream with one stream per key
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from deniable.errors import BadInput, DeniableError
from deniable.service.answers import Refused, answered
from deniable.service.authorisation import require_scope
from deniable.service.collector import Collector
from deniable.service.live_streams import LiveStream
from deniable.service.live_values_resource import live_stream
from deniable.streams.released.keyed_release import KeyedReleased
from deniable.streams.released.released_stream import Released
from deniable.streams.released.window_names import WindowLength, complete_windows, window_of
from deniable.streams.released.windows import WindowEstimate

MOST_WINDOWS = 1000
_KNOWN = {"window", "every", "from", "key", "all_keys"}


async def get_windows(request: Request) -> Response:
    """Windows, each with its answer or why it has none."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    stream = live_stream(collector, request.path_params["stream"])
    asked = request.query_params
    texts, every, start = asked.getlist("window"), asked.get("every"), asked.get("from", "0")
    if not set(asked) <= _KNOWN or (not texts) == (every is None) or len(texts) > MOST_WINDOWS:
        words = f"Ask with window=START:STOP, up to {MOST_WINDOWS:,} times, or with every=1h; then also from."
        raise Refused(400, "windows", words)
    if not (start.isascii() and start.isdigit() and len(start) < 19):
        raise Refused(400, "windows", "from must be the number of a value.")
    try:
        if asked.get("all_keys") == "true":
            answers = await run_in_threadpool(_over_keys, stream, texts)
        else:
            released = await run_in_threadpool(_released, stream, asked.get("key"))
            answers = await run_in_threadpool(_windows, released, texts, every, int(start))
    except BadInput as problem:
        raise Refused(400, "windows", str(problem).replace("--", "")) from None
    return answered({"windows": answers})


def _released(stream: LiveStream, key: str | None) -> Released:
    if stream.keyed and key is None:
        raise Refused(400, "key", "This stream has keys. Ask with key=…, or with all_keys=true.")
    return stream.released() if key is None else stream.by_key()[key]


def _windows(released: Released, texts: list[str], every: str | None, start: int) -> list[dict[str, Any]]:
    if every is not None:
        complete = complete_windows(released, start, WindowLength.parse(every))
        return [
            {**({"from": name} if name else {}), **_facts(released, first, last)}
            for first, last, name in islice(complete, MOST_WINDOWS)
        ]
    answers = []
    for text in texts:
        try:
            first, last, note = window_of(text, released)
            answers.append({"window": text, **_facts(released, first, last), **({"note": note} if note else {})})
        except DeniableError as problem:
            answers.append({"window": text, "error": str(problem)})
    return answers


def _facts(released: Released, first: int, last: int) -> dict[str, Any]:
    sums, means = released.sum(first, last), released.mean(first, last)
    return {"start": first, "stop": last, "sum": plain_estimate(sums), "mean": plain_estimate(means)}


def _over_keys(stream: LiveStream, texts: list[str]) -> list[dict[str, Any]]:
    streams: KeyedReleased = stream.by_key()
    answers = []
    for text in texts:
        try:
            own = {key: window_of(text, streams[key], clipped=True)[:2] for key in streams.keys}
            answers.append({"window": text, "keys": len(own), "sum": plain_estimate(streams.sum_of(own))})
        except DeniableError as problem:
            answers.append({"window": text, "error": str(problem)})
    return answers


def plain_estimate(window: WindowEstimate) -> dict[str, Any]:
    """An answer with its interval, as JSON."""
    low, high = window.interval
    note = {} if window.note is None else {"note": window.note}
    return {**note, "value": window.value, "error": window.error, "low": low, "high": high}
