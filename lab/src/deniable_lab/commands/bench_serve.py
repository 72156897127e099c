"""`deniable bench serve`: durable reports per second, and what else a collector promises under load."""

from __future__ import annotations

import click

from deniable.cli.terminal import show, table
from deniable_lab.commands.targets import fail_where_missed

_ONE_BY_ONE, _BATCHES, _GROWTH_MIB, _FRESH_S, _OVERLOAD = 0.5, 100_000, 200, 2.0, 1.5


@click.command()
@click.option("--requests", type=click.IntRange(100), default=20_000, show_default=True, help="Sent one by one.")
@click.option("--reports", type=click.IntRange(1000), default=1_000_000, show_default=True, help="Sent in batches.")
@click.option("--parts", type=click.IntRange(2), default=10, show_default=True, help="Looks at the memory meanwhile.")
def serve(requests: int, reports: int, parts: int) -> None:
    """Durable reports per second, next to a bare ASGI application.

    The bare application appends bodies to memory. Client and server share this machine. Measured: requests one by one
    over 64 connections, reports in batches of 64, the time to an answer (median and 99th percentile), the server's
    processor time for a request, which depends less on what else runs, memory while --reports arrive, the time until a
    question counts a report, and a load that is too high. Ids are random. Exits 1 if a target is missed. Takes a
    minute; ten million reports take many.

    \b
    Example:
      deniable bench serve --requests 2000 --reports 20000
    """
    from deniable_lab.benchmarks.serve_speed import (
        BATCH,
        bare_application,
        collector,
        first_answer,
        growth,
        in_batches,
        one_by_one,
        overload,
        time_to_answer,
        time_to_average,
    )

    made = table("Uploads", "server", "load", "requests/s", "reports/s", "p50 ms", "p99 ms", "CPU µs", numbers_from=2)
    figures = {}
    for name, server in (("bare", bare_application), ("collector", collector)):
        with server() as process:
            one_by_one(process, max(requests // 10, 100), 1)  # what is loaded on first use
            figures[name] = one_by_one(process, requests, 2)
            batches = in_batches(process, min(reports, 1_000_000), 3)
        for load, size, words in ((figures[name], 1, "one by one"), (batches, BATCH, f"batches of {BATCH}")):
            quantiles = (f"{load.wait_ms(share):.1f}" for share in (0.5, 0.99))
            rates = (f"{load.per_second:,.0f}", f"{load.per_second * size:,.0f}")
            made.add_row(name, words, *rates, *quantiles, f"{load.cpu_us()[0]:,.0f}")
    show(made)
    ratio = figures["collector"].per_second / figures["bare"].per_second
    highest = batches.per_second * BATCH
    by_cpu = figures["bare"].cpu_us()[0] / figures["collector"].cpu_us()[0]
    click.echo(f"one by one: {ratio:.2f} of the bare application; {by_cpu:.2f} by the server's processor time")
    per_report = sum(batches.cpu_us()) / BATCH
    click.echo(f"batches: {per_report:.2f} µs of processor for a report, client included; two cores have 2 s a second")
    with collector() as process:
        before = process.mebibytes
        grown = growth(process, reports, parts, 4)
        first = grown.mebibytes[0]
        click.echo(
            f"{grown.reports:,} reports: {before:,.0f} MiB at the start, {first:,.0f} after the first part, "
            f"{max(grown.mebibytes):,.0f} at most; {grown.reports_per_second[0]:,.0f} reports/s at first, "
            f"{grown.reports_per_second[-1]:,.0f} in the end; {grown.cpu_us[0]:.1f} µs of the server's processor for a "
            f"report at first, {grown.cpu_us[-1]:.1f} in the end"
        )
        spent_before = process.cpu_s
        _, opening_s = first_answer(process)
        spent = process.cpu_s - spent_before
        click.echo(f"the first question is answered after {opening_s:.1f} s ({spent:.1f} s of processor)")
        opened = process.mebibytes
        spent_before = process.cpu_s
        waits = time_to_answer(process, 5)
        spent = (process.cpu_s - spent_before) / len(waits)
        average_s, average_cpu_s = time_to_average(process)
    click.echo(f"with reports opened for questions the server holds {opened:,.0f} MiB")
    click.echo(
        f"a question counts a report {max(waits):.2f} s after its acknowledgement, at the latest "
        f"({spent:.2f} s of processor); an average with a condition takes {average_s:.2f} s ({average_cpu_s:.2f})"
    )
    with collector() as process:
        over = overload(process, batches.per_second, 6)
    click.echo(
        f"{over.offered_ratio:.1f} times the highest load was offered: {over.shed_requests:,} requests were answered "
        f"with 429, {over.other_failures:,} failed otherwise; {over.accepted:,} reports were acknowledged, "
        f"{over.lost:,} lost; sent again, {over.stored_in_the_end:,} of {over.offered_reports:,} are stored"
    )
    missed = {
        f"one by one {ratio:.2f} of the bare application, not {_ONE_BY_ONE}": ratio < _ONE_BY_ONE,
        f"{highest:,.0f} reports/s in batches, not {_BATCHES:,}": highest < _BATCHES,
        f"memory grows by over {_GROWTH_MIB} MiB": max(grown.mebibytes) - first > _GROWTH_MIB,
        f"a question counts a report later than {_FRESH_S:g} s": max(waits) > _FRESH_S,
        "reports were lost under overload": over.lost > 0 or over.stored_in_the_end != over.offered_reports,
        "nothing was shed": over.shed_requests == 0,
        f"only {over.offered_ratio:.1f} times the highest load was offered": over.offered_ratio < _OVERLOAD,
    }
    fail_where_missed([words for words, is_missed in missed.items() if is_missed])
