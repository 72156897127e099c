"""Errors of answers over tables: perturb once, ask every line many questions, compare with plain SQL on the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Floats
from deniable.collection import Collection
from deniable.database import Database, connect
from deniable.engines.duckdb.duckdb_session import open_duckdb
from deniable.queries.answers.estimation import Moments, covariance
from deniable.queries.answers.model_error import model_spread
from deniable.queries.answers.quantile_answers import ReportedPart
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.plan import ASSUMED_USERS, Plan, make_plan
from deniable.queries.question.formula import evaluate, moments_of
from deniable.randomness import SeededSource
from deniable.tables.schema.attributes import Attribute, Ordinal, Public, Table
from deniable_lab.experiments.table_data import Frames
from deniable_lab.experiments.tables._lines import Line

COUNT, SUM, AVG = "COUNT", "SUM", "AVG"
AGGREGATES = (COUNT, SUM, AVG)
NOTHING = "nothing"
"""What results call it to answer 0 to every question."""
MeasuredErrors = list[tuple[dict[str, Any], dict[str, float]]]


@dataclass(frozen=True, slots=True)
class Ask:
    """COUNT(*), SUM and AVG of an attribute under conditions, each on one attribute and written in SQL."""

    measure: str
    conditions: Mapping[str, str]

    def select(self, wanted: str, tables: str) -> str:
        """The question in SQL."""
        where = ["WHERE", " AND ".join(self.conditions.values())] if self.conditions else []
        return " ".join(["SELECT", wanted, "FROM", tables, *where])


@dataclass(frozen=True, slots=True)
class Study:
    """Rows, and the tables they belong to. Attributes of different tables have different names."""

    frames: Frames
    tables: tuple[Table, ...]

    def home(self, attribute: str) -> str:
        """The table that has an attribute."""
        return next(table.name for table in self.tables if attribute in table.attributes)

    def question(self, ask: Ask) -> str:
        """All that is asked, in SQL."""
        return ask.select(f"COUNT(*), SUM({ask.measure})", self.joined([*ask.conditions, ask.measure]))

    def joined(self, attributes: Iterable[str]) -> str:
        """The tables of these attributes, and those with many rows per user, as FROM lists them."""
        wanted = {self.home(attribute) for attribute in attributes}
        names = [table.name for table in self.tables if table.name in wanted or table.many is not None]
        first, *rest = names or [self.tables[0].name]
        return first + "".join(f" JOIN {name} USING (uid)" for name in rest)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found for every group: values, and the errors stated for them, of noise and assumptions together."""

    keys: tuple[tuple[Any, ...], ...]
    values: Mapping[str, Floats]
    errors: Mapping[str, Floats]


@dataclass(slots=True)
class Release:
    """One perturbation of the rows for each way of collecting, shared among the lines that only ask otherwise."""

    study: Study
    epsilon: float
    seed: int
    _made: dict[tuple[object, ...], tuple[Study, Database]] = field(default_factory=dict)

    def reports(self, line: Line, measured: str, questions: tuple[str, ...]) -> tuple[Study, Database]:
        """The reports that a line asks, and the study they are of; designs may be fitted to the questions."""
        asked = (line.name, measured, questions)
        if asked not in self._made:
            study = _prepared(self.study, line, measured, self.seed)
            users = study.frames[study.tables[0].name].num_rows
            collection = line.collect(study.tables, self.epsilon, users, questions)
            key = (collection.sha256,)
            if key not in self._made:
                made = collection.perturb(**study.frames, source=SeededSource(self.seed), simulation=True)
                self._made[key] = study, connect(made, memory_limit=2**40)
            self._made[asked] = self._made[key]
        return self._made[asked]

    def answer(self, line: Line, ask: Ask, among: Sequence[Ask] = ()) -> dict[str, tuple[float, float]]:
        """Value and stated error of COUNT, SUM and AVG, for one of several questions.

        AVG is never called unclear here.
        """
        questions = tuple(dict.fromkeys(self.study.question(asked) for asked in (among or (ask,))))
        study, database = self.reports(line, ask.measure, questions)
        measured = ask.measure + ("_end" if line.split else "_open" if line.public else "")
        whole = study.joined([*ask.conditions, measured])
        wanted = f"COUNT(*) AS {COUNT}, SUM({measured}) AS {SUM}" + f", AVG({measured}) AS {AVG}" * (not line.paper)
        answers = _only(told(line, database, ask.select(wanted, whole)))
        if line.paper:
            part = study.joined(ask.conditions)
            if part != whole:  # a table that nothing is asked about would only add the noise of drawing its views
                answers |= _only(told(line, database, ask.select(f"COUNT(*) AS {COUNT}", part)))
            count = answers[COUNT][0]
            answers[AVG] = (answers[SUM][0] / count if count else np.nan, np.nan)
        return answers


def plan_of(line: Line, collection: Collection, text: str, users: float = ASSUMED_USERS) -> Plan:
    """How a line answers a question; only a grid's weights depend on the number of users."""
    question = parse(text, collection, None, centred=not line.paper)
    return make_plan(question, collection, line.weights, line.sums, users=users)


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What the reports say about a question, and what a grid assumes."""

    plan: Plan
    moments: Moments
    model: Floats | None

    def spread(self, used: set[int] | None = None) -> Floats:
        """Expected products of the errors of an answer's moments: their covariance and, of a grid, what it assumes."""
        plan = self.plan
        single = not plan.biases and all(plan.collection[name].many is None for name in plan.question.tables)
        spread = covariance(plan.question, self.moments, single, used)
        return spread if self.model is None else spread + self.model


def moments_told(line: Line, database: Database, text: str) -> Told:
    """What the reports say about a question, asked as the line asks, with the guard that a database has."""
    plan = database.revised(plan_of(line, database.collection, text, users_of(database)))
    moments = database.engine.moments(plan, {}, counted=not line.paper)
    read = database._guarded(ReportedPart(plan, moments, model_spread(plan, moments), False))
    return Told(plan, read.moments, read.model)


def users_of(database: Database) -> int:
    """How many users have sent their reports."""
    return min(store.rows // store.slots for store in database.stores.values())


def told(line: Line, database: Database, text: str) -> Answer:
    """The answer to a question, asked as the line asks."""
    reported = moments_told(line, database, text)
    moments = reported.moments
    values, stated = {}, {}
    exact = np.zeros_like(moments.crosses)
    for output in reported.plan.question.outputs:
        spread = reported.spread(moments_of(output.formula))
        estimate = evaluate(output.formula, moments.sums, exact)
        values[output.name], stated[output.name] = estimate.value, np.sqrt(estimate.variance(spread))
    return Answer(moments.keys, values, stated)


def _only(answer: Answer) -> dict[str, tuple[float, float]]:
    return {name: (float(values[0]), float(answer.errors[name][0])) for name, values in answer.values.items()}


def _prepared(study: Study, line: Line, measured: str, seed: int) -> Study:
    if line.public:
        return _opened(study, measured)
    return _split(study, seed) if line.split else study


def _opened(study: Study, measured: str) -> Study:
    """The measured attribute once more, in clear."""
    name = study.home(measured)
    frame = study.frames[name]
    frames = {**study.frames, name: frame.append_column(f"{measured}_open", frame[measured])}
    more: dict[str, Any] = {f"{measured}_open": Public()}
    tables = [Table(name, many=table.many, tau=table.tau, **table.attributes, **more) if table.name == name else table
              for table in study.tables]  # fmt: skip
    return Study(frames, tuple(tables))


def _split(study: Study, seed: int) -> Study:
    """A table for every attribute, and one for each that can be summed, rounded to its ends: SC in pieces."""
    frames, tables = {}, []
    random = np.random.default_rng([seed, 7])
    for table in study.tables:
        frame = study.frames[table.name]
        for name, domain in table.attributes.items():
            alone = _alone(f"{table.name}_{name}", name, domain)
            frames[alone.name] = frame.select(["uid", name])
            tables.append(alone)
            if isinstance(domain, Ordinal) and domain.aggregatable:
                low, high = int(domain.decode(0)), int(domain.decode(domain.size - 1))
                up = random.random(frame.num_rows) * (high - low) < frame[name].to_numpy() - low
                ends = _alone(f"{alone.name}_end", f"{name}_end", Ordinal(low, high, high - low))
                frames[ends.name] = pa.table({"uid": frame["uid"], f"{name}_end": np.where(up, high, low)})
                tables.append(ends)
    return Study(frames, tuple(tables))


def _alone(name: str, attribute: str, meaning: Attribute) -> Table:
    only: dict[str, Any] = {attribute: meaning}
    return Table(name, **only)


def plain(study: Study, text: str) -> list[tuple[Any, ...]]:
    """What plain SQL says about the rows themselves."""
    with open_duckdb(memory_limit=2**32) as database:
        for name, frame in study.frames.items():
            database.register(name, frame)
        return list(database.execute(text).fetchall())


def truths(study: Study, asks: Sequence[Ask]) -> Floats:
    """COUNT, SUM and AVG of each question, without any noise."""
    wanted = "COUNT(*), COALESCE(SUM({0}), 0), AVG({0})"
    answers = [plain(study, ask.select(wanted.format(ask.measure), everything(study)))[0] for ask in asks]
    return np.array(answers, dtype=np.float64)


def everything(study: Study) -> str:
    """All tables, joined."""
    return study.joined([name for table in study.tables for name in table.attributes])


def errors(release: Release, lines: Iterable[Line], asks: Sequence[Ask]) -> MeasuredErrors:
    """For each line and aggregate the paper's measures of error, over questions of the same kind.

    NMSE: the mean square of (answer − truth)/Σ, Σ being the answer to the question without conditions; MRE: the mean
    of |answer − truth|/|truth| [XDW20, Section 7], and `RE` the median of these: quotients with an unclear denominator
    have no mean. `stated` is the NMSE that the answers' own errors promise.
    """
    truth = truths(release.study, asks)
    whole = truths(release.study, [Ask(asks[0].measure, {})])[0]
    measured: MeasuredErrors = []
    for line in lines:
        answers = [release.answer(line, ask, asks) for ask in asks]
        for index, aggregate in enumerate(AGGREGATES):
            values, stated = np.array([answer[aggregate] for answer in answers]).T
            off = values - truth[:, index]
            if aggregate == AVG:
                some = truth[:, 0] > 0  # an empty group has no average
                relative = np.abs(off[some] / truth[some, index])
                numbers = {"MRE": float(np.mean(relative)), "RE": float(np.median(relative))}
            else:
                promised = float(np.mean((stated / whole[index]) ** 2))
                numbers = {"NMSE": float(np.mean((off / whole[index]) ** 2)), "stated": promised}
            measured.append(({"method": line.name, "aggregate": aggregate}, numbers))
    return measured


def of_nothing(study: Study, asks: Sequence[Ask]) -> MeasuredErrors:
    """The NMSE of saying 0: a method above it is worse than no answer at all."""
    shares = truths(study, asks) / truths(study, [Ask(asks[0].measure, {})])
    return [
        ({"method": NOTHING, "aggregate": aggregate}, {"NMSE": float(np.mean(shares[:, index] ** 2))})
        for index, aggregate in enumerate((COUNT, SUM))
    ]


def ranges(volume: float, size: int, count: int, seed: int) -> list[tuple[int, int]]:
    """Random ranges that hold this share of a domain 1..size."""
    width = max(round(volume * size), 1)
    first = np.random.default_rng([seed, width]).integers(1, size - width + 2, count)
    return [(int(low), int(low) + width - 1) for low in first]
