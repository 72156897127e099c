"""What a collector whose reports travel under pseudonyms must not do: learn who sends, or answer while it mixes."""

from __future__ import annotations

from deniable.engines.collecting.stored_reports import CollectorFolder
from deniable.errors import InvalidParameter, QueryRefused
from deniable.service.settings import ServeSettings
from deniable.stores.collector.upload import CollectorStore
from deniable.tables.schema.pseudonyms import PSEUDONYM


def check_pseudonym_uploads(folder: CollectorFolder, settings: ServeSettings) -> None:
    """Refuse settings under which nobody could upload, or only somebody who says who she is."""
    if folder.collection.ids == PSEUDONYM and settings.needs_token and not settings.proxies:
        raise InvalidParameter(
            "open",
            "is not set, and tokens name their users: under pseudonyms nobody could upload",
            "List the mixer's address in proxies, or take uploads from everybody with --open.",
        )


def check_may_ask(folder: CollectorFolder, store: CollectorStore) -> None:
    """Refuse questions while bundles arrive: two answers, a bundle apart, show what that bundle says."""
    if folder.collection.ids == PSEUDONYM and any(store.summary().rounds.values()):
        raise QueryRefused(
            "reports under pseudonyms are answered about once they are shuffled, and this collection still takes some",
            "Run deniable seal, and ask the sealed files.",
        )
