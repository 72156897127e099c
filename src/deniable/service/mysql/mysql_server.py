"""Who may connect: a key of the scope ask, by its name and with itself as password; from other machines with TLS.

The server runs in a thread with an event loop of its own, so that slow tools do not delay uploads.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mysql_mimic.auth import IdentityProvider, NativePasswordAuthPlugin, User
from mysql_mimic.connection import Connection
from mysql_mimic.constants import KillKind
from mysql_mimic.control import Control, TooManyConnections
from mysql_mimic.errors import ErrorCode

from deniable.errors import Failure, InvalidParameter
from deniable.queries.answers.catalogue import catalogue
from deniable.service.collector import Clock, Collector
from deniable.service.keys import KeyFile
from deniable.service.logs import log
from deniable.service.mysql.information_schema import InformationSchema
from deniable.service.mysql.packet_stream import BoundedReader, ConnectionRefused, PacketStream
from deniable.service.mysql.session import AskingSession

MOST_CONNECTIONS = 100
_ASK = "ask"


class Connections(Control):  # type: ignore[misc] # an extra
    """The connections that are open, by number."""

    def __init__(self) -> None:
        self._open: dict[int, Connection] = {}
        self._last = 0

    async def add(self, connection: Connection) -> int:
        """Number a connection."""
        if len(self._open) >= MOST_CONNECTIONS:
            raise TooManyConnections
        self._last = self._last % 2**31 + 1
        self._open[self._last] = connection
        return self._last

    async def remove(self, connection_id: int) -> None:
        """Forget a connection."""
        self._open.pop(connection_id, None)

    async def kill(self, connection_id: int, kind: KillKind = KillKind.CONNECTION) -> None:
        """End a connection, or what it asks."""
        if connection_id in self._open:
            self._open[connection_id].kill(kind)

    def user_of(self, connection_id: int) -> str | None:
        """Whose connection it is."""
        connection = self._open.get(connection_id)
        return None if connection is None else connection.session.username

    def of_user(self, username: str | None) -> list[int]:
        """The numbers of somebody's connections."""
        return [number for number, connection in self._open.items() if connection.session.username == username]


class KeyHolders(IdentityProvider):  # type: ignore[misc] # an extra
    """Users are keys. Somebody unknown is asked for a password, too, and it is never right."""

    def __init__(self, keys: KeyFile, now: Clock) -> None:
        self._keys, self._now = keys, now

    def password_hash(self, name: str | None) -> str | None:
        """What MySQL's handshake compares with: the twice hashed key."""
        for key in self._keys.keys().keys:
            if key.name == name and key.scope == _ASK and key.mysql and not key.has_expired(self._now()):
                return key.mysql
        return None

    async def get_user(self, username: str) -> User:
        """A key by its name."""
        expected = self.password_hash(username) or secrets.token_hex(20)
        return User(name=username, auth_string=expected, auth_plugin=NativePasswordAuthPlugin.name)


class AskingConnection(Connection):  # type: ignore[misc] # an extra
    """A connection that ends unless its first words are right, and whose answers count their notes as warnings."""

    needs_tls = False
    greeting_s = 10.0

    async def connection_phase(self) -> None:
        """Who it is, within a few seconds."""
        async with asyncio.timeout(self.greeting_s):
            await super().connection_phase()

    async def authenticate(self, *given: Any, **named: Any) -> None:
        """Let a key in. mysql-mimic would go on after a wrong password; this does not."""
        self.session.username = None
        if self.needs_tls and self.stream.writer.get_extra_info("ssl_object") is None:
            words = "Connections from other machines need TLS."
            await self.stream.write(self.error(msg=words, code=ErrorCode.ACCESS_DENIED_ERROR))
            raise ConnectionRefused
        await super().authenticate(*given, **named)
        if self.session.username is None:
            raise ConnectionRefused

    async def handle_change_user(self, data: bytes) -> None:
        """A second handshake; if it fails, the connection ends."""
        try:
            await super().handle_change_user(data)
        except ConnectionRefused:
            self.kill(KillKind.CONNECTION)
            await asyncio.sleep(0)

    def ok(self, **given: Any) -> bytes:
        """The end of an answer, with the number of its notes."""
        return bytes(super().ok(**{**given, "warnings": len(self.session.notes)}))

    def eof(self, **given: Any) -> bytes:
        """The same for older clients."""
        return bytes(super().eof(**{**given, "warnings": len(self.session.notes)}))

    def com_stmt_prepare_response(self, statement: Any) -> Iterator[bytes]:
        """A prepared statement. Clients that need no EOF would take one for the next answer."""
        packets = list(super().com_stmt_prepare_response(statement))
        yield from packets[:-1] if statement.num_params and self.deprecate_eof() else packets

    def ok_or_eof(self, **given: Any) -> bytes:
        """The end of rows. MariaDB's JDBC driver takes a number of rows here for the length of a text."""
        return bytes(super().ok_or_eof(**{**given, "affected_rows": 0}))


class MysqlServer:
    """Listens on a port until it is closed."""

    def __init__(self, collector: Collector, port: int) -> None:
        self._collector, self._settings = collector, collector.settings
        self._wanted_port = port
        check_encryption(self._settings)
        self._tls: ssl.SSLContext | None = None
        if self._settings.certificate:
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(self._settings.certificate, self._settings.private_key)
        self._holders, self._control = KeyHolders(collector.keys, lambda: collector.now()), Connections()
        self._information = InformationSchema(collector.name, catalogue(collector.folder.collection))
        self._loop = asyncio.SelectorEventLoop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mysql", daemon=True)
        self.port = 0

    def start(self) -> None:
        """Open the port."""
        self._thread.start()
        opened = asyncio.run_coroutine_threadsafe(self._listen(), self._loop)
        try:
            self._listening = opened.result()
        except OSError as problem:
            self._stop_loop()
            reason = (problem.strerror or "unknown").lower()
            raise Failure(
                f"port {self._wanted_port} for MySQL cannot be opened ({reason}). Nothing was started. "
                "Choose another with --mysql, or end the program that has it."
            ) from None
        self.port = self._listening.sockets[0].getsockname()[1]
        log("mysql started", tls=self._tls is not None)

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(self._protocol, self._settings.host, self._wanted_port)

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        reader = BoundedReader(self._settings.body_bytes)
        return asyncio.StreamReaderProtocol(reader, self._connected)

    def _connected(self, reader: Any, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: BoundedReader, writer: asyncio.StreamWriter) -> None:
        session = AskingSession(self._collector, self._information, self._may_ask)
        connection = AskingConnection(
            stream=PacketStream(reader, writer),
            session=session,
            control=self._control,
            identity_provider=self._holders,
            ssl=self._tls,
        )
        connection.needs_tls = not self._settings.is_loopback
        connection.greeting_s = self._settings.header_seconds
        number = 0
        try:
            number = connection.connection_id = await self._control.add(connection)
            await connection.start()
        except TooManyConnections:
            words = "Too many connections. Try again later."
            await connection.stream.write(connection.error(msg=words, code=ErrorCode.CON_COUNT_ERROR))
        except (ConnectionRefused, OSError, TimeoutError, asyncio.IncompleteReadError):
            log("mysql connection refused")
        except Exception as problem:
            log("mysql connection failed", problem=problem)
        finally:
            await self._control.remove(number)
            with suppress(OSError, RuntimeError):
                writer.close()

    def _may_ask(self, name: str | None) -> bool:
        """Whether a key that was let in is still there; a server that runs sees a key's end at once."""
        return self._holders.password_hash(name) is not None

    def close(self) -> None:
        """Close the port and every connection."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=10)
            self._stop_loop()

    async def _end(self) -> None:
        self._listening.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def check_encryption(settings: Any) -> None:
    """Refuse to listen beyond this machine without TLS."""
    if not settings.is_loopback and not settings.certificate:
        raise InvalidParameter(
            "mysql_port", "needs TLS on an address that other machines reach", "Set certificate and private_key."
        )
