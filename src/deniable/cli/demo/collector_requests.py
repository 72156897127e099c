"""Requests to the collector of the demonstration."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 30.0


def open_connection(address: str) -> http.client.HTTPConnection:
    """A connection, which opens with its first request."""
    parts = urlsplit(address)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)


def answer_of(
    connection: http.client.HTTPConnection,
    path: str,
    body: bytes | None = None,
    content_type: str = "application/json",
    key: str | None = None,
) -> tuple[int, Any]:
    """The status and the answer to GET, or to POST if there is a body."""
    headers = {} if body is None else {"Content-Type": content_type}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    connection.request("GET" if body is None else "POST", path, body, headers)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def asked(address: str, path: str, body: bytes | None = None, **options: Any) -> Any:
    """The answer to a single request."""
    connection = open_connection(address)
    try:
        return answer_of(connection, path, body, **options)[1]
    finally:
        connection.close()
