"""stdin, stdout and stderr as they may be: closed, full, without a reader, in ASCII. Set right before a command begins.

Nothing may fail after the work was done because a terminal cannot show ε, and nothing may stop because nobody reads
stderr.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from typing import Any

PLAIN = {
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
"""What stands for the symbols of messages and tables where they cannot be written."""
_PLAIN_TEXT, _ASCII = "deniable_plain_text", "deniable_ascii"


def prepare() -> None:
    """Make the three streams usable, whatever the caller did to them."""
    codecs.register_error(_PLAIN_TEXT, _in_plain_text)
    codecs.register(lambda name: _ascii_codec() if name == _ASCII else None)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # it was closed: no file of ours may get its number
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
    shown = (PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in text)
    return "".join(shown), problem.end


def _forgiving(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """The same stream, which drops what cannot be written: words on stderr are not worth the work."""
    buffer = io.BufferedWriter(_Forgiving(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(buffer, stream.encoding, stream.errors, line_buffering=True)


class _Forgiving(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def unicode_output() -> bool:
    """Whether stdout can show every character."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"


def settle() -> OSError | None:
    """Write what waits in stdout. Where that fails, say why, and let the interpreter end in peace."""
    try:
        sys.stdout.flush()
    except OSError as problem:
        discard()
        return problem
    except ValueError:  # closed: its reader has left
        pass
    return None


def discard() -> None:
    """Nothing more will reach stdout; what waits there is dropped."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
