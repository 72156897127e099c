"""A database over the reports of one collection: SQL in, answers with their errors out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from deniable.arrays import Floats
from deniable.collection import Collection
from deniable.engines.counted_pairs import CountedPairs
from deniable.engines.drawn_coins import DrawnCoins, reported_coins
from deniable.engines.duckdb.dimension_tables import Dimensions
from deniable.engines.engine import Engine
from deniable.engines.found_words import FoundInTables, Listed
from deniable.engines.joined_keys import joined_plan, with_others
from deniable.engines.kernel.grouped_moments import check_believed, rows_of_reports
from deniable.engines.learnt_tables import LearntTables
from deniable.engines.reports.user_blocks import ReportFacts, kept_reports, reported_rounds, users_a_round, users_in
from deniable.errors import QueryRefused
from deniable.queries.answers.answer_options import DEFAULTS, AnswerOptions
from deniable.queries.answers.answering import StatementAnswers
from deniable.queries.answers.consistent.consistent_answers import consistent_answer
from deniable.queries.answers.descriptions import kept_in_words, tables_page
from deniable.queries.answers.effective_users import effective_users
from deniable.queries.answers.estimation import Moments, answer
from deniable.queries.answers.group_comparison import comparison
from deniable.queries.answers.guard import GUARDED, guarded
from deniable.queries.answers.model_error import model_spread
from deniable.queries.answers.quantile_answers import Prefixes, ReportedPart, cumulative_question
from deniable.queries.answers.result import Result
from deniable.queries.answers.trend import trend
from deniable.queries.forecasts.assumed_rows import RowsGiven, assumed_rows
from deniable.queries.forecasts.forecast import Explanation, Forecast, predicted
from deniable.queries.forecasts.influence import Influence, influences
from deniable.queries.forecasts.round_forecast import rounds_in_words
from deniable.queries.parsing.round_questions import question_by_round
from deniable.queries.parsing.sql import parse
from deniable.queries.parsing.statements import ASKING, statements_of
from deniable.queries.planning.bounding_plan import BoundingPlans, bounding_plans
from deniable.queries.planning.kept_plans import Kept, KeptOfPlans
from deniable.queries.planning.plan import Plan, make_plan
from deniable.queries.planning.product_moments import with_known_spread
from deniable.queries.weights.table_plan import DIRECT
from deniable.tables.schema.report_format import USER_COLUMN
from deniable.tables.specification.runs import is_simulation


class Database:
    """The validated reports of a collection, and what was refused. Threads may share it.

    Make one with `connect`. It plans questions, has its engine add up what they need, and turns that into answers.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> frame = {"uid": range(10_000), "age": [20, 30] * 5_000}
    >>> db = dn.connect(shop.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
    >>> print(db.sql("SELECT AVG(age) AS age FROM users"))
      age   95 % interval
    25.60  23.84 to 27.35
    simulation: no privacy
    """

    __slots__ = (
        "_bounds", "_drawn", "_found", "_learnt", "_pairs", "_plans", "_revised", "_sharper", "_word_notes",
        "collection", "dimensions", "engine",
    )  # fmt: skip

    def __init__(self, engine: Engine, dimensions: Dimensions | None = None, listed: Listed | None = None) -> None:
        self.engine = engine
        seen, self._word_notes = listed or (engine.collection, ())
        self.collection = Collection.of(seen)
        """What the reports were made under."""
        self.dimensions: Dimensions = dimensions or {}
        self._plans = Kept[Plan]()
        self._pairs = CountedPairs(engine)
        self._drawn = DrawnCoins(engine)
        self._learnt = LearntTables(engine)
        self._found = FoundInTables.of(engine) if listed is None else None
        self._revised = KeptOfPlans[Plan]()
        self._sharper = KeptOfPlans[Plan]()
        self._bounds = KeptOfPlans[BoundingPlans | None]()

    @property
    def stores(self) -> Mapping[str, ReportFacts]:
        """For each table with reports, how many there are of them, and of each view."""
        return self.engine.stores

    @property
    def refused(self) -> Mapping[str, Counter[str]]:
        """For each table, how many reports were refused, by reason."""
        return self.engine.refused

    @property
    def simulation(self) -> bool:
        """Whether the reports protect nobody; every answer says so. Without noise they never do, in any engine."""
        return self.engine.simulation or is_simulation(self.collection, None)

    @property
    def key(self) -> str:
        """What SQL may call the user id besides uid: the name of that column when rows were collected."""
        return str(getattr(self.engine, "key", USER_COLUMN))

    def refresh(self) -> bool:
        """Read files that have arrived since; whether there were any. Folders are looked at before every question, too.

        >>> db.refresh()
        False
        """
        return False

    def sql(
        self,
        text: str,
        *,
        weights: str = "optimal",
        sums: str = DIRECT,
        confidence: float = 0.95,
        simultaneous: bool = False,
        clip: bool = False,
        nonnegative: bool = False,
        unbiased: bool = False,
        postprocess: str | None = None,
    ) -> Result:
        """Answer a question in SQL, every number with its standard error.

        Aggregates of private and public attributes, of one table or several joined with USING (uid), and of dimensions;
        docs/queries.md lists what may be asked. Anything else is refused by name.

        `weights` is "optimal", "greedy", "rdc(k)" or "rdc_each(k)"; `sums` is "direct", or "designed" for the rounded
        values that AHIO, EHIO and SR-HIO collect. With `simultaneous` all intervals of an answer hold at once. `clip`
        cuts estimates to the possible range, `nonnegative` only at zero: they look better and are biased. On a grid,
        `unbiased` allows only what cells and points show without any assumption; other designs need none. There,
        `postprocess="consistent"` answers from one possible table of cells instead: less noise, and biased.

        >>> answer = db.sql("SELECT COUNT(*) AS young FROM users WHERE age < 25")
        >>> print(answer.scalar())
        4,921 ± 206 (95%: 4,517 to 5,325)
        """
        options = AnswerOptions(weights, sums, unbiased, confidence, simultaneous, clip, nonnegative, postprocess)
        return self.answer(text, options)

    def answer(self, text: str, options: AnswerOptions) -> Result:
        """Answer a question under options that are passed as one value. See `sql`.

        >>> db.answer("SELECT COUNT(*) FROM users", dn.AnswerOptions(confidence=0.9)).scalar().value
        10000.0
        """
        return list(self.statements(text, options))[-1]

    def statements(self, text: str, options: AnswerOptions = DEFAULTS) -> Iterator[Result]:
        """Answer every statement of a text: questions, EXPLAIN, DESCRIBE and SHOW TABLES.

        >>> [len(result) for result in db.statements("SHOW TABLES; SELECT COUNT(*) FROM users")]
        [1, 1]
        """
        for statement in statements_of(text):
            asked = self._asked(statement.about or statement.text) if statement.kind in ASKING else self
            yield from StatementAnswers(asked, options).statements(statement.text)

    def _asked(self, text: str) -> Database:
        """This database, or one in which the words that a question is about are listed."""
        return self if self._found is None else Database(self.engine, self.dimensions, self._found.listed(text))

    def _plain_answer(self, text: str, options: AnswerOptions) -> Result:
        """The answer to one SELECT of sums."""
        consistent = options.postprocess is not None
        if consistent and (self.collection.grids is None or options.unbiased):
            raise QueryRefused("postprocess is for grids and biased", "Leave it out, or unbiased.")
        plan, moments, model, contradicted = self._part(text, options, guard=not consistent, alone=not consistent)
        single_rows = self._counts_once(plan)
        result = answer(
            plan.question,
            moments,
            options,
            single_rows=single_rows,
            rows_per_user=math.prod(float(self.collection[name].many or 1) for name in plan.question.tables),
            model=model,
            effective=effective_users(plan, moments, single_rows=single_rows),
        )
        # What is known without any report is consistent as it is.
        if consistent and any(part.views for table in plan.tables for part in table.parts):
            result = consistent_answer(plan, self._moments, result.answers, options)
        notes = (*result.notes, *self._word_notes, *[GUARDED] * contradicted, *self._drawn.notes(plan.question.tables))
        return replace(result, notes=notes, simulation=self.simulation)

    def _counts_once(self, plan: Plan) -> bool:
        """Whether everybody counts once or not at all; weights that assume something do not see to that."""
        single = all(self.collection[name].many is None for name in plan.question.tables)
        return single and not plan.biases and (plan.keyed is None or plan.keyed.is_exact)

    def _prefixes(self, text: str, options: AnswerOptions) -> Prefixes:
        """What is known of how many rows are at most each value of the last group of a question."""

        def made() -> Plan:
            question = cumulative_question(parse(text, self.collection, self.dimensions, key=self.key))
            return make_plan(
                question, self.collection, options.weights, users=max(users_in(self.stores, question.tables), 1)
            )

        plan = self.revised(self._plans.get(("prefixes", text, options.weights), made))
        return Prefixes(*self._read(plan)[:3], self._counts_once(plan))

    def _part(self, text: str, options: AnswerOptions, *, guard: bool, alone: bool) -> ReportedPart:
        """What the reports say about a question; unless it is for this answer `alone`, no more than it asks."""
        plan = self.revised(self._planned(text, options))
        plan = self._sharper.get(plan, lambda: with_known_spread(plan)) if alone else plan
        for name in rows_of_reports(plan, self.stores):
            check_believed(name, self.stores, self.refused)
        return self._guarded(self._read(plan)) if guard else self._read(plan)

    def _read(self, plan: Plan) -> ReportedPart:
        """What the reports say under a plan."""
        moments = self._moments(plan)
        return ReportedPart(plan, moments, model_spread(plan, moments), False)

    def _guarded(self, read: ReportedPart) -> ReportedPart:
        """Moments that do not contradict what cells show without any assumption, where they show something."""
        plan, moments, model, _ = read
        bounds = None if model is None else self._bounds.get(plan, lambda: bounding_plans(plan, self._learnt.by_table))
        if bounds is None or model is None:
            return read
        low, high = (self._moments(bound) for bound in (bounds.low, bounds.high))
        return ReportedPart(plan, *guarded(moments, model, low, high, bounds.ends, plan.measured))

    def _moments(self, plan: Plan) -> Moments:
        return with_others(plan, lambda part: self._pairs.moments(part, self.dimensions))

    def revised(self, plan: Plan) -> Plan:
        """The plan that questions are answered with, now that there are reports.

        Reports show where rows are, and are asked once per table. What cells of a grid leave to an assumption is then
        weighed anew. Designs other than grids assume nothing, so their plans stay as they are, and so do plans that
        follow the borders of cells.

        >>> grid = shop.with_settings(design="grid")
        >>> assuming = dn.connect(grid.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
        >>> plan = assuming.plan("SELECT COUNT(*) FROM users WHERE age < 25")
        >>> assuming.revised(plan).question is plan.question
        True
        """
        if not plan.biases:
            return plan
        return self._revised.get(plan, lambda: self._learnt.revised(plan))

    def plan(self, text: str, *, weights: str = "optimal", sums: str = DIRECT, unbiased: bool = False) -> Plan:
        """How a question would be answered: a value that prints.

        >>> print(db.plan("SELECT COUNT(*) FROM users WHERE age < 25"))
        optimal weights, direct sums
        m0 = count(*): 1 term
        count_star() = m0
        table users: 3 views, 75.0% of the reports, 12.0 cells per report
          age 1+4+19+25
        """
        return self._asked(text)._planned(text, AnswerOptions(weights, sums, unbiased))

    def _is_planned(self, text: str, options: AnswerOptions) -> bool:
        return self._plan_key(text, options) in self._plans

    @staticmethod
    def _plan_key(text: str, options: AnswerOptions) -> tuple[str, str, str, bool, bool]:
        """What a plan depends on; frequencies that are possible all come from one model."""
        return text, options.weights, options.sums, options.unbiased, options.postprocess is None

    def _planned(self, text: str, options: AnswerOptions) -> Plan:
        def made() -> Plan:
            question = parse(text, self.collection, self.dimensions, key=self.key, centred=options.sums == DIRECT)
            users = max(users_in(self.stores, question.tables), 1)
            if question.keyed is not None:
                return joined_plan(question, self.engine, options, users)
            _, weights, sums, unbiased, first = self._plan_key(text, options)
            return make_plan(
                question, self.collection, weights, sums, users=users, unbiased=unbiased, exact_first=first
            )

        return self._plans.get(self._plan_key(text, options), made)

    def explain(
        self,
        text: str,
        *,
        weights: str = "optimal",
        sums: str = DIRECT,
        unbiased: bool = False,
        rows: RowsGiven = None,
        matching: float | tuple[float, float] | None = None,
    ) -> Explanation:
        """How a question is answered, how many reports count, and the error to expect with its causes; it prints.

        `rows` and `matching` are as in `Collection.forecast`.

        >>> print(db.explain("SELECT COUNT(*) FROM users WHERE age < 25"))
        optimal weights, direct sums
        m0 = count(*): 1 term
        count_star() = m0
        table users: 3 views, 75.0% of the reports, 12.0 cells per report
          age 1+4+19+25
        users: 7,500 of 10,000 reports count, 1 per user with ε = 2 each
        one liar moves count_star() by 18.61 (at most 22.16); 1% of liars: 1,861
        predicted:
        10,000 users, ε = 2, design hio, optimal weights
                      stderr  of users  truncation  rounding  view sampling  randomiser
        count_star()   196.1    1.961%          0%        0%            10%         90%
        Assumed: rows spread evenly over the domains, half as many rows per user as the
        table allows unless rows are given, all users pass public conditions, public
        measures of size one.
        """
        plan = self.plan(text, weights=weights, sums=sums, unbiased=unbiased)
        users = users_a_round(self.stores, plan.question.tables, rounds=self.collection.rounds is not None)
        assumed = assumed_rows(plan.collection, rows, matching).among_reporters(plan.collection.tables)
        forecast = predicted(plan, users, assumed) if users else Forecast(plan, 0, ())
        liars = self._influences(plan, self._moments(plan), exact=False) if users else ()
        counting, rounds = rows_of_reports(plan, self.stores), rounds_in_words(plan.collection, text, forecast.users)
        return Explanation(forecast, counting, liars, rounds)

    def _influences(self, plan: Plan, moments: Moments, *, exact: bool, **more: Floats) -> tuple[Influence, ...]:
        users = users_a_round(self.stores, plan.question.tables, rounds=self.collection.rounds is not None)
        coins = reported_coins(self.engine, plan, exact=exact)
        return influences(plan, moments, users, coins=coins, exact=exact, **more)

    def influence(
        self, text: str, *, weights: str = "optimal", sums: str = DIRECT, unbiased: bool = False, exact: bool = False
    ) -> tuple[Influence, ...]:
        """How far one lying user moves each answer of a question, and what a share of liars does.

        With drawn coins a liar chooses view, seed and y, with assigned coins only y. Ratios are moved as their
        derivative at the estimates says. Of several private groups the first counts; a public measure counts as one. In
        a collection with rounds this is about one round. With `exact`, a liar who draws his coins tries all 2^32 seeds
        of every view, which may take minutes; without it a million or so, and a bound is stated where he might find
        better ones. With assigned coins everybody who reported is tried.

        >>> liar, = db.influence("SELECT COUNT(*) AS young FROM users WHERE age < 25")
        >>> print(liar)
        one liar moves young by 18.61 (at most 22.16); 1% of liars: 1,861
        """
        plan = self.plan(text, weights=weights, sums=sums, unbiased=unbiased)
        return self._influences(plan, self._moments(plan), exact=exact)

    def trend(self, text: str, *, moves: float | None = None, confidence: float = 0.95) -> Result:
        """Follow one number over all rounds; the intervals of all rounds hold at once.

        The question has no condition on the round and one answer. With `moves`, the standard deviation by which you
        expect the number to move from one round to the next, it is smoothed too: a prior that you state, and
        post-processing that costs no privacy. Both come with their errors.

        >>> weekly = shop.with_settings(name="shop", coins="assigned", rounds=dn.Rounds(2, mode="fresh"))
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp(), "reports")
        >>> for number in (1, 2):
        ...     _ = weekly.perturb(
        ...         users=frame, round=number, out=folder, source=dn.SeededSource(number), simulation=True
        ...     )
        >>> print(dn.connect(folder).trend("SELECT COUNT(*) AS young FROM users WHERE age < 25", moves=50.0))
        round  young   95 % interval  young_smoothed   95 % interval
            1  4,716  4,250 to 5,182           4,848  4,504 to 5,193
            2  4,991  4,522 to 5,459           4,857  4,512 to 5,201
        all 2 intervals hold at once with 95%
        smoothed: if it moves by about 50 from one round to the next
        simulation: no privacy
        """
        if self.collection.rounds is None:
            raise QueryRefused("this collection has no rounds", "Ask with sql.")
        table = parse(text, self.collection, self.dimensions, key=self.key).tables[0]
        rounds = reported_rounds(self.stores, (table,))
        if not rounds:
            raise QueryRefused(f"there are no reports of table {table!r}", "Collect them first.")
        name, asked = question_by_round(text, rounds)
        plan = self._planned(asked, AnswerOptions(confidence=confidence))
        followed = trend(plan, self._moments(plan), name, rounds, moves, confidence)
        return replace(followed, sql=text, simulation=self.simulation)

    def compare(self, text: str, *, by: str, confidence: float = 0.95, unbiased: bool = False) -> Result:
        """Compare the groups of a column, every two of them: how far one number differs, and whether it does.

        The errors of differences include what groups have in common. With the stated confidence every "yes" is right:
        one error rate holds for all comparisons together, however many there are. `by` may be `round`.

        >>> (difference,) = db.compare("SELECT COUNT(*) FROM users", by="age > 40")
        >>> difference["differ"], difference["second_minus_first"].value < 0
        ('yes', True)
        """
        return comparison(self.answer, text, by, AnswerOptions(confidence=confidence, unbiased=unbiased))

    def close(self) -> None:
        """Give back what the engine keeps of the reports. Dropping the database does it, too.

        >>> dn.connect(shop.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]})).close()
        """
        self.engine.close()

    def __repr__(self) -> str:
        return f"Database({kept_in_words(kept_reports(self.stores, self.refused))}{'; simulation' * self.simulation})"

    def _repr_html_(self) -> str:
        """What can be asked, for notebooks."""
        return tables_page(
            self.collection, kept_reports(self.stores, self.refused), [*self.dimensions], simulation=self.simulation
        )
