"""`deniable bench hash` and `rounds`: what rests on the hash, and whether intervals over rounds cover."""

from __future__ import annotations

from pathlib import Path

import click

from deniable.cli.terminal import progress, show, table


@click.command(name="hash")
@click.option(
    "--seeds",
    type=click.IntRange(16, 32),
    default=22,
    show_default=True,
    help="Hash seeds under which every pair is tried, as a power of two; 32 means all.",
)
@click.option("--pairs", type=click.IntRange(1), default=2_000, show_default=True, help="Pairs of random cells.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder in which counts are kept, so that an interrupted run is continued.",
)
@click.option("--every", is_flag=True, help="Every number of buckets from 2 to 64, not powers of two alone.")
def hash_pairs(seeds: int, pairs: int, keep: Path | None, every: bool) -> None:
    """How often two cells share a bucket, and what the hash costs.

    For 993 pairs of cells whose keys differ in one or two bits or in the pattern t<<24 | t<<8, and for all pairs of
    some random cells below 2^24, the share of seeds under which both fall into one of g buckets, next to 1/g. Columns:
    the largest relative error of a pair, what chance alone would leave, and the root of the mean squared error, in
    multiples of that. With --seeds 32 every seed is tried: 4 minutes of processor time, and two and a half hours for
    --pairs 100000. With --every it takes 32 times as long.

    \b
    Example:
      deniable bench hash --seeds 16 --pairs 100
    """
    from deniable_lab.benchmarks.hash_pairs import (
        EVERY,
        POWERS,
        count_in_pieces,
        failing_pattern,
        one_and_two_bits,
        random_cells,
        slowdown,
    )

    made = table("Collisions of two cells", "pairs", "seeds", "g", "worst", "chance", "rms/chance", numbers_from=1)
    groups = (one_and_two_bits(), failing_pattern(), random_cells(pairs))
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    for number, keys in enumerate(groups):
        kept = None if keep is None else keep / f"{number}{'-every' if every else ''}.npz"
        *_, counted = count_in_pieces(keys, 2**seeds, kept, odd=EVERY if every else POWERS)
        for index in counted.buckets.argsort() if every else (0, 1, 2, -1):
            errors, chance = counted.errors[:, index], float(counted.chance[index])
            rms = float((errors**2).mean() ** 0.5)
            row = (f"{abs(errors).max():.1e}", f"{chance:.1e}", f"{rms / chance:.3f}")
            made.add_row(f"{len(errors):,} of {keys.name}", f"2^{seeds}", str(counted.buckets[index]), *row)
    show(made)
    click.echo(f"The loop over reports takes {slowdown():.2f} times the processor time of the hash before it.")


@click.command()
@click.option("--mode", "modes", type=click.Choice(["rotating", "fresh", "memoised"]), multiple=True)
@click.option("--collections", type=click.IntRange(2), default=200, show_default=True)
@click.option("--users", type=click.IntRange(10), default=2_000, show_default=True)
@click.option("--rounds", "count", type=click.IntRange(2), default=3, show_default=True)
@click.option("--answers", type=click.IntRange(1), default=1, show_default=True, help="For rotating rounds.")
@click.option("--epsilon", type=float, default=2.0, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
def rounds(
    modes: tuple[str, ...], collections: int, users: int, count: int, answers: int, epsilon: float, seed: int
) -> None:
    """Coverage and errors of levels and changes over rounds.

    One person in twenty changes from one round to the next. Columns: the share of intervals that cover, stated errors
    in multiples of actual ones, and the actual error.

    \b
    Example:
      deniable bench rounds --mode fresh --collections 3 --users 200
    """
    from deniable_lab.benchmarks.round_coverage import MODES, measure

    made = table("Answers over rounds", "mode", "question", "kind", "covered", "stated/actual", "error", numbers_from=3)
    chosen = modes or MODES
    with progress("collecting", len(chosen) * collections) as advance:
        for mode in chosen:
            for row in measure(
                mode,
                epsilon=epsilon,
                users=users,
                rounds=count,
                answers=answers if mode == "rotating" else 1,
                collections=collections,
                seed=seed,
                advance=advance,
            ):
                ratio = f"{row.stated / row.error:.3f}"
                made.add_row(row.mode, row.question, row.kind, f"{row.covered:.1%}", ratio, f"{row.error:,.4g}")
    show(made)
