"""POST /v1/sql, /v1/explain and /v1/forecast: what analysts ask, with a key of the scope ask.

The body is JSON: {"sql": "SELECT …", "options": {…}}, where the options are those of `AnswerOptions`; a forecast takes
{"sql": "SELECT …", "users": 100000}. Answers are JSON, or by the header Accept CSV or an Arrow stream.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from deniable.collection import Collection
from deniable.database import Database
from deniable.errors import BadInput, DeniableError, InvalidParameter
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.plain_rows import as_csv, plain_rows
from deniable.queries.answers.result import Result
from deniable.service.answers import Refused, answered
from deniable.service.authorisation import require_scope
from deniable.service.collector import Collector
from deniable.service.open_database import TooManyQuestions
from deniable.service.request_bodies import whole_body
from deniable.strict_json import read_json

CSV, ARROW = "text/csv", "application/vnd.apache.arrow.stream"
_OPTIONS = frozenset(field.name for field in fields(AnswerOptions))
Given = TypeVar("Given")


async def post_sql(request: Request) -> Response:
    """Answer a question."""
    collector, entries = await _asked(request, {"sql", "options"})
    options = _options(entries.get("options", {}))
    result = await _answer(collector, request, lambda database: database.answer(entries["sql"], options))
    accepted = {part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")}
    if ARROW in accepted:
        return Response(_arrow(result), media_type=ARROW)
    if CSV in accepted:
        return Response(as_csv(result), media_type=f"{CSV}; charset=utf-8")
    names = result.to_arrow().column_names
    return answered(
        {"columns": names, "rows": plain_rows(result), "notes": result.footnotes, "simulation": result.simulation}
    )


async def post_explain(request: Request) -> Response:
    """How a question is answered, and the error to expect."""
    collector, entries = await _asked(request, {"sql"})
    return answered({"text": await _answer(collector, request, lambda database: str(database.explain(entries["sql"])))})


async def post_forecast(request: Request) -> Response:
    """The error that a question's answers would have with so many users."""
    collector, entries = await _asked(request, {"sql", "users"})
    collection = Collection.of(collector.folder.collection)
    return answered(
        {
            "text": await _answer(
                collector, request, lambda _: str(collection.forecast(entries["sql"], entries.get("users", 0)))
            )
        }
    )


async def _asked(request: Request, known: set[str]) -> tuple[Collector, dict[str, Any]]:
    """The fields of a question, from somebody who may ask."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    body = await whole_body(request, collector.settings.body_bytes, collector.settings.body_seconds)
    try:
        entries = read_json(body)
    except ValueError:
        entries = None
    if not isinstance(entries, dict) or not set(entries) <= known or not isinstance(entries.get("sql"), str):
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


async def _answer(collector: Collector, request: Request, question: Callable[[Database], Given]) -> Given:
    """What the database says, within the limit of time. The question ends when the time is over or the asker leaves."""
    ended = threading.Event()
    left = asyncio.ensure_future(_left(request))
    try:
        async with asyncio.timeout(collector.settings.question_seconds):
            answer = asyncio.wrap_future(collector.questions.ask(question, ended.is_set))
            waiting: set[asyncio.Future[Any]] = {answer, left}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                answer.cancel()
                raise Refused(400, "disconnected", "The client has left.")
            return answer.result()
    except TooManyQuestions:
        raise Refused(429, "questions", "Too many questions wait. Ask again later.", wait_s=5) from None
    except TimeoutError:
        raise Refused(504, "time", "The answer takes too long. Ask for fewer groups or terms.") from None
    except BadInput as problem:
        raise Refused(400, "refused", str(problem)) from None
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
    table, sink = result.to_arrow(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
