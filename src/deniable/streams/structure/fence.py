"""A fence between copies of one stream: of all copies of a state on this machine, only one goes on.

Two copies that both go on would publish the same noise on different values, and the difference would be the data. So a
stream has a random name, and whenever it goes on after a state was handed out, a new generation begins. Its number is
one higher, and its mark is random. The newest generation is noted in a small file per stream, in a private folder of
the user. A copy goes on only if the newest generation is still its own. It looks that up once, at its first value.
Copies on other machines are not noticed.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import asdict, dataclass, field
from typing import Any

from deniable.errors import Failure, RandomnessFault
from deniable.files import LockedFile
from deniable.private_folders import private_folder
from deniable.sealing import damaged

_WAIT_S = 10.0


def _token() -> str:
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Generation:
    """What one copy of a stream publishes between two states that somebody went on from."""

    stream: str = field(default_factory=_token)
    number: int = 0
    mark: str = field(default_factory=_token)

    def next(self) -> Generation:
        """The generation after this one, for whoever begins it."""
        return Generation(self.stream, self.number + 1)


class Fence:
    """The generation of a publisher, and whether it may begin the next."""

    def __init__(self, generation: Generation | None = None, *, noted: Generation | None = None) -> None:
        self._generation = Generation() if generation is None else generation
        self._noted = self._generation if noted is None else noted  # what nobody else may have changed

    def state(self) -> dict[str, Any]:
        """The generation that a state belongs to, as JSON."""
        return asdict(self._generation)

    @classmethod
    def restore(cls, state: Any, *, replay: bool) -> Fence:
        """Go on from a state, if nobody else has. `replay`: the generation after it may have begun, and is repeated.

        Only a store may repeat: it has the values of that generation in its log, and watches over its own copies.
        Nothing is noted yet, because a run that ends before its first value has not gone on.
        """
        try:
            generation = Generation(**state)
        except TypeError:
            raise damaged("state") from None
        with _note(generation) as file:
            noted = _read(file)
        if replay and noted is not None and noted.number == generation.number + 1:
            return cls(generation, noted=noted)
        made = cls(generation)
        made._check(noted)
        return made

    def begin(self) -> None:
        """Begin the next generation: from now on nobody else can go on from a state of this one."""
        with _note(self._generation) as file:
            self._check(_read(file))
            following = self._generation.next()
            # Not waited for: a process that is killed leaves it behind, and waiting would take longer than publishing.
            file.write(f"{following.number} {following.mark}\n".encode(), durable=False)
        self._generation = self._noted = following

    def _check(self, noted: Generation | None) -> None:
        if noted is not None and noted.number >= self._generation.number and noted != self._noted:
            raise RandomnessFault(
                "this stream was continued from here already, by another publisher on this machine or after a newer "
                "state; going on would publish the same noise with other values. Nothing was published. Go on from "
                "the newest state, or start a new stream."
            )


def copy_refused() -> RandomnessFault:
    """What a publisher says to `copy` and `pickle`."""
    return RandomnessFault(
        "a publisher cannot be copied or pickled: two would add the same noise to different values. "
        "Nothing was copied. Move it with state() and restore()."
    )


def _read(file: LockedFile) -> Generation | None:
    content = file.read()
    if not content:  # a power cut may leave a name without its content, which nobody waited for
        return None
    if (match := re.fullmatch(rb"(\d{1,18}) ([0-9a-f]{32})\n", content)) is None:
        raise Failure(
            f"the note {str(file.path)!r} is damaged, so who has gone on with this stream is not known. Nothing was "
            "published. Remove it if you are sure that the newest state is the one at hand."
        )
    return Generation(file.path.name, int(match[1]), match[2].decode())


def _note(generation: Generation) -> LockedFile:
    if not re.fullmatch("[0-9a-f]{32}", str(generation.stream)) or type(generation.number) is not int:
        raise damaged("state")
    folder = private_folder("streams", "note who goes on with this stream", "Nothing was published")
    return LockedFile(folder / generation.stream, "the note", cost="Nothing was published", wait_s=_WAIT_S)
