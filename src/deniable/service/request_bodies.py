"""The body of a request, read within limits of size and time."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

from deniable.service.answers import Refused


async def whole_body(request: Request, most: int, seconds: float) -> bytes:
    """All bytes of a body. A declared length that is too large is refused before anything is read."""
    too_large = Refused(413, "size", f"A body may have {most:,} bytes. Send several requests.")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:20]) > most:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise Refused(408, "slow", "The body did not arrive in time.") from None
    except ClientDisconnect:
        raise Refused(400, "disconnected", "The body ended early.") from None
    return b"".join(parts)
