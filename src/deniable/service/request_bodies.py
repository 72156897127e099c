"""The body of a request, read within limits of size and time."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.types import Receive

from deniable.service.answers import Refused
from deniable.service.settings import ServeSettings
from deniable.strict_json import read_json


async def whole_body(request: Request, most: int, seconds: float) -> bytes:
    """All bytes of the body of a request."""
    return await received_body(request.receive, request.headers.get("content-length", ""), most, seconds)


async def json_entries(
    request: Request, settings: ServeSettings, known: set[str], reason: str = "body"
) -> dict[str, Any]:
    """The body of a request as a JSON object with some of the known fields."""
    body = await whole_body(request, settings.body_bytes, settings.body_seconds)
    try:
        entries = read_json(body)
    except ValueError:
        entries = None
    if not isinstance(entries, dict) or not set(entries) <= known:
        raise Refused(400, reason, f"The body must be a JSON object with {', '.join(sorted(known))}.")
    return entries


async def received_body(receive: Receive, declared: str, most: int, seconds: float) -> bytes:
    """All bytes of a body. A declared length that is too large is refused before anything is read."""
    too_large = f"A body may have {most:,} bytes. Send several requests."
    if declared.isdigit() and int(declared[:20]) > most:
        raise Refused(413, "size", too_large)
    parts, size, more = [], 0, True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(400, "disconnected", "The body ended early.")
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                if size > most:
                    raise Refused(413, "size", too_large)
                parts.append(part)
    except TimeoutError:
        raise Refused(408, "slow", "The body did not arrive in time.") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)
