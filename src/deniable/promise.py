"""The whole promise of a specification: in words, as JSON, and as a page to sign."""

from __future__ import annotations

import html
import math
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deniable import __version__
from deniable.collection import Collection
from deniable.shuffled_promise import HEADING, Mixer, shuffled_words
from deniable.simulation import has_noise
from deniable.tables.schema.attributes import Table
from deniable.tables.schema.pseudonyms import PSEUDONYM
from deniable.tables.schema.report_format import ASSIGNED
from deniable.tables.schema.rounds import FRESH, MEMOISED, ROTATING, Rounds, stands_for
from deniable.tables.specification.lifetime_promises import memoised_promises
from deniable.tables.specification.runs import largest_epsilon
from deniable.wording import counted

if TYPE_CHECKING:
    from deniable.queries.forecasts.influence import Influence

LARGEST_LIFETIME_EPSILON = 8.0
LARGEST_SHOWN_ODDS = 1e6
_WIDTH = 80
_TYPICAL_USERS = 10**6
_EPSILON = "At ε = 0 reports would show nothing about her; each further 1 multiplies what may be bet by at most 2.72."
_MARKED_CODE = re.compile("`([^`]*)`")


@dataclass(frozen=True, slots=True)
class PromiseNumbers:
    """What one round and a lifetime spend, for any two people; in memoised rounds also for those who change alike."""

    one_round: float
    lifetime: float
    same_changes: float | None = None
    step: float | None = None

    @classmethod
    def of(cls, collection: Collection) -> PromiseNumbers:
        """The numbers of a specification."""
        users = [table.name for table in collection.tables if table.owner is None]
        one_round = float(
            sum(collection.epsilon_per_report(name) * collection.reports_per_user(name) for name in users)
        )
        lifetime, rounds = float(collection.spends.epsilon), collection.rounds
        if rounds is None or rounds.mode != MEMOISED:
            return cls(one_round, lifetime)
        promised = {table.name: memoised_promises(collection, table.name, rounds.count) for table in collection.tables}
        reports = {name: collection.reports_per_user(name) for name in promised}
        same = sum(float(each.same_changes) * reports[name] for name, each in promised.items())
        step = sum(float(each.step) * reports[name] for name, each in promised.items())
        return cls(one_round, lifetime, same, step)


def odds(epsilon: float) -> str:
    """What a bet of 1:1 may become.

    >>> odds(4.0), odds(50.0), odds(float("inf"))
    ('55:1', 'e^50:1', 'any odds')
    """
    if math.isinf(epsilon):
        return "any odds"
    if epsilon > math.log(LARGEST_SHOWN_ODDS):
        return f"e^{epsilon:.3g}:1"
    ratio = math.exp(epsilon)
    return f"{ratio:,.0f}:1" if ratio >= 20 else f"{ratio:.2g}:1"


def sections(collection: Collection, mixer: Mixer | None = None) -> dict[str, list[str]]:
    """The promise, a few sentences under each heading; with a mixer also what he would add."""
    if not has_noise(largest_epsilon(collection)):
        nobody = {"Who is protected": ["Nobody: reports show every row as it is, to everybody who gets them."]}
        return nobody if mixer is None else {**nobody, HEADING: shuffled_words(collection, mixer)}
    numbers, rounds = PromiseNumbers.of(collection), collection.rounds
    tables = ", ".join(table.name for table in collection.tables if table.owner is None)
    many = ", ".join(table.name for table in collection.tables if table.many is not None and table.owner is None)
    counted_rows = f", and how many rows she has in {many}" if many else ""
    public = [f"{table.name}.{column}" for table in collection.tables for column in table.public]
    single = [table.name for table in collection.tables if table.many is None and table.owner is None]
    return {
        "Who is protected": [
            f"Every person who answers, with all her rows in all tables together ({tables}){counted_rows}.",
            *_others_protected(collection),
        ],
        "Against whom": [
            "Everybody: all services together, the server, and anyone who gets the reports later. Only her device "
            "sees her rows; where somebody runs `perturb` for many people, he sees them too."
        ],
        "How much": [*_how_much(numbers, rounds), *_other_modes(collection), *_others_spend(collection)],
        "What is asked": [*map(_asked, collection.tables)],
        "What travels in clear": [
            f"Public columns: {', '.join(public)}." if public else "There are no public columns.",
            _ids_travel(collection) + (", and the number of the round." if rounds else "."),
            *(f"Ids of {owner}, and that each of them has a row." for owner in collection.owners or {}),
        ],
        "What is not hidden": _not_hidden(single, rounds, collection.coins),
        "Who decides views and hash seeds": [
            "The user id, by a public function: a server refuses others, and a liar is left with his answer."
            if collection.coins == ASSIGNED
            else "The device. A liar may choose them, and a server cannot tell.",
            *_liars(collection),
        ],
        **({} if mixer is None else {HEADING: shuffled_words(collection, mixer)}),
    }


def _asked(table: Table) -> str:
    """The private attributes of a table, and how many rows of each person are reported."""
    names = ", ".join(table.private)
    if table.many is None:
        return f"In {table.name}, of one row{f' per {table.key}' if table.key else ''}: {names}."
    return f"In {table.name}, of {counted(table.tau, 'row')} drawn from up to {table.many}: {names}."


def _ids_travel(collection: Collection) -> str:
    """What names whoever sent a report."""
    if collection.ids == PSEUDONYM:
        in_rounds = " and in all rounds" if collection.rounds else ""
        own = f"No user ids. A random name that her device drew for this collection, for all services{in_rounds}"
        return f"{own}, the name of the table"
    return "User ids, the name of the table"


def _others_protected(collection: Collection) -> list[str]:
    """Whom the promises of other populations protect, and whom not."""
    said = []
    for owner in collection.owners or {}:
        mine = [table for table in collection.tables if table.owner == owner]
        names = ", ".join(table.name for table in mine)
        said.append(
            f"A second promise, of {owner}: every single {mine[0].key}, with its row in {names}. It is about one row, "
            f"not about {owner} as a whole: whoever reports many rows hides each of them, not what they have in common."
        )
    return said


def _others_spend(collection: Collection) -> list[str]:
    """What is spent on an id of each other population, and that users pay nothing for it."""
    said = []
    for owner in collection.owners or {}:
        key = next(table.key for table in collection.tables if table.owner == owner)
        spent = float(collection.spends_of(owner).epsilon)
        said.append(
            f"What {owner} reports about one {key} spends ε = {spent:.4g}, at most {odds(spent)}, and none of a "
            "person's ε: the two sets of reports are about different facts."
        )
    return said


def _liars(collection: Collection) -> list[str]:
    """How far one liar moves a typical count, before anything is collected."""
    text, liar = typical_influence(collection)
    typical, most, many = _people(liar.typical), _people(liar.most), _people(liar.of_share(0.01))
    chosen = f"by {_people(liar.reached)} people" + ("" if liar.exact else f" or more, and at most by {most}")
    moved = f"by {typical} people on average and at most by {most}" if liar.coins == ASSIGNED else chosen
    return [f"One liar moves a typical count ({text}) {moved}, and 1% of a million people who lie alike by {many}."]


def _people(number: float) -> str:
    """A number of people with three digits, as people write it.

    >>> _people(4.6812), _people(46_812.3)
    ('4.68', '46,800')
    """
    return f"{float(f'{number:.3g}'):,.10g}"


def typical_influence(collection: Collection) -> tuple[str, Influence]:
    """A count of half a domain, and how far one of a million people who lies moves it."""
    import numpy as np

    from deniable.queries.forecasts.example_questions import ranges_of
    from deniable.queries.forecasts.forecast import planned
    from deniable.queries.forecasts.influence import influences_at

    table = next(table for table in collection.tables if table.owner is None)
    text = next(ranges_of(table, table.private[:1]))
    plan = planned(collection, text, "optimal", "direct", _TYPICAL_USERS)
    (liar,) = influences_at(
        plan, np.zeros(len(plan.question.moments)), round(_TYPICAL_USERS / stands_for(collection.rounds))
    )
    return text, liar


def _how_much(numbers: PromiseNumbers, rounds: Rounds | None) -> list[str]:
    if rounds is None:
        return [
            f"She answers once in her life, and spends ε = {numbers.lifetime:.4g}.",
            f"An attacker who would bet 1:1 on a fact about her can bet at most {odds(numbers.lifetime)} afterwards.",
            _EPSILON,
        ]
    count = counted(rounds.count, "round")
    lines = [
        f"There is a round every {rounds.every}, {count} in all.",
        f"One that she answers spends ε = {numbers.one_round:.4g}.",
    ]
    if rounds.mode == ROTATING:
        lines.append(
            f"She answers in {counted(rounds.answers, 'round')} of {rounds.count}, chosen without looking at her rows."
        )
    elif rounds.mode == FRESH:
        lines.append("She answers every round anew.")
    else:
        lines += [
            "She answers every round from a permanent answer that is kept for life.",
            "Two people whose answers change in the same rounds are told apart by at most "
            f"ε = {numbers.same_changes:.4g}.",
            f"That and when she changed is hidden less: every round adds at most ε = {numbers.step:.4g}.",
        ]
    lifetime = numbers.lifetime
    return [
        *lines,
        f"Over a lifetime any two people are told apart by at most ε = {lifetime:.4g}.",
        f"An attacker who would bet 1:1 on a fact can bet at most {odds(numbers.one_round)} after one round, and at "
        f"most {odds(lifetime)} after all of them.",
        _EPSILON,
    ]


def _other_modes(collection: Collection) -> list[str]:
    """What a round would spend in other modes, for the same ε over a lifetime."""
    from deniable.queries.forecasts.round_forecast import modes_of

    said: list[str] = []
    for other in modes_of(collection):
        if collection.rounds is None or other.rounds is None or other.rounds.mode == collection.rounds.mode:
            continue
        numbers = PromiseNumbers.of(Collection.of(other))
        said.append(f"{other.rounds.mode} rounds of ε = {numbers.one_round:.3g} each")
        if numbers.same_changes is not None:
            any_two = f"{numbers.lifetime:.4g}"
            said[-1] += f" (for two people who change in the same rounds; for any two people ε = {any_two} in all)"
    if not said:
        return []
    mine = PromiseNumbers.of(collection)
    if mine.same_changes is None:
        return [f"The same ε = {mine.lifetime:.4g} over a lifetime would also allow {' or '.join(said)}."]
    same = f"The same ε = {mine.same_changes:.4g}, but for any two people,"
    return [f"{same} would also allow {' or '.join(said)}."]


def _not_hidden(single: list[str], rounds: Rounds | None, coins: str) -> list[str]:
    lines = ["When she sends, and from where."]
    if single:
        lines.append(f"That she takes part in {', '.join(single)} (one row per user).")
    if rounds is not None and rounds.mode == ROTATING:
        known = ": they follow from her id" if coins == ASSIGNED else ""
        covered = ", from whoever can read what she sends: covers say that they are covers"
        lines.append(f"In which rounds she answers{known or (covered if rounds.cover else '')}.")
    if rounds is not None and rounds.mode == MEMOISED:
        lines.append("That and when she changed, beyond the numbers above." if rounds.changes_are_public else "")
    lines.append("Another collection of the same facts spends again: give her devices one ledger with a limit.")
    return [line for line in lines if line]


def cautions(collection: Collection) -> list[str]:
    """Warnings about an ε that protects little or nothing."""
    if not has_noise(largest_epsilon(collection)):
        return ["No privacy: reports show the true values. This specification is for simulations only (--simulation)."]
    said, lifetime = [], float(collection.spends.epsilon)
    if lifetime > LARGEST_LIFETIME_EPSILON:
        said.append(
            f"Little privacy: over a lifetime the odds of a guess about a user may grow to {odds(lifetime)}. "
            f"Stay below ε = {LARGEST_LIFETIME_EPSILON:g} per lifetime."
        )
    for owner in collection.owners or {}:
        spent = float(collection.spends_of(owner).epsilon)
        if spent > LARGEST_LIFETIME_EPSILON:
            said.append(
                f"Little privacy: the odds of a guess about a row of {owner} may grow to {odds(spent)}. "
                f"Stay below ε = {LARGEST_LIFETIME_EPSILON:g}."
            )
    return said


def in_words(collection: Collection, mixer: Mixer | None = None) -> str:
    """The promise as text of 80 columns."""
    lines = []
    for heading, sentences in sections(collection, mixer).items():
        lines += [heading, *_wrapped(" ".join(sentences), indent="  ")]
    lines += [line for caution in cautions(collection) for line in _wrapped(caution)]
    return "\n".join(lines)


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of at most 80 columns that never end between a letter and its number."""
    whole = text.replace("ε = ", "ε\xa0=\xa0").replace("δ = ", "δ\xa0=\xa0")
    made = textwrap.wrap(whole, _WIDTH - len(indent), initial_indent=indent, subsequent_indent=indent)
    return [line.replace("\xa0", " ") for line in made]


def facts(collection: Collection, mixer: Mixer | None = None) -> dict[str, Any]:
    """The promise as JSON holds it."""
    numbers = PromiseNumbers.of(collection)
    given = {
        "one_round": numbers.one_round,
        "lifetime": numbers.lifetime,
        "same_changes": numbers.same_changes,
        "step": numbers.step,
    }
    epsilon = {name: _number(value) for name, value in given.items() if value is not None}
    return {
        "name": collection.name,
        "specification": collection.sha256,
        "version": __version__,
        "design": collection.design,
        "coins": collection.coins,
        "ids": collection.ids,
        "rounds": None if collection.rounds is None else collection.rounds.to_dict(),
        "epsilon": epsilon,
        "odds": {
            name: odds(value) for name, value in (("one_round", numbers.one_round), ("lifetime", numbers.lifetime))
        },
        **({"owners": _others(collection)} if collection.owners else {}),
        "reports_per_user": {table.name: collection.reports_per_user(table.name) for table in collection.tables},
        "public": {table.name: list(table.public) for table in collection.tables},
        "promise": sections(collection, mixer),
        "warnings": cautions(collection),
    }


def _others(collection: Collection) -> dict[str, dict[str, float | str]]:
    """What each other population spends on an id, and the odds."""
    spent = {owner: float(collection.spends_of(owner).epsilon) for owner in collection.owners or {}}
    return {owner: {"epsilon": _number(epsilon), "odds": odds(epsilon)} for owner, epsilon in spent.items()}


def _number(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


def page(collection: Collection, mixer: Mixer | None = None) -> str:
    """The promise as a page to sign: nothing in it comes from elsewhere."""
    name = html.escape(collection.name or "collection")
    parts = []
    for heading, sentences in sections(collection, mixer).items():
        escaped = [_MARKED_CODE.sub(r"<code>\1</code>", html.escape(sentence)) for sentence in sentences]
        items = "".join(f"<li>{sentence}</li>" for sentence in escaped)
        parts.append(f"<h2>{html.escape(heading)}</h2>\n<ul>{items}</ul>")
    warnings = "".join(f"<p><strong>{html.escape(caution)}</strong></p>" for caution in cautions(collection))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Promise of {name}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 45rem; margin: 2rem auto; padding: 0 1rem; }}
code {{ overflow-wrap: anywhere; }}
table {{ width: 100%; margin-top: 2rem; }}
td {{ border-top: 1px solid; padding-top: .3rem; width: 33%; }}
tr {{ height: 5rem; vertical-align: bottom; }}
</style>
</head>
<body>
<h1>What {name} promises</h1>
<p>Specification <code>{collection.sha256}</code>, deniable {html.escape(__version__)}.</p>
{warnings}
{"".join(parts)}
<table><tr><td>Name</td><td>Date</td><td>Signature</td></tr></table>
</body>
</html>
"""
