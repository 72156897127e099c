"""Who may: keys of analysts and operators, and the secrets that tokens of users are made with, in one private file.

A key is 256 random bits; the file holds its SHA-256 only. It is valid until it is revoked or until its time is over.
A token's secret has to be there in clear, because the server
computes tokens again: whoever reads the file can write tokens, so it has mode 0600.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from deniable.errors import BadInput, Failure
from deniable.files import LockedFile
from deniable.sealing import sealed, unsealed
from deniable.tables.schema.names import check_name

KEYS_FILE = "keys.json"
KEYS_FORMAT = "deniable keys 1"
EXPIRING_FORMAT = "deniable keys 2"
"""With keys that expire: programs that do not know the time limit must not read such a file."""
SCOPES = ("ask", "operate", "publish")
KEY_PREFIX = "dnk_"
_KEYS_SEAL_KEY = b"keys"  # the seal is for accidents


@dataclass(frozen=True, slots=True)
class NamedKey:
    """One key: whose it is, what it is for, and its hash."""

    name: str
    scope: str
    sha256: str
    mysql: str = ""
    """SHA-1 of its SHA-1, which MySQL's handshake compares; empty for keys made before there was one."""
    expires: int | None = None
    """Seconds since 1970 from which on it is not valid; None for a key without a time limit."""

    def has_expired(self, now: float) -> bool:
        """Whether its time is over."""
        return self.expires is not None and now >= self.expires


@dataclass(frozen=True, slots=True)
class Keys:
    """Everything in the file."""

    keys: tuple[NamedKey, ...] = ()
    token_secrets: dict[str, bytes] = field(default_factory=dict, repr=False)
    """By number; new tokens are made with the last."""

    def holder(self, presented: str) -> NamedKey | None:
        """Which key somebody shows, also if it has expired. Every key is compared, each in constant time."""
        digest = _hashed(presented)
        shown = None
        for key in self.keys:
            if hmac.compare_digest(key.sha256, digest):
                shown = key
        return shown

    def allows(self, presented: str, scope: str, now: float) -> bool:
        """Whether a key has a scope, and has not expired."""
        key = self.holder(presented)
        return key is not None and key.scope == scope and not key.has_expired(now)

    def with_key(self, name: str, scope: str, expires: int | None = None) -> tuple[Keys, str]:
        """The keys with one more, and that key: it is shown once and stored nowhere."""
        check_name("key", name)
        if scope not in SCOPES:
            raise BadInput(f"the scope is unknown. No key was made. Use one of {', '.join(SCOPES)}.")
        if any(key.name == name for key in self.keys):
            raise BadInput(f"there is a key {name!r} already. No key was made. Revoke it first, or use another name.")
        text = KEY_PREFIX + secrets.token_urlsafe(32)
        made = NamedKey(name, scope, _hashed(text), _hashed_twice(text), expires)
        return replace(self, keys=(*self.keys, made)), text

    def without(self, name: str) -> Keys:
        """The keys without one, or without a token secret (`tokens-1`)."""
        number = name.removeprefix("tokens-")
        if number in self.token_secrets and number != name:
            kept = {other: secret for other, secret in self.token_secrets.items() if other != number}
            if not kept:
                raise BadInput("this is the only secret for tokens. Nothing was changed. Run: deniable key rotate")
            return replace(self, token_secrets=kept)
        if not any(key.name == name for key in self.keys):
            raise BadInput(f"there is no key {name[:40]!r}. Nothing was changed. See: deniable key list")
        return replace(self, keys=tuple(key for key in self.keys if key.name != name))

    def with_new_secret(self) -> Keys:
        """The keys with a new secret for tokens. Tokens made with older ones stay valid until those are revoked."""
        number = str(max(map(int, self.token_secrets), default=0) + 1)
        return replace(self, token_secrets={**self.token_secrets, number: secrets.token_bytes(32)})


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _hashed_twice(key: str) -> str:
    """What MySQL's native passwords keep. A key has 256 random bits, so nobody finds it from this."""
    once = hashlib.sha1(key.encode(), usedforsecurity=False).digest()
    return hashlib.sha1(once, usedforsecurity=False).hexdigest()


class KeyFile:
    """The file of keys in a collector's folder. Changes are seen by a server that runs."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / KEYS_FILE
        self._read: tuple[tuple[int, int, int], Keys] | None = None

    def create(self) -> None:
        """Make the file, with one secret for tokens."""
        self.change(lambda _: Keys().with_new_secret(), new=True)

    def keys(self) -> Keys:
        """What is in the file now. It is read again only after it was replaced."""
        try:
            about = self.path.stat()
        except OSError:
            raise _unreadable() from None
        stamp = (about.st_ino, about.st_mtime_ns, about.st_size)
        if self._read is None or self._read[0] != stamp:
            if about.st_mode & 0o077:
                raise Failure(f"{KEYS_FILE} can be read by others. Nothing was done. Run: chmod 600 {KEYS_FILE}")
            self._read = (stamp, _parsed(self.path.read_bytes()))
        return self._read[1]

    def change(self, how: Any, *, new: bool = False) -> Keys:
        """Replace the keys by what `how` makes of them, whole or not at all."""
        with LockedFile(self.path, "the file of keys", cost="No key was changed", wait_s=10.0) as file:
            content = file.read()
            if (content is None) != new:
                raise _unreadable() if content is None else BadInput("there are keys already. Nothing was changed.")
            keys: Keys = how(_parsed(content) if content is not None else Keys())
            file.write(_written(keys))
        return keys


def _written(keys: Keys) -> bytes:
    expiring = any(key.expires is not None for key in keys.keys)
    content = {
        "format": EXPIRING_FORMAT if expiring else KEYS_FORMAT,
        "keys": [
            {name: value for name, value in asdict(key).items() if name != "expires" or expiring} for key in keys.keys
        ],
        "token_secrets": {number: secret.hex() for number, secret in keys.token_secrets.items()},
    }
    return json.dumps(sealed(content, _KEYS_SEAL_KEY), indent=1).encode()


def _parsed(content: bytes) -> Keys:
    try:
        entries = unsealed(json.loads(content), _KEYS_SEAL_KEY, "file of keys")
        if entries["format"] not in (KEYS_FORMAT, EXPIRING_FORMAT):
            raise _unreadable()
        named = tuple(_named(entry, expiring=entries["format"] == EXPIRING_FORMAT) for entry in entries["keys"])
        return Keys(named, {number: bytes.fromhex(text) for number, text in entries["token_secrets"].items()})
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _unreadable() from None


def _named(entry: dict[str, Any], *, expiring: bool) -> NamedKey:
    expires = entry["expires"] if expiring else None
    if expires is not None and type(expires) is not int:
        raise _unreadable()
    return NamedKey(entry["name"], entry["scope"], entry["sha256"], entry.get("mysql", ""), expires)


def _unreadable() -> Failure:
    return Failure(
        f"{KEYS_FILE} is missing, damaged or of another version. Nothing was done. Restore it from a copy; without it "
        "every token and key is invalid."
    )
