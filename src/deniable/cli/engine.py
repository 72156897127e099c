"""Which engine a command runs on: `--engine duckdb`, `spark` or `spark=master`."""

from __future__ import annotations

from typing import Any

import click

from deniable.errors import BadInput

ENGINE = click.option(
    "--engine", default="duckdb", show_default=True, help="duckdb, or spark[=master], such as spark=local[4]."
)


def opened(engine: str) -> Any:
    """A session of Spark, or None for DuckDB."""
    name, _, master = engine.partition("=")
    if name == "duckdb" and not master:
        return None
    if name != "spark":
        raise BadInput("there are two engines. Nothing was read. Write --engine duckdb or --engine spark[=master].")
    from deniable.spark import session

    return session(master or "local[*]")
