"""stdin, stdout and stderr in any state: closed, full, without a reader, in ASCII. Set right before a command begins.

A terminal that cannot show ε must not make finished work fail, and an unread stderr must not stop anything.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from typing import Any

ASCII_SPELLING = {
    "ε": "epsilon",
    "θ": "theta",
    "δ": "delta",
    "±": "+/-",
    "…": "...",
    "≥": ">=",
    "≤": "<=",
    "×": "x",
    "−": "-",
    "∞": "inf",
    "⇅": "^v",
    "’": "'",
    "²": "^2",
}
"""How symbols of messages and tables are spelled if they cannot be written."""
_PLAIN_TEXT, _ASCII = "deniable_plain_text", "deniable_ascii"


def prepare() -> None:
    """Make the three streams usable, whatever the caller did to them."""
    codecs.register_error(_PLAIN_TEXT, _in_plain_text)
    codecs.register(lambda name: _ascii_codec() if name == _ASCII else None)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # it was closed: no file that we open may get its number
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - stays open
        elif name == "stdin" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="surrogateescape")  # odd bytes are refused where they stand
        elif stream is getattr(sys, f"__{name}__") and isinstance(stream, io.TextIOWrapper):
            _reconfigure(stream)
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _forgiving(sys.stderr)


def _reconfigure(stream: io.TextIOWrapper) -> None:
    # click takes ASCII for a mistake and writes UTF-8 then; under another name it writes ASCII.
    ascii_only = codecs.lookup(stream.encoding).name == "ascii"
    stream.reconfigure(encoding=_ASCII if ascii_only else stream.encoding, errors=_PLAIN_TEXT)


def _ascii_codec() -> codecs.CodecInfo:
    plain = codecs.lookup("ascii")
    return codecs.CodecInfo(
        plain.encode, plain.decode, plain.streamreader, plain.streamwriter,
        plain.incrementalencoder, plain.incrementaldecoder, _ASCII,
    )  # fmt: skip


def _in_plain_text(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    text = problem.object[problem.start : problem.end]
    shown = (ASCII_SPELLING.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in text)
    return "".join(shown), problem.end


def _forgiving(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """The same stream, which drops what cannot be written: a message on stderr must not end the work."""
    buffer = io.BufferedWriter(_Forgiving(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(buffer, stream.encoding, stream.errors, line_buffering=True)


class _Forgiving(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def printable(text: str) -> str:
    """A text as stdout will show it: symbols that it cannot write are spelled out. Columns are measured on this."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        return text.encode(encoding, _PLAIN_TEXT).decode(encoding)
    except LookupError:  # `prepare` was not called: Python decides
        return text


def unicode_output() -> bool:
    """Whether stdout can show every character."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"


def settle() -> OSError | None:
    """Write what is buffered for stdout; return the error if that fails, so that the interpreter ends quietly."""
    try:
        sys.stdout.flush()
    except OSError as problem:
        discard()
        return problem
    except ValueError:  # closed: its reader has left
        pass
    return None


def discard() -> None:
    """Drop what is buffered for stdout, and everything that follows."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
