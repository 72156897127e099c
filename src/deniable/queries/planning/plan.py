"""Question → plan: what each table computes, and how that is multiplied and added.

The answer to a question is made of moments. A moment is a sum over users of a sum of terms, and a term a product of
factors: for every table a column of contributions (what the user's reports say of her rows there), and what public
attributes multiply it by. This is the paper's state inversion [XDW20, Section 4.2], factorised: the product of each
table's own unbiased contribution instead of a matrix over all combinations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from deniable.errors import InvalidParameter, QueryRefused
from deniable.notebook import html_table
from deniable.queries.grids.grid_weights import Bias, plan_grids
from deniable.queries.planning.key_functions import KeyFunctions
from deniable.queries.planning.moment_columns import moment_columns
from deniable.queries.planning.planned_terms import PlannedTerm, TermTable
from deniable.queries.question.public_trees import PublicFactor
from deniable.queries.question.question import MomentOf, PrivateGroups, PublicGroups, Question, Term
from deniable.queries.weights.axis_weights import Rule
from deniable.queries.weights.product_weights import plan_table
from deniable.queries.weights.table_plan import DIRECT, SUMS, TablePlan
from deniable.tables.specification.specification import Specification
from deniable.wording import counted

ASSUMED_USERS = 1e6
"""How many users a grid is planned for if the caller does not say."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Everything that an engine has to compute: contributions per table, then products, then sums.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> plan = shop.forecast("SELECT COUNT(*) FROM users WHERE age < 25", users=1000).plan
    >>> print(plan)
    optimal weights, direct sums
    m0 = count(*): 1 term
    count_star() = m0
    table users: 3 views, 75.0% of the reports, 12.0 cells per report
      age 1+4+19+25
    """

    question: Question
    collection: Specification
    tables: tuple[TablePlan, ...]
    public: tuple[tuple[str, PublicFactor], ...]
    private_groups: tuple[tuple[int, ...], ...]
    """The combinations of values of private groups, each by its index in the group's list."""
    term_table: TermTable
    """The terms of all moments of all private groups; `terms` shows some of them."""
    rule: Rule
    sums: str
    measured: tuple[int, ...] = ()
    """For each moment that is asked, the number of the one that adds up its public measure; −1 without one."""

    biases: tuple[Bias, ...] = ()
    """For each table of a grid what its weights leave to an assumption; empty if they reproduce what is asked."""
    users: float = ASSUMED_USERS
    """For how many users weights on a grid were chosen."""
    exact_first: bool = True
    """Whether columns that cells reproduce come without an assumption."""
    keyed: KeyFunctions | None = None
    """What another population's reports contribute, where one is joined."""

    @property
    def is_free_of_noise(self) -> bool:
        """Whether reports show the cell of every view as it is, and nobody draws a view."""
        views = [view for table in self.tables for part in table.parts for view in part.views]
        return all(view.probability == 1.0 and view.q == 0.0 for view in views)

    def terms(self, group: int = 0, moment: int = 0) -> Iterator[PlannedTerm]:
        """The terms that a moment of a private group is the sum of.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95), score=dn.Public()), epsilon=2.0)
        >>> plan = shop.forecast("SELECT SUM(3 * score) FROM users WHERE age < 25", users=1000).plan
        >>> [str(term) for term in plan.terms()]
        ['1·c0·p0']
        """
        return self.term_table.of(group, moment)

    def __str__(self) -> str:
        lines = [f"{self.rule} weights, {self.sums} sums"]
        for number, moment in enumerate(self.question.moments):
            lines.append(f"m{number} = {moment.name}: {counted(len(moment.terms), 'term')}")
        lines += [f"{output.name} = {output.formula}" for output in self.question.outputs]
        for group in self.question.groups:
            count = counted(len(group.values), "value") if isinstance(group, PrivateGroups) else "as they occur"
            lines.append(f"group {group.label}: {count}")
        for table, tests in self.question.filters.items():
            lines += [f"where {table}: {test}" for test, _ in tests]
        for table, factor in self.public:
            lines.append(f"times {table}: {factor}")
        others = (
            [] if self.keyed is None else [f"through {'.'.join(self.keyed.join.attribute)}: {self.keyed.asked.plan}"]
        )
        return "\n".join([*lines, *(str(table) for table in self.tables), *others])

    def _repr_html_(self) -> str:
        """A row per table for notebooks, and below it the sums that an answer is made of."""
        first, *lines = str(self).splitlines()
        tables = [str(table).splitlines() for table in self.tables]
        rows = [
            (table.table, lines[0].partition(": ")[2], "; ".join(lines[1:]).strip())
            for table, lines in zip(self.tables, tables, strict=True)
        ]
        above = lines[: len(lines) - sum(map(len, tables))]
        return html_table(("table", "reports that count", "levels of each axis"), rows, title=first, notes=above)


def make_plan(
    question: Question,
    collection: Specification,
    weights: str = "optimal",
    sums: str = DIRECT,
    *,
    users: float = ASSUMED_USERS,
    unbiased: bool = False,
    exact_first: bool = True,
    keyed: KeyFunctions | None = None,
) -> Plan:
    """The plan for a question; `weights` is greedy, rdc(k), rdc_each(k) or optimal, `sums` direct or designed.

    On a grid the number of users decides the trade-off between bias and variance; `unbiased` allows no bias. What cells
    reproduce is answered without any, unless `exact_first` is off and all columns are to come from the same model.
    `keyed` is what another population's reports contribute, where the question joins one.
    """
    rule = Rule.of(weights)
    measured: tuple[int, ...] = ()
    if collection.grids is not None:
        if rule.name != "optimal":
            raise QueryRefused(f"a grid has no {rule} weights", "Leave out weights: they are chosen by least error.")
        question, measured = _with_measures(question)
    if sums not in SUMS:
        raise InvalidParameter("sums", "are unknown", f"Use one of {', '.join(SUMS)}.")
    laid = moment_columns(question, collection, keyed)
    biases: tuple[Bias, ...] = ()
    if collection.grids is None:
        tables = tuple(
            plan_table(collection[name], collection.design_of(name), columns, rule, sums)
            for name, columns in laid.columns.items()
        )
    else:
        asked = [(collection[name], collection.design_of(name), columns) for name, columns in laid.columns.items()]
        solved = plan_grids(asked, users, unbiased=unbiased, exact_first=exact_first)
        tables = tuple(grid.plan for grid in solved)
        if any(grid.assumes for grid in solved):
            biases = tuple(grid.bias for grid in solved if grid.bias is not None)
    return Plan(
        question=question,
        collection=collection,
        tables=tables,
        public=laid.public,
        private_groups=laid.groups,
        term_table=laid.terms,
        rule=rule,
        sums=sums,
        measured=measured,
        biases=biases,
        users=users,
        exact_first=exact_first,
        keyed=keyed,
    )


def _with_measures(question: Question) -> tuple[Question, tuple[int, ...]]:
    """The question with a further moment for each public measure: the measure's own sum.

    Of each moment, those included, the number of the one that measures it, or -1.
    """
    moments, measured = list(question.moments), []
    for moment in question.moments:
        if not any(factor.measure for term in moment.terms for factor in term.public.values()):
            measured.append(-1)
            continue
        most: dict[tuple[tuple[str, PublicFactor], ...], float] = {}
        for term in moment.terms:  # disjoint conditions on the same measure count it once
            key = tuple(sorted(term.public.items(), key=lambda item: item[0]))
            most[key] = max(most.get(key, 0.0), abs(term.coefficient))
        terms = tuple(Term(coefficient, {}, {}, dict(key)) for key, coefficient in most.items())
        measured.append(len(moments))
        moments.append(MomentOf(f"measure of {moment.name}", terms, indicator=False, region=-1))
    further = len(moments) - len(measured)
    return replace(question, moments=tuple(moments)), (*measured, *[-1] * further)


def public_groups(question: Question) -> list[PublicGroups]:
    """The groups of a question whose values are known only from the reports."""
    return [group for group in question.groups if isinstance(group, PublicGroups)]
