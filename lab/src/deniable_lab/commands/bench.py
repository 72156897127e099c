"""`deniable bench`: speed and errors, each measured next to something else in the same run."""

from __future__ import annotations

import click

from deniable_lab.commands.bench_answers import answers
from deniable_lab.commands.bench_compare import compare
from deniable_lab.commands.bench_errors import accuracy, streams
from deniable_lab.commands.bench_rounds import hash_pairs, rounds
from deniable_lab.commands.bench_scale import scale
from deniable_lab.commands.bench_serve import serve
from deniable_lab.commands.bench_speed import collecting, mechanisms, peers, queries, spark
from deniable_lab.commands.bench_zoo import zoo


@click.group()
def bench() -> None:
    """Measure speed and errors next to peers, in one run."""


for command in (
    accuracy,
    answers,
    collecting,
    compare,
    hash_pairs,
    mechanisms,
    peers,
    queries,
    rounds,
    scale,
    serve,
    spark,
    streams,
    zoo,
):
    bench.add_command(command)
