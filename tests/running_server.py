"""A collector's server in a thread, and requests as bytes."""

import socket
import threading
from contextlib import contextmanager

from asgi import REPORTS, SHOP
from deniable.service import serving
from deniable.service.collector import init_folder, open_collector
from deniable.service.settings import ServeSettings
from deniable.tables.reports.upload_format import BINARY_REPORTS


class Running:
    """A server in a thread of this process."""

    def __init__(self, folder, collection=SHOP, **settings):
        init_folder(collection, folder)
        chosen = ServeSettings(port=0, **settings)
        self.collector = open_collector(folder, chosen)
        self.collector.door.warm_up()
        self._listening = serving._listening(chosen)
        self.port = self._listening.getsockname()[1]
        self._server = serving._Server(self.collector, chosen)
        self._thread = threading.Thread(target=self._server.run, args=([self._listening],))
        self._thread.start()

    def close(self):
        self._server.should_exit = True
        self._thread.join(300)
        self._listening.close()
        self.collector.close()

    @property
    def stored(self):
        return sum(self.collector.store.summary().counts.values())

    @contextmanager
    def connected(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            yield connection

    def ask(self, *texts):
        """The answers to requests that are sent over one connection, one after another."""
        with self.connected() as connection:
            answers = []
            for text in texts:
                connection.sendall(text)
                answers.append(answer(connection))
        return answers


def answer(connection):
    """(status, headers without the date, body) of the next answer."""
    text = b""
    while b"\r\n\r\n" not in text:
        more = connection.recv(1)
        assert more, "the connection was closed"
        text += more
    head = text.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = b""
    while len(body) < int(headers["content-length"]):
        more = connection.recv(int(headers["content-length"]) - len(body))
        assert more, "the connection was closed"
        body += more
    headers.pop("date", None)
    return int(head[0].split()[1]), headers, body


def upload(body, headers="", media_type=BINARY_REPORTS):
    lines = f"host: localhost\r\ncontent-type: {media_type}\r\n{headers}content-length: {len(body)}\r\n"
    return f"POST {REPORTS} HTTP/1.1\r\n{lines}\r\n".encode() + body
