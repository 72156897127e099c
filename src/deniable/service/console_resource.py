"""GET / and /console/…: the console's files, as `make console` built them into the package.

The page may load its own script and style and ask this server, nothing else. It holds no secret: everything that it
shows, it asks for with a key.
"""

from __future__ import annotations

import gzip
import hashlib
import secrets
from dataclasses import dataclass
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

from deniable.service.answers import Refused

_FILES = {
    "console.js": "text/javascript; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "licences.txt": "text/plain; charset=utf-8",
}
_PAGE = "index.html"
_NONCE = b"NONCE"
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class ConsoleFile:
    """A file of the package, plain and compressed."""

    plain: bytes
    compressed: bytes
    tag: str


@cache
def console_file(name: str) -> ConsoleFile:
    """A file of the console, read once."""
    content = resources.files("deniable.service").joinpath("console_files", name).read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return ConsoleFile(content, gzip.compress(content, mtime=0), tag)


async def get_console(_: Request) -> Response:
    """The page, with a policy that lets nothing in from elsewhere. The editor's style sheet carries the nonce."""
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; "
        "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    page = console_file(_PAGE).plain.replace(_NONCE, nonce.encode())
    headers = {**_SAFE, "Content-Security-Policy": policy, "Cache-Control": "no-store"}
    return Response(page, media_type="text/html; charset=utf-8", headers=headers)


async def get_console_file(request: Request) -> Response:
    """The script, the style sheet and the licences."""
    name = request.path_params["file"]
    if name not in _FILES:
        raise Refused(404, "http", "There is nothing at this path.")
    file = console_file(name)
    headers = {**_SAFE, "ETag": file.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if file.tag in (part.strip() for part in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.compressed, media_type=_FILES[name], headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.plain, media_type=_FILES[name], headers=headers)


async def get_favicon(_: Request) -> Response:
    """Browsers ask for one."""
    return Response(status_code=204, headers={"Cache-Control": "max-age=86400"})
