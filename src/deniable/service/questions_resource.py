"""POST /v1/sql, /v1/explain and /v1/forecast: what analysts ask, with a key of the scope ask.

The body is JSON: {"sql": "SELECT …", "options": {…}}, where the options are those of `AnswerOptions`; a forecast takes
{"sql": "SELECT …", "users": 100000} and, where these are known, "rows" and "matching". Answers are JSON, or by the
header Accept CSV or an Arrow stream.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import fields
from typing import Any, TypeVar

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from deniable.asked_collector import ANSWER_NAMES, ARROW, NOTES
from deniable.collection import Collection
from deniable.database import Database
from deniable.errors import BadInput, DeniableError, InvalidParameter
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.plain_rows import as_csv, first_rows, plain_rows
from deniable.queries.answers.result import Result
from deniable.service.answers import Refused, answered
from deniable.service.authorisation import require_scope
from deniable.service.collector import Collector
from deniable.service.open_database import TooManyQuestions
from deniable.service.request_bodies import json_entries

CSV_TYPE = "text/csv"
_OPTIONS = frozenset(field.name for field in fields(AnswerOptions))
_ABOUT_ROWS = ("rows", "matching")
"""What somebody who asks for a forecast may know of the rows."""
Given = TypeVar("Given")
Begin = Callable[[Callable[[], bool]], Future[Given]]
"""Queues work that ends once the function says that nobody waits for it."""


async def post_sql(request: Request) -> Response:
    """Answer a question."""
    collector, entries = await _asked(request, {"sql", "options", "first"})
    first = entries.get("first")
    if first is not None and (not isinstance(first, int) or isinstance(first, bool) or first < 0):
        raise Refused(400, "question", "first is how many rows to send: a whole number.")
    options = _options(entries.get("options", {}))
    result = await _asking(collector, request, lambda database: database.answer(entries["sql"], options))
    accepted = {part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")}
    if ARROW in accepted:
        return Response(_arrow(result), media_type=ARROW)
    if CSV_TYPE in accepted:
        return Response(as_csv(result), media_type=f"{CSV_TYPE}; charset=utf-8")
    shown = first_rows(result, first)
    return answered(
        {
            "columns": shown.to_arrow().column_names,
            "groups": [*result.groups],
            "answers": [*result.answers],
            "rows": plain_rows(shown),
            "total": len(result),
            "notes": result.footnotes,
            "simulation": result.simulation,
        }
    )


async def post_explain(request: Request) -> Response:
    """How a question is answered, and the error to expect."""
    collector, entries = await _asked(request, {"sql", *_ABOUT_ROWS})
    known = {name: entries[name] for name in _ABOUT_ROWS if name in entries}
    explained = await _asking(collector, request, lambda database: str(database.explain(entries["sql"], **known)))
    return answered({"text": explained})


async def post_forecast(request: Request) -> Response:
    """The error that a question's answers would have with so many users."""
    collector, entries = await _asked(request, {"sql", "users", *_ABOUT_ROWS})
    collection = Collection.of(collector.folder.collection)
    known = {name: entries[name] for name in _ABOUT_ROWS if name in entries}

    def forecast() -> str:
        return str(collection.forecast(entries["sql"], entries.get("users", 0), **known))

    text = await answer_in_time(collector, request, lambda ended: collector.questions.compute(forecast, ended))
    return answered({"text": text})


async def _asked(request: Request, known: set[str]) -> tuple[Collector, dict[str, Any]]:
    """The fields of a question, from somebody who may ask."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    entries = await json_entries(request, collector.settings, known, "question")
    if not isinstance(entries.get("sql"), str):
        raise Refused(400, "question", f"The body must be a JSON object with {', '.join(sorted(known))}.")
    return collector, entries


def _options(entries: Any) -> AnswerOptions:
    if not isinstance(entries, Mapping) or not set(entries) <= _OPTIONS:
        raise Refused(400, "options", f"The options are {', '.join(sorted(_OPTIONS))}.")
    try:
        return AnswerOptions(**entries)
    except InvalidParameter as problem:
        raise Refused(400, "options", str(problem)) from None
    except TypeError:
        raise Refused(400, "options", "An option has a value of another type.") from None


async def _asking(collector: Collector, request: Request, question: Callable[[Database], Given]) -> Given:
    """What the database says."""
    return await answer_in_time(collector, request, lambda ended: collector.questions.ask(question, ended))


async def answer_in_time(collector: Collector, request: Request, begin: Begin[Given]) -> Given:
    """What was begun says, within the limit of time. The question ends when the time is over or the asker leaves."""
    ended = threading.Event()
    left = asyncio.ensure_future(_left(request))
    try:
        async with asyncio.timeout(collector.settings.question_seconds):
            answer = asyncio.wrap_future(begin(ended.is_set))
            waiting: set[asyncio.Future[Any]] = {answer, left}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                answer.cancel()
                raise Refused(400, "disconnected", "The client has left.")
            return answer.result()
    except TooManyQuestions:
        raise Refused(429, "questions", "Too many questions wait. Ask again later.", wait_s=5) from None
    except TimeoutError:
        if collector.questions.reading:
            words = "Reports are being read, which goes on after this. Ask again in a while."
            raise Refused(503, "reading", words, wait_s=10) from None
        raise Refused(504, "time", "The answer takes too long. Ask for fewer groups or terms.") from None
    except BadInput as problem:
        raise Refused(400, "refused", str(problem), start=getattr(problem, "start", None)) from None
    except DeniableError as problem:
        raise Refused(503, "failed", str(problem), wait_s=5) from None
    finally:
        ended.set()
        left.cancel()


async def _left(request: Request) -> None:
    """Returns when the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _arrow(result: Result) -> bytes:
    """The columns as a stream; notes and the names of the numbers are in the schema's metadata."""
    table, sink = result.to_arrow(), pa.BufferOutputStream()
    about = {NOTES: json.dumps(result.footnotes), ANSWER_NAMES: json.dumps([*result.answers])}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **about})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
