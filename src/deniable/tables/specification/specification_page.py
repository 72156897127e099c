"""A specification as a table for notebooks: what is sent about whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable.notebook import html_table

if TYPE_CHECKING:
    from deniable.tables.specification.specification import Specification


def specification_page(specification: Specification) -> str:
    """A row per table: what each user, or each id of another population, sends."""
    rows = (
        (
            table.name,
            f"1 per {table.key}" if table.key else "1" if table.many is None else f"0 to {table.many}",
            ", ".join(table.private),
            ", ".join(table.public),
            specification.reports_per_user(table.name),
            f"{specification.epsilon_per_report(table.name):.4g}",
        )
        for table in specification.tables
    )
    others = [f"ε = {epsilon:g} per id of {owner}" for owner, epsilon in (specification.owners or {}).items()]
    title = f"Collection, ε = {specification.epsilon:g} per user, design {specification.design}"
    return html_table(
        ("table", "rows per user", "private", "public", "reports per user", "ε per report"),
        rows,
        title=", ".join([title, *others]),
        notes=[f"specification {specification.sha256[:16]}…"],
    )
