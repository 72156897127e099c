"""The secret of a stream on Spark: read where it is needed, never sent.

It stands in no plan, no task and no log: what travels is a path, or a function that fetches it, and a public name by
which every worker checks that it has the same secret as the driver.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.addresses import KEY_BYTES
from deniable.errors import Failure, InvalidParameter
from deniable.streams.central.lent_keys import name_of_secret
from deniable.streams.central.settings import Settings

COMMAND_FOR_NEW = "openssl rand -hex 32"
"""Prints a new secret."""
UNPUBLISHED = "Nothing was published"


@dataclass(frozen=True, slots=True)
class StreamSecret:
    """Where a secret is: the path of a file with 64 hexadecimal digits, or a function that returns 32 bytes."""

    origin: str | Callable[[], bytes]

    @classmethod
    def of(cls, given: Any) -> StreamSecret:
        """From what a caller gave; bytes are refused, because they would travel."""
        if isinstance(given, Path):
            return cls(str(given))
        if isinstance(given, str) or callable(given):
            return cls(given)
        raise InvalidParameter(
            "secret",
            "must be the path of a file, or a function that fetches it: what is passed here travels to executors",
            f"Run {COMMAND_FOR_NEW} > stream.key, put the file on every machine, and pass its path.",
        )

    def read(self) -> bytes:
        """The secret itself."""
        if not isinstance(self.origin, str):
            secret = self.origin()
            if not isinstance(secret, bytes) or len(secret) != KEY_BYTES:
                raise Failure(
                    f"the function that fetches the secret must return {KEY_BYTES} bytes. {UNPUBLISHED}. Mend it."
                )
            return secret
        try:
            text = Path(self.origin).read_text(encoding="ascii").strip()
            secret = bytes.fromhex(text)
        except OSError as problem:
            raise Failure(
                f"the secret cannot be read on this machine ({(problem.strerror or '?').lower()}). {UNPUBLISHED}. "
                "Put its file at the same path on the driver and on all executors."
            ) from None
        except ValueError:
            secret = b""
        if len(secret) != KEY_BYTES:
            raise Failure(
                f"the file of the secret must hold 64 hexadecimal digits. {UNPUBLISHED}. Run {COMMAND_FOR_NEW}."
            )
        return secret

    def read_as(self, name: str, settings: Settings) -> bytes:
        """The secret, if it is the one that the driver has."""
        secret = self.read()
        if name_of_secret(secret, settings) != name:
            raise Failure(
                f"this machine has another secret than the driver. {UNPUBLISHED}. Put the same secret on all machines."
            )
        return secret


def check_absent(secret: bytes, travelling: bytes) -> None:
    """Refuse if what travels to executors holds the secret: a function may carry it along."""
    forms = (secret, secret.hex().encode(), secret.hex().upper().encode(), base64.b64encode(secret).rstrip(b"="))
    if any(form in travelling for form in forms):
        raise InvalidParameter(
            "secret",
            "is a function that carries the secret with it, into plans and tasks",
            "Let the function fetch it where it runs: from a file, the environment or a key service.",
        )
