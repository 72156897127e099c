"""Everything that can be set about a collector, from a file, the environment and flags, checked before a port opens."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from deniable.checks import check_flag, check_integer, check_number
from deniable.errors import BadInput, InvalidParameter
from deniable.limits import MOST_STREAM_KEYS
from deniable.service.cross_origin import is_origin
from deniable.tables.specification.specification_files import read_file

ENVIRONMENT = "DENIABLE_SERVE_"
"""Followed by the name of a setting in capitals."""
MIB = 2**20
_PORTS = ("port", "mysql_port")


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The settings of a collector.

    >>> ServeSettings(host="0.0.0.0").needs_token
    True
    """

    host: str = "127.0.0.1"
    port: int = 8710
    mysql_port: int = 0
    """Where tools that speak MySQL connect; 0 is nowhere."""
    open: bool = False
    """Take uploads without a token. On a loopback address nobody needs one, unless a proxy passes requests on."""
    proxies: tuple[str, ...] = ()
    """Addresses or networks whose header `Deniable-User` vouches for a user."""
    origins: tuple[str, ...] = ()
    """Origins of pages that may report from a browser, such as https://shop.example."""
    certificate: str = ""
    private_key: str = ""
    """PEM files for TLS; without them, a proxy should bring it."""
    body_bytes: int = MIB
    unpacked_bytes: int = 8 * MIB
    """What a compressed body may unpack to."""
    reports_per_request: int = 10_000
    header_bytes: int = 16_384
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    connections: int = 1_000
    requests_per_minute: float = 6_000.0
    """Per address."""
    reports_per_minute: float = 600.0
    """Per user."""
    queued_reports: int = 50_000
    """Waiting for the disk. Beyond it, requests are answered with 429."""
    free_bytes: int = 256 * MIB
    """With less room on the disk, uploads are answered with 507."""
    values_per_request: int = 100_000
    queued_values: int = 1_000_000
    """Of every stream, waiting for the disk. Beyond it, requests are answered with 429."""
    keys_per_stream: int = MOST_STREAM_KEYS
    """Of a live stream with keys. A request that would bring more is answered with 422."""
    event_readers: int = 100
    """Following one stream at a time."""
    question_seconds: float = 60.0
    """How long an analyst's question may take, waiting included."""
    drain_seconds: float = 30.0
    """How long requests may go on after SIGTERM."""

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name), field.default)
        for proxy in self.proxies:
            _network(proxy)
        if not all(map(is_origin, self.origins)):
            repair = "Write https://shop.example: scheme, host and port of the page, in small letters."
            raise InvalidParameter("origins", "hold something that is not an origin", repair)
        if bool(self.certificate) != bool(self.private_key):
            raise InvalidParameter("certificate", "and private_key belong together", "Give both, or neither.")
        for path in (self.certificate, self.private_key):
            if path and not Path(path).is_file():
                raise InvalidParameter("certificate", "or private_key is not a file", "Check both paths.")

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine can reach the port."""
        return self.host == "localhost" or is_loopback(self.host)

    @property
    def needs_token(self) -> bool:
        """Whether an upload has to show a token, or a proxy to vouch for it."""
        return not (self.open or self.is_loopback)

    def is_proxy(self, address: str) -> bool:
        """Whether an address is one of the proxies."""
        try:
            return any(ipaddress.ip_address(address) in _network(proxy) for proxy in self.proxies)
        except ValueError:
            return False


@lru_cache(maxsize=1024)
def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("10.0.0.1"), is_loopback("collector.example")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise InvalidParameter(
            "proxies", "hold something that is not an address or a network", "Write 10.0.0.7 or 10.0.0.0/24."
        ) from None


def _check(name: str, value: object, default: object) -> None:
    """Refuse a value of another type than the default's."""
    repair = f"The default is {default!r}."
    if isinstance(default, bool):
        check_flag(name, value, repair)
    elif isinstance(default, int):
        check_integer(name, value, 0 if name in (*_PORTS, "free_bytes") else 1, 65_535 if name in _PORTS else 2**40)
    elif isinstance(default, float):
        check_number(name, value, "must be a positive number", repair, above=0, largest=1e9)
    elif isinstance(default, tuple):
        if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
            raise InvalidParameter(name, "must be a list of texts", repair)
    elif not isinstance(value, str):
        raise InvalidParameter(name, "must be a text", repair)


def load_settings(
    path: str | Path | None, flags: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> ServeSettings:
    """The settings of a file, overridden by the environment, overridden by flags that are not None."""
    known = {field.name: field.default for field in fields(ServeSettings)}
    chosen = read_file(path, _entries) if path is not None else {}
    if unknown := sorted(set(chosen) - set(known)):
        raise BadInput(
            f"{unknown[0][:40]!r} is not a setting of serve. Nothing was started. Use {', '.join(sorted(known))}."
        )
    for name, text in (os.environ if environment is None else environment).items():
        if name.startswith(ENVIRONMENT):
            setting = name.removeprefix(ENVIRONMENT).lower()
            if setting not in known:
                raise BadInput(f"{name[:60]!r} names no setting of serve. Nothing was started. Unset it.")
            chosen[setting] = _from_text(name, text, known[setting])
    chosen |= {name: value for name, value in flags.items() if value is not None}
    for name, default in known.items():
        if isinstance(default, tuple) and isinstance(chosen.get(name), list):
            chosen[name] = tuple(chosen[name])
    for name, default in known.items():
        if isinstance(default, float) and isinstance(chosen.get(name), int) and not isinstance(chosen[name], bool):
            chosen[name] = float(chosen[name])
    return ServeSettings(**chosen)


def _entries(entries: Any) -> dict[str, Any]:
    if not isinstance(entries, dict):
        raise BadInput("the settings are not a table of names and values. Nothing was started. Write NAME = VALUE.")
    return dict(entries)


def _from_text(name: str, text: str, default: object) -> Any:
    """A setting from the environment, where everything is text."""
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if isinstance(default, bool):
        if text.lower() not in ("1", "true", "yes", "0", "false", "no"):
            raise BadInput(f"{name!r} must be true or false. Nothing was started. Change it.")
        return text.lower() in ("1", "true", "yes")
    try:
        return int(text) if isinstance(default, int) else float(text) if isinstance(default, float) else text
    except ValueError:
        raise BadInput(f"{name!r} must be a number. Nothing was started. Change it.") from None
