"""Who may upload for whom, and who may ask or operate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

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
_FORWARDED = frozenset(("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"))


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
        return MayUpload(token.mac, lambda uid: token.names(uid, specification))
    if vouched is not None:
        if not collector.settings.is_proxy(address):
            raise Refused(403, "not_a_proxy", "This address may not vouch for users.")
        return None if vouched == EVERYBODY else MayUpload(vouched, lambda uid: vouched == uid)
    if collector.settings.needs_token:
        needed = "a proxy that is listed" if collector.folder.collection.ids == PSEUDONYM else "a token"
        raise Refused(401, "no_token", f"Uploads need {needed}.")
    if not collector.settings.open and not is_direct(headers):
        # The port is open because only this machine can reach it, and this came from elsewhere.
        words = "Uploads that were forwarded, or sent to another name than localhost, need a token, or a listed proxy."
        raise Refused(401, "forwarded", words)
    return None


def check_user_pace(collector: Collector, only_user: str | None, count: int, may_upload: MayUpload | None) -> None:
    """Refuse a request of, or about, a single user who sends too often. A relay that sends for many is not one."""
    if only_user is None and may_upload is not None:  # a token for one user that comes with reports of others
        only_user = may_upload.who
    if only_user is not None:
        wait_s = collector.users.wait_s(only_user, collector.elapsed(), count)
        if wait_s:
            raise Refused(429, "pace", "Too many reports of one user. Send them later.", wait_s=wait_s)


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
    return collector.settings.is_loopback and is_loopback(address_of(request)) and is_direct(request.headers)


def is_direct(headers: Mapping[str, str]) -> bool:
    """Whether a request to a loopback port was meant for this machine.

    A proxy may say that it forwards, or only leave the name under which it was asked. And a web page can make its own
    name lead to this machine after it was loaded; the browser then asks under that name.
    """
    return _FORWARDED.isdisjoint(headers) and names_this_machine(headers.get("host", ""))


@lru_cache(maxsize=64)
def names_this_machine(host: str) -> bool:
    """Whether a Host header names this machine and nothing else; without one, nobody was asked under another name.

    >>> [names_this_machine(host) for host in ("127.0.0.1:8710", "[::1]:8710", "localhost", "", "collector.example")]
    [True, True, True, True, False]
    """
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return name.lower() in ("", "localhost") or is_loopback(name)


def bearer(headers: Mapping[str, str]) -> str | None:
    """What follows "Bearer" in the header Authorization."""
    given = headers.get("authorization")
    if given is None:
        return None
    kind, _, value = given.partition(" ")
    return value.strip() if kind.lower() == "bearer" and value.strip() else None
