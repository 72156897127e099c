"""Pages of other origins: what a browser has to be told before it lets them report.

A browser asks first (a preflight, OPTIONS) and then sends `Origin` with the request. Only origins that are listed, and
only what devices ask for, are answered with leave: the description of a collection and uploads of reports. For every
other origin or path nothing is said, and the browser refuses. Cookies are never asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ORIGIN = re.compile(r"https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_DEVICE_PATH = re.compile(r"/v1/collections/[^/]+(?:/streams/[^/]+)?(?P<reports>/reports)?")
_PREFLIGHT_SECONDS = 600


def is_origin(text: str) -> bool:
    """Whether a text is an origin as browsers send it: scheme, host and port, nothing behind it.

    >>> is_origin("https://shop.example"), is_origin("https://shop.example/"), is_origin("*"), is_origin("null")
    (True, False, False, False)
    """
    return _ORIGIN.fullmatch(text) is not None


class CrossOrigin:
    """Gives pages of listed origins leave to do what devices do."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        self._app, self._origins = app, frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight, or pass a request on and add the leave to its answer."""
        headers = dict(scope["headers"]) if scope["type"] == "http" else {}
        origin = headers.get(b"origin")
        path = _DEVICE_PATH.fullmatch(scope["path"]) if origin is not None and origin in self._origins else None
        if origin is None or path is None:
            await self._app(scope, receive, send)
            return
        leave = [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            allowed = [
                (b"access-control-allow-methods", b"POST" if path["reports"] else b"GET"),
                (b"access-control-allow-headers", b"authorization, content-type"),
                (b"access-control-max-age", b"%d" % _PREFLIGHT_SECONDS),
            ]
            await send({"type": "http.response.start", "status": 204, "headers": leave + allowed})
            await send({"type": "http.response.body", "body": b""})
            return
        leave.append((b"access-control-expose-headers", b"Retry-After"))

        async def send_with_leave(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *leave]}
            await send(message)

        await self._app(scope, receive, send_with_leave)
