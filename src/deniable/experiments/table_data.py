"""Tables of the experiments, drawn and real."""

from __future__ import annotations

ABOUT: dict[str, str] = {}
"""What a result says about each."""
