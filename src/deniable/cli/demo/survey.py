"""The survey of the demonstration: three questions, what made-up people answer, and a page where you answer yourself.

The page is that of `examples/web`. It runs in a browser, which randomises the answers and reports to the collector.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import quote

import numpy as np

from deniable.collection import Collection
from deniable.tables import Categorical, Ordinal, Table

TRAVEL = ("on foot", "bicycle", "train", "car")
_PAGE_FILES = {
    "index.html": "text/html; charset=utf-8",
    "survey.css": "text/css; charset=utf-8",
    "survey.js": "text/javascript; charset=utf-8",
}
_SPECIFICATION_NAME = "survey.json"


def table() -> Table:
    """What the page asks."""
    return Table("answers", days=Ordinal(0, 7), travel=Categorical(*TRAVEL), content=Ordinal(0, 10))


def made_up_answers(people: int) -> list[dict[str, Any]]:
    """People who walk or cycle are more content."""
    random = np.random.default_rng(4)
    travel = random.choice(len(TRAVEL), people, p=[0.15, 0.25, 0.2, 0.4])
    days = random.choice(8, people, p=[0.1, 0.03, 0.07, 0.2, 0.15, 0.4, 0.04, 0.01])
    content = np.clip(random.normal(np.array([8.0, 7.0, 5.0, 4.0])[travel], 2.0).round(), 0, 10).astype(np.int64)
    rows = zip(days.tolist(), travel.tolist(), content.tolist(), strict=True)
    return [{"days": day, "travel": TRAVEL[kind], "content": score} for day, kind, score in rows]


class SurveyPage:
    """Serves the page on a free port of this machine, with the specification that it reports under."""

    def __init__(self, collection: Collection) -> None:
        files = resources.files("deniable.cli.demo") / "survey_files"
        self.files = {f"/{name}": (kind, (files / name).read_bytes()) for name, kind in _PAGE_FILES.items()}
        self.files["/"] = self.files["/index.html"]
        self.files[f"/{_SPECIFICATION_NAME}"] = ("application/json", collection.to_json().encode())
        self.collector = ""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.origin = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def reporting_to(self, collector: str) -> str:
        """The address at which the page reports to a collector."""
        self.collector = collector
        return f"{self.origin}/?collector={quote(collector, safe='')}"

    def close(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()


def _handler(page: SurveyPage) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, content = page.files.get(self.path.partition("?")[0], ("", b""))
            policy = f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' {page.collector}"
            self.send_response(200 if kind else 404)
            self.send_header("Content-Security-Policy", f"{policy}; base-uri 'none'; form-action 'none'")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """The collector's log says what arrived."""

    return Handler
