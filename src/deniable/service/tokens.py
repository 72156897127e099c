"""Tokens that say which user may upload, until when.

    v1.(number of the secret).(expiry).(MAC)

    expiry   seconds since 1970, UTC
    MAC      HMAC-SHA256 by the secret, base64url without padding, over four texts with a line feed between them:
             "deniable token v1", the specification's SHA-256 in hexadecimal, the expiry, the user id

A service's own backend may make them with the same formula. Standard library only.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from typing import NamedTuple

TOKEN_VERSION = "v1"  # noqa: S105 - not a secret
LONGEST_TOKEN = 200
_MAC_PURPOSE = "deniable token v1"


class Token(NamedTuple):
    """A token that was taken apart; whether it is valid depends on the user."""

    secret: bytes
    expires: int
    mac: str

    def names(self, uid: str, specification: str) -> bool:
        """Whether the token was made for this user."""
        return hmac.compare_digest(self.mac, _mac(self.secret, uid, self.expires, specification))


def make_token(secrets: Mapping[str, bytes], uid: str, expires: int, specification: str) -> str:
    """A token for a user, with the newest secret.

    >>> token = make_token({"1": b"secret"}, "7", 2_000_000_000, "15ab88")
    >>> read_token(token, {"1": b"secret"}, now=1_900_000_000).names("7", "15ab88")
    True
    """
    number = max(secrets, key=int)
    return f"{TOKEN_VERSION}.{number}.{expires}.{_mac(secrets[number], uid, expires, specification)}"


def read_token(text: str, secrets: Mapping[str, bytes], now: float) -> Token | None:
    """The parts of a token; None if it is malformed, has expired, or its secret was revoked."""
    parts = text.split(".") if len(text) <= LONGEST_TOKEN and text.isascii() else []
    if len(parts) != 4 or parts[0] != TOKEN_VERSION or not parts[2].isdigit() or len(parts[2]) > 12:
        return None
    expires = int(parts[2])
    if parts[1] not in secrets or str(expires) != parts[2] or expires <= now:
        return None
    return Token(secrets[parts[1]], expires, parts[3])


def _mac(secret: bytes, uid: str, expires: int, specification: str) -> str:
    text = f"{_MAC_PURPOSE}\n{specification}\n{expires}\n{uid}"
    digest = hmac.digest(secret, text.encode("utf-8", "surrogatepass"), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
