"""Simulations: what was made with simulation=True says so wherever it goes, and never mixes with a release.

Anyone who knows the seed can repeat a seeded source, and an infinite ε adds no noise. Both are useful in tests and
experiments on data that need no protection. Neither protects anybody. Standard library only, for devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from deniable.errors import InvalidData, SimulationOnly

NOTE = "simulation: no privacy"
"""What every answer from a simulation says."""

MARK, MARKED = b"deniable.simulation", b"true"
"""The entry of a file's metadata that marks a simulation. A release has no such entry."""

LARGEST_RELEASE_EPSILON = 64.0
"""Above it, a release protects nobody: an answer other than the truth has a chance below e^-64 · cells."""


def has_noise(epsilon: float) -> bool:
    """Whether an ε leaves room for doubt: infinity does not, and numbers above 64 do so only on paper.

    >>> has_noise(2.0), has_noise(64.5), has_noise(float("inf"))
    (True, False, False)
    """
    return epsilon <= LARGEST_RELEASE_EPSILON


def check_noise(epsilon: float, *, simulation: bool) -> None:
    """Refuse an ε without noise unless the caller says that this is a simulation.

    >>> check_noise(float("inf"), simulation=True)
    """
    if not simulation and not has_noise(epsilon):
        raise SimulationOnly(
            f"ε = {epsilon:g} lets the data out as they are",
            f"Use an ε of at most {LARGEST_RELEASE_EPSILON:g} (0.1 to 10 protect people)",
        )


@dataclass(frozen=True, slots=True)
class SimulatedDraws:
    """Draws of one device in a simulation. What is made with them is marked.

    >>> SimulatedDraws(lambda bound: bound - 1)(6)
    5
    """

    draw: Callable[[int], int]
    simulation: ClassVar[bool] = True

    def __call__(self, bound: int) -> int:
        """One draw below the bound."""
        return self.draw(bound)


def is_simulated(draws: object) -> bool:
    """Whether a source, or the draws of one device, are marked as being for a simulation."""
    return bool(getattr(draws, "simulation", False))


def mark(*, simulation: bool) -> dict[bytes, bytes]:
    """The additional entry in the metadata of a simulation.

    >>> mark(simulation=True), mark(simulation=False)
    ({b'deniable.simulation': b'true'}, {})
    """
    return {MARK: MARKED} if simulation else {}


def is_marked(metadata: Mapping[Any, Any] | None) -> bool:
    """Whether metadata are those of a simulation. Any value under the mark's name counts: nothing else writes it.

    >>> is_marked({b"deniable.simulation": b"true"}), is_marked(None)
    (True, False)
    """
    return metadata is not None and (MARK in metadata or MARK.decode() in metadata)


def one_kind(kinds: Mapping[str, bool]) -> bool:
    """Whether the named tables are a simulation's; a simulation and a release together are refused.

    >>> one_kind({"users": True, "orders": True})
    True
    """
    if len(set(kinds.values())) > 1:
        made = ", ".join(
            f"{name!r} is a {'simulation' if simulated else 'release'}" for name, simulated in kinds.items()
        )
        raise InvalidData(
            f"a simulation and a release cannot be mixed: {made}",
            "Keep them apart.",
            cost="Nothing was read or written",
        )
    return any(kinds.values())
