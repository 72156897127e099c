"""Who may upload for whom, and who may ask or operate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.types import Scope

from deniable.service.answers import Refused
from deniable.service.collector import Collector
from deniable.service.keys import Keys
from deniable.service.report_commits import MayUpload
from deniable.service.settings import is_loopback
from deniable.service.tokens import read_token
from deniable.tables.schema.pseudonyms import PSEUDONYM

VOUCHED_HEADER = "deniable-user"
EVERYBODY = "*"
_ONLY_ONCE = ("authorization", VOUCHED_HEADER, "content-type", "content-encoding")
_FORWARDED = frozenset(("forwarded", "x-forwarded-for", "x-real-ip", "via"))


def address_of(request: Request) -> str:
    """The address that a request came from; behind a proxy, the proxy's."""
    return request.client.host if request.client else ""


def upload_headers(scope: Scope) -> dict[str, str]:
    """The headers of an upload by name, in small letters. One that says who sends, or what, may be there only once:
    of two, a proxy in front may have checked the other one.
    """
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    if len(headers) < len(scope["headers"]):
        names = [name.decode("latin-1") for name, _ in scope["headers"]]
        if any(names.count(name) > 1 for name in _ONLY_ONCE):
            raise Refused(400, "headers", "A header that may be sent once was sent twice.")
    return headers


def uploader(collector: Collector, headers: Mapping[str, str], address: str) -> MayUpload | None:
    """For which users a request may upload; None for everybody. Names of headers are in small letters.

    a token                               → for the user that it was made for
    a listed proxy with Deniable-User     → for that user, or for everybody if it says *
    neither, where uploads are open       → for everybody
    neither                               → refused

    Under pseudonyms, whatever says which user sends would say whose a name is: a token, and a proxy that vouches for
    one user, are refused. A proxy that says * is a mixer.
    """
    presented, vouched = bearer(headers), headers.get(VOUCHED_HEADER)
    if collector.folder.collection.ids == PSEUDONYM and (presented is not None or vouched not in (None, EVERYBODY)):
        raise Refused(403, "pseudonym", "This upload says whose it is. Send pseudonyms without a token or a user.")
    if presented is not None:
        token = read_token(presented, collector.keys.keys().token_secrets, collector.now())
        if token is None:
            raise Refused(401, "token", "The token is invalid or has expired.")
        specification = collector.folder.collection.sha256
        return lambda uid: token.names(uid, specification)
    if vouched is not None:
        if not collector.settings.is_proxy(address):
            raise Refused(403, "not_a_proxy", "This address may not vouch for users.")
        return None if vouched == EVERYBODY else lambda uid: vouched == uid
    if collector.settings.needs_token:
        needed = "a proxy that is listed" if collector.folder.collection.ids == PSEUDONYM else "a token"
        raise Refused(401, "no_token", f"Uploads need {needed}.")
    if not collector.settings.open and not _FORWARDED.isdisjoint(headers):
        # The port is open because only this machine can reach it, and this came from elsewhere.
        raise Refused(401, "forwarded", "Forwarded uploads need a token, or a proxy that is listed.")
    return None


def require_scope(collector: Collector, request: Request, scope: str) -> None:
    """Refuse a request without a key of this scope."""
    presented, keys = bearer(request.headers), collector.keys.keys()
    if presented is None:
        raise Refused(401, "key", f"This needs a key with the scope {scope}.")
    refuse_expired(keys, presented, collector.now())
    if not keys.allows(presented, scope, collector.now()):
        raise Refused(403, "key", f"This needs a key with the scope {scope}.")


def refuse_expired(keys: Keys, presented: str, now: float) -> None:
    """Tell whoever shows a key that its time is over."""
    key = keys.holder(presented)
    if key is not None and key.has_expired(now):
        day = datetime.fromtimestamp(key.expires or 0, UTC).date().isoformat()
        raise Refused(403, "expired", f"The key {key.name} expired on {day}.")


def is_local(collector: Collector, request: Request) -> bool:
    """Whether a request comes from this machine itself, through no proxy that says so."""
    return (
        collector.settings.is_loopback and is_loopback(address_of(request)) and _FORWARDED.isdisjoint(request.headers)
    )


def bearer(headers: Mapping[str, str]) -> str | None:
    """What follows "Bearer" in the header Authorization."""
    given = headers.get("authorization")
    if given is None:
        return None
    kind, _, value = given.partition(" ")
    return value.strip() if kind.lower() == "bearer" and value.strip() else None
