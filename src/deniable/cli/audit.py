"""`deniable audit`: can an attacker tell two people apart better than ε allows?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from deniable.cli.terminal import count, progress, show, table
from deniable.collection import Collection
from deniable.errors import ClaimBroken, InvalidParameter
from deniable.exact import check_epsilon

if TYPE_CHECKING:
    from deniable.audit import Finding
    from deniable.audit.mechanism_targets import Make

_DEFAULT_EPSILON = 2.0
_SPECIFICATION_ENDINGS = (".toml", ".json")


@click.command("audit")
@click.argument("what", required=False)
@click.option("--epsilon", type=float, help=f"The claimed ε; by default {_DEFAULT_EPSILON:g}, or that of the file.")
@click.option(
    "--samples", type=count, default=200_000, show_default=True, help="Runs per attack; fewer on slow targets."
)
@click.option(
    "--seconds",
    type=float,
    default=30.0,
    show_default=True,
    help="Time limit of an attack: later runs are not started.",
)
@click.option("--seed", type=int, help="Repeat an audit: draw from a seeded source, not the secure one.")
def audit_command(what: str | None, epsilon: float | None, samples: int, seconds: float, seed: int | None) -> None:
    """Attack mechanisms, clients and publishers.

    WHAT is a specification (a .toml or .json file), whose device and bulk clients are attacked, or the name of a
    mechanism, design or publisher. Without it everything is attacked, which takes several minutes.

    An attack compares the outputs of two very different inputs: every field, bit and tail, the number and the order of
    reports. "not refuted at ε ≥ 0.97" means that it proves no more than this. "would notice 1.12 ε" means that the same
    attack refuted a stand-in that spends 1.12 ε; a smaller excess may go unnoticed. Exits 1 if a claim is refuted. A
    true claim is refuted in less than one audit of a million.

    \b
    Example:
      deniable audit local-hashing --epsilon 2 --samples 20000
      deniable audit shop.toml --seconds 60
    """
    from deniable.audit import audit, noticed_factor
    from deniable.randomness import SecureSource, SeededSource

    if not seconds > 0:
        raise InvalidParameter("seconds", "must be positive", "Use 30.")
    chosen, claimed = _chosen(what, epsilon)
    source = SecureSource() if seed is None else SeededSource(seed)
    findings: list[Finding] = []
    for name, make in chosen.items():
        target, stream = make(claimed), source.stream(name)
        with progress(f"attacking {name}", min(samples, target.most)) as advance:
            finding = audit(target, samples, stream, seconds=seconds, advance=advance)
        if not finding.refuted:
            with progress(f"attacking a stand-in of {name}", min(samples, target.most)) as advance:
                finding = noticed_factor(finding, make, samples, stream, seconds=seconds, advance=advance)
        findings.append(finding)
    show(findings_table(findings))
    refuted = [finding for finding in findings if finding.refuted]
    for finding in refuted:
        click.echo(f"{finding.target.name}:\n  {finding.refutations[0]}")
    if refuted:
        raise ClaimBroken(
            f"samples contradict the claim of {', '.join(finding.target.name for finding in refuted)}. "
            "Data that it released is less protected than promised. Stop releasing, and report this."
        )


def _chosen(what: str | None, epsilon: float | None) -> tuple[dict[str, Make], float]:
    """What to attack, by name, and the ε it claims."""
    from deniable.audit import collection_targets, targets

    if what is not None and what.endswith(_SPECIFICATION_ENDINGS):
        if epsilon is not None:
            raise InvalidParameter("epsilon", "is given by the file already", "Leave it out.")
        collection = Collection.load(Path(what))
        _check_finite(collection.epsilon)
        return collection_targets(collection), collection.epsilon
    claimed = _DEFAULT_EPSILON if epsilon is None else epsilon
    check_epsilon(claimed)
    _check_finite(claimed)
    everything = targets()
    chosen = {name: make for name, make in everything.items() if what is None or f"{name},".startswith(f"{what},")}
    if not chosen:
        known = ", ".join(dict.fromkeys(name.partition(",")[0] for name in everything))
        raise InvalidParameter(f"target {what!r}", "is unknown", f"Use a .toml or .json file, or one of {known}.")
    return chosen, claimed


def _check_finite(epsilon: float) -> None:
    if math.isinf(epsilon):
        raise InvalidParameter("epsilon", "must be finite: without noise there is nothing to audit", "Use 1.")


def findings_table(findings: list[Finding]) -> Table:
    """One row per target."""
    made = table("Attacks", "target", "claimed", "not refuted at", "would notice", "runs", folding=0)
    for finding in findings:
        verdict = "REFUTED" if finding.refuted else f"ε ≥ {finding.bound:.3f}"
        noticed = "" if finding.refuted else "unknown" if math.isinf(finding.noticed) else f"{finding.noticed:.2f} ε"
        made.add_row(finding.target.name, f"ε = {finding.target.epsilon:g}", verdict, noticed, f"{finding.samples:,}")
    return made
