"""`deniable bench hash` and `rounds`: what rests on the hash, and whether intervals over rounds cover."""

from __future__ import annotations

from collections.abc import Sequence
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
@click.option(
    "--pairs", type=click.IntRange(0), default=2_000, show_default=True, help="Pairs of random cells; may be 0."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder in which counts are kept, so that an interrupted run is continued.",
)
@click.option(
    "--buckets",
    type=click.IntRange(2, 64),
    multiple=True,
    default=(2, 8, 64),
    show_default=True,
    help="Number of buckets g; repeat it for several.",
)
@click.option("--every", is_flag=True, help="Every number of buckets from 2 to 64.")
@click.option("--divided", is_flag=True, help="Divide the random cells over odd g: each with its doubles has its own.")
def hash_pairs(seeds: int, pairs: int, keep: Path | None, buckets: tuple[int, ...], every: bool, divided: bool) -> None:
    """How often two cells share a bucket, and what the hash costs.

    For 993 pairs of cells whose keys differ in one or two bits or in the pattern t<<24 | t<<8, and for pairs of 512
    random cells below 2^24 with others, the share of seeds under which both fall into one of g buckets, next to 1/g.
    Columns: the largest relative error of a pair, the median of what it would be by chance alone, the standard
    deviation by chance (sd), and the root of the mean squared error in multiples of that. With --seeds 32 every seed
    is tried: for --pairs 100000 this takes a quarter of an hour to an hour of processor time for each g, and with
    --every --divided, where a pair is counted for few of them, one or two hours for all of them together.

    \b
    Example:
      deniable bench hash --seeds 16 --pairs 100
    """
    from deniable_lab.benchmarks.bit_planes import doubled
    from deniable_lab.benchmarks.hash_pairs import (
        EVERY,
        Pairs,
        count_in_pieces,
        divided_cells,
        failing_pattern,
        one_and_two_bits,
        random_cells,
        slowdown,
        worst_by_chance,
    )

    made = table(
        "Collisions of two cells",
        "pairs",
        "seeds",
        "g",
        "worst",
        "by chance",
        "deviation",
        "rms/deviation",
        numbers_from=1,
    )
    chosen = EVERY if every else tuple(sorted(set(buckets)))

    def written(numbers: Sequence[int]) -> str:
        return "every" if tuple(numbers) == EVERY else "-".join(map(str, numbers))

    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    groups: list[tuple[str, Pairs, Sequence[int]]] = [
        (f"0-{seeds}-{written(chosen)}", one_and_two_bits(), chosen),
        (f"1-{seeds}-{written(chosen)}", failing_pattern(), chosen),
    ]
    if pairs and divided:
        for odd, cells in divided_cells(pairs).items():
            if doubles := [g for g in doubled(odd) if g in chosen]:
                groups.append((f"divided-{seeds}-{written(doubles)}", cells, doubles))
    elif pairs:
        groups += [(f"2-{seeds}-{g}", random_cells(pairs), [g]) for g in chosen]
    for name, group, counted in groups:
        *_, tried = count_in_pieces(group, 2**seeds, counted, None if keep is None else keep / f"{name}.npz")
        for index, g in enumerate(counted):
            errors, chance = tried.errors[:, index], float(tried.chance[index])
            rms = float((errors**2).mean() ** 0.5)
            row = (
                f"{abs(errors).max():.1e}",
                f"{worst_by_chance(len(errors)) * chance:.1e}",
                f"{chance:.1e}",
                f"{rms / chance:.3f}",
            )
            made.add_row(f"{len(errors):,} of {group.name}", f"2^{seeds}", str(g), *row)
    show(made)
    click.echo(f"The loop over reports takes {slowdown():.2f} times the processor time of the hash before it.")


@click.command()
@click.option(
    "--mode",
    "modes",
    type=click.Choice(["rotating", "fresh", "memoised"]),
    multiple=True,
    help="Only these modes; repeat it for several.",
)
@click.option("--collections", type=click.IntRange(2), default=200, show_default=True, help="Collections of each mode.")
@click.option("--users", type=click.IntRange(10), default=2_000, show_default=True, help="People of a collection.")
@click.option("--rounds", "count", type=click.IntRange(2), default=3, show_default=True, help="Rounds of a collection.")
@click.option("--answers", type=click.IntRange(1), default=1, show_default=True, help="For rotating rounds.")
@click.option("--epsilon", type=float, default=2.0, show_default=True, help="The specification's ε.")
@click.option("--seed", type=int, default=1, show_default=True, help="First seed.")
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
