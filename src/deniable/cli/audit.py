"""`deniable audit`: does any mechanism leak more than it claims?"""

from __future__ import annotations

import math

import click
from rich.table import Table

from deniable.audit import CASES, CONFIDENCE, Finding, audit
from deniable.cli.terminal import progress, show, table
from deniable.errors import ClaimBroken, InvalidParameter
from deniable.exact import check_epsilon
from deniable.randomness import SecureSource, SeededSource


@click.command("audit")
@click.argument("mechanism", required=False, type=click.Choice(sorted(CASES)), metavar="[MECHANISM]")
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="The ε each mechanism claims.")
@click.option("--trials", type=int, default=100_000, show_default=True, help="Runs on each of the two inputs.")
@click.option("--seed", type=int, help="Repeat a run: draw from a seeded source instead of the secure one.")
def audit_command(mechanism: str | None, epsilon: float, trials: int, seed: int | None) -> None:
    """Try to tell two worst inputs of a mechanism apart.

    Without MECHANISM, of each one. Prints the claimed ε, the exact worst ratio of its law (as ε), and the largest ε
    that the samples prove with 99 % confidence. Exits 1 if that exceeds the claim. All mechanisms together take a
    minute or two.

    \b
    Example:
      deniable audit local-hashing --epsilon 2 --trials 20000
    """
    check_epsilon(epsilon)
    if math.isinf(epsilon):
        raise InvalidParameter("epsilon", "must be finite: without noise there is nothing to audit", "Use 1.")
    source = SecureSource() if seed is None else SeededSource(seed)
    findings: list[Finding] = []
    for name in [mechanism] if mechanism else CASES:
        case = CASES[name](epsilon)
        with progress(f"auditing {name}", 2 * min(trials, case.most_trials)) as advance:
            findings.append(audit(case, trials, source.stream(name), advance))
    show(findings_table(findings))
    broken = [finding.case.name for finding in findings if finding.broken]
    if broken:
        raise ClaimBroken(
            f"samples contradict the claim of {', '.join(broken)} with {CONFIDENCE:.0%} confidence. "
            "Data released by it is less protected than promised. Stop releasing, and report this."
        )


def findings_table(findings: list[Finding]) -> Table:
    """One row per mechanism."""
    made = table("ε of mechanisms", "mechanism", "claimed", "exact", "proved ≥", "δ", "runs", "verdict")
    for finding in findings:
        case = finding.case
        verdict = "BROKEN" if finding.broken else "holds"
        figures = (f"{case.epsilon:g}", f"{case.exact:.6f}", f"{finding.bound:.3f}", f"{case.delta:g}")
        made.add_row(case.name, *figures, f"{2 * finding.trials:,}", verdict)
    return made
