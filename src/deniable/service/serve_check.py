"""`deniable serve --check`: everything that would keep a collector from starting, looked at without starting it.

A server may run on the folder meanwhile, so the port itself is not opened.
"""

from __future__ import annotations

import socket
import ssl

from deniable.engines.collecting.stored_reports import CollectorFolder
from deniable.errors import Failure, InvalidParameter
from deniable.service.pseudonym_rules import check_pseudonym_uploads
from deniable.service.settings import ServeSettings
from deniable.stores.collector.stream_log import StreamLog, has_streams
from deniable.stores.live.folder_files import live_stores
from deniable.stores.live.stored_stream import StoredStream


def check_serving(folder: CollectorFolder, settings: ServeSettings) -> None:
    """Refuse what `serve` would refuse, and what would fail at the first request."""
    if settings.mysql_port and settings.mysql_port == settings.port:
        raise InvalidParameter("mysql_port", "is the port of HTTP as well", "Choose another.")
    check_pseudonym_uploads(folder, settings)
    _check_certificate(settings)
    _check_host(settings.host)
    if has_streams(folder.path):
        StreamLog(folder.path, simulation=folder.simulation).close()
    for path in live_stores(folder.path):
        StoredStream(path)


def _check_certificate(settings: ServeSettings) -> None:
    if settings.certificate:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.certificate, settings.private_key)
        except (OSError, ValueError):
            problem = "and private_key do not belong together, or are not PEM files without a password"
            raise InvalidParameter("certificate", problem, "Check both files.") from None


def _check_host(host: str) -> None:
    """Whether the address is one of this machine's; any free port will do to find out."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.bind((host, 0))
    except OSError:
        raise Failure(
            f"the address {host!r} cannot be listened on. Nothing was started. Use one of this machine's, or 0.0.0.0."
        ) from None
