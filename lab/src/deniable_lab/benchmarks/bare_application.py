"""What a collector is measured next to: an ASGI application that appends every body to a list in memory."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn


def main() -> None:
    """Serve on a free port of this machine, and print the port."""
    kept: list[bytes] = []

    async def append(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", scope["type"] == "http"
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        kept.append(body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})

    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(append, lifespan="off", access_log=False, log_level="error", ws="none")
        uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main()
