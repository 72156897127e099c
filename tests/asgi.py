"""Requests to a collector in this process, without a port."""

import asyncio
import json
from dataclasses import dataclass, field
from functools import cache

import deniable as dn
from deniable.service.application import application
from deniable.service.collector import init_folder, open_collector
from deniable.service.settings import ServeSettings
from deniable.tables.reports.upload_format import BINARY_REPORTS, binary_body

SHOP = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95)),
    dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500), city=dn.Public()),
    epsilon=2.0,
    coins="assigned",
    name="shop",
)
REPORTS = "/v1/collections/shop/reports"


@dataclass
class Answer:
    status: int = 0
    headers: dict = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self):
        return json.loads(self.body)


async def request(app, method, path, body=b"", headers=(), client="127.0.0.1", parts=None, leaves=False, query=""):
    """One request. `parts` are the pieces of the body; None among them means that the client leaves, and as the last
    one after the whole body, that it leaves before the answer."""
    pieces = [body] if parts is None else list(parts)
    whole = pieces[:-1] if pieces[1:] == [None] and leaves else pieces
    messages = [
        {"type": "http.disconnect"} if piece is None
        else {"type": "http.request", "body": piece, "more_body": index < len(whole) - 1}
        for index, piece in enumerate(pieces)
    ]  # fmt: skip
    answer = Answer()

    async def receive():
        return messages.pop(0) if messages else await asyncio.Event().wait()

    async def send(message):
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    scope = {
        "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": query.encode(), "root_path": "", "scheme": "http",
        "client": (client, 50_000), "server": ("127.0.0.1", 80),
        "headers": [(name.lower().encode(), value.encode()) for name, value in dict(headers).items()],
    }  # fmt: skip
    await app(scope, receive, send)
    return answer


class Served:
    """A collector over a folder, with `get` and `post`."""

    def __init__(self, folder, collection=SHOP, **settings):
        if not folder.exists():
            init_folder(collection, folder)
        self.folder = folder
        self.collector = open_collector(folder, ServeSettings(**settings))
        self.app = application(self.collector)

    def get(self, path, **more):
        return asyncio.run(request(self.app, "GET", path, **more))

    def post(self, body, path=REPORTS, media_type=BINARY_REPORTS, headers=(), **more):
        return asyncio.run(request(self.app, "POST", path, body, {"content-type": media_type, **dict(headers)}, **more))

    def send(self, *reports, **more):
        """Upload (user, bytes) pairs."""
        return self.post(binary_body(list(reports)), **more)

    def close(self):
        self.collector.close()


def new_report(uid, age=31):
    return SHOP.client(user=uid).report("users", {"age": age}).to_bytes()


report_of = cache(new_report)
"""What a device with a memory sends: the same bytes for a user every time."""
