"""Answers to requests: JSON, and refusals with a stated word and a sentence."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

from starlette.requests import Request
from starlette.responses import Response


class Refused(Exception):
    """A request that is refused as a whole. Nothing of it was stored."""

    def __init__(
        self, status: int, reason: str, words: str, *, wait_s: float | None = None, start: int | None = None
    ) -> None:
        super().__init__(words)
        self.status, self.reason, self.words, self.wait_s, self.start = status, reason, words, wait_s, start


def refusal(status: int, reason: str, words: str, *, wait_s: float | None = None, start: int | None = None) -> Response:
    """The answer to a refused request."""
    headers = {} if wait_s is None else {"Retry-After": str(max(1, math.ceil(wait_s)))}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(refusal_body(reason, words, start), status, headers=headers, media_type="application/json")


async def refused_answer(_: Request, problem: Exception) -> Response:
    """Starlette calls this for `Refused`."""
    assert isinstance(problem, Refused)  # noqa: S101 - Starlette's types do not say so
    return refusal(problem.status, problem.reason, problem.words, wait_s=problem.wait_s, start=problem.start)


def refusal_body(reason: str, words: str, start: int | None = None) -> bytes:
    """The body of the answer to a refused request; `start` is where in a question the problem is."""
    position = {} if start is None else {"start": start}
    return json.dumps({"error": reason, "message": words, **position}, separators=(",", ":")).encode()


def answered(content: Any, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_text)
    return Response(text, headers=headers, media_type="application/json")


def _as_text(value: Any) -> str:
    """Dates and times of an answer as ISO 8601 writes them."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    raise TypeError
