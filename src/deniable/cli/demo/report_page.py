"""The demonstration as a page to send to somebody: report.html."""

from __future__ import annotations

from deniable.cli.demo import meters, page, shop
from deniable.cli.demo.outcome import HEADER, MOVED_HEADER, WEEKS_HEADER, Outcome, cells, moved_cells, week_cells
from deniable.cli.demo.real_devices import LIMIT, REAL_DEVICES, left_of


def report(outcome: Outcome) -> str:
    """The whole page."""
    parts = [
        page.words(
            f"{outcome.users:,} made-up people use two services for three weeks. Their devices randomise their rows "
            "and send "
            f"reports over HTTP; one ε = {outcome.collection.epsilon:g} covers all that a person sends in all weeks. A "
            "collector stores the reports, joins them and answers SQL. The truth is shown next to each answer "
            "because these "
            "people are made up. Otherwise nobody knows it."
        ),
        *_collected(outcome),
        *_answers(outcome),
        *_attackers(outcome),
        *_stream(outcome),
        *_ledger(outcome),
        page.heading("What next?"),
        page.words("The console, on what was collected. Open http://127.0.0.1:8710/ and enter the key."),
        page.code(f"{outcome.console_command}\nkey: {outcome.ask_key}"),
        page.words("The same data on the command line:"),
        page.code("\n".join(outcome.next_commands)),
        "<footer>95 % intervals miss the truth in about one of twenty cases, so an occasional “no” is expected."
        "</footer>",
    ]
    return page.page("What can be learnt without holding anybody’s data?", parts)


def _collected(outcome: Outcome) -> list[str]:
    return [
        page.heading("Is anything lost when the collector is killed?"),
        page.words(
            f"{REAL_DEVICES} devices run the client for devices, with memory, ledger and queue on their disks. The "
            "others are "
            "simulated: their reports are drawn in bulk from the same law, and a request carries a hundred devices. "
            "Every "
            "week a third of the people answer, so that each answers once."
        ),
        page.rows(WEEKS_HEADER, map(week_cells, outcome.weeks)),
        page.words(outcome.crash_in_words),
    ]


def _answers(outcome: Outcome) -> list[str]:
    parts = []
    pictures = {
        shop.QUESTIONS[0][0]: ("ages", "People by age: estimates with 95 % intervals, and the truth"),
        shop.QUESTIONS[2][0]: ("weeks", "Orders by category and week: estimates with 95 % intervals, and the truth"),
        shop.CHANGED_ORDERS[0]: (
            "change",
            "Change of orders by category: estimates with 95 % intervals, and the truth",
        ),
    }
    for answer in outcome.answered:
        rows = (cells(*row) for row in answer.rows())
        parts += [page.heading(answer.title), page.code(answer.sql)]
        name, seen = pictures.get(answer.title, ("", ""))
        if name in outcome.pictures:
            parts.append(page.picture(outcome.pictures[name], seen))
        parts.append(page.rows(HEADER, rows))
    return [
        *parts,
        page.heading("When is an answer too uncertain?"),
        page.code(shop.TOO_MUCH),
        page.words(
            f"The answer is {outcome.too_much_in_words}. A standard error of 25 would take about "
            f"{outcome.people_needed_in_words}. A forecast shows this before anything is collected."
        ),
    ]


def _attackers(outcome: Outcome) -> list[str]:
    reached, allowed = outcome.attacks.odds
    parts = [
        page.heading("Can an attacker learn how many orders a person has?"),
        page.words(
            "The attacker sees how many reports each person sends and guesses how many orders she has. If every "
            "order is reported on its own, the guess is always right, however well each report is randomised. Here "
            "everybody sends the same number of reports, so they do not help the attacker at all."
        ),
        page.rows(
            ("guessed from", "right"), ((name, f"{share:.1%}") for name, share in outcome.attacks.guessed.items())
        ),
    ]
    if "attack" in outcome.pictures:
        parts.append(
            page.picture(outcome.pictures["attack"], "Reports a person sends, by the number of orders she has")
        )
    return [
        *parts,
        page.heading("Can an attacker tell two people apart?"),
        page.words(
            f"Two people differ in everything. {outcome.attacks.runs:,} times one of them is chosen by a coin, and the "
            "attacker sees all that she sends. He looks for the most revealing events in the first half of the runs, "
            "and "
            f"measures them in the second: they move even odds to {reached:.0f} to one at least. "
            f"ε = {outcome.attacks.claimed_epsilon:g} allows {allowed:.0f} to one. The promise is "
            f"{'REFUTED' if outcome.attacks.refuted else 'not refuted'}."
        ),
        page.heading("How far can a liar move an answer?"),
        page.rows(MOVED_HEADER, map(moved_cells, outcome.moved)),
        page.words(
            "Views and seeds are assigned, so a liar may choose his answer only. A third of the people answer a "
            "week, so each "
            "of them, liars included, stands for three. A report under a view of the liar’s own choice is refused "
            f"({outcome.lies.other_view}), and so is a second report ({outcome.lies.second_report})."
        ),
    ]


def _stream(outcome: Outcome) -> list[str]:
    parts = [
        page.heading("Is a shift of a live stream noticed?"),
        page.words(
            f"{meters.READINGS:,} meter readings are sent to the collector, which publishes one private number for "
            "each after "
            f"a warm-up of {meters.WARMUP_READINGS:,}. ε = {meters.EPSILON_PER_READING:g} protects one reading, and "
            "the "
            f"publisher is trusted. {outcome.shift_in_words}"
        ),
        page.rows(HEADER, (cells(*row) for row in outcome.published.rows)),
    ]
    if "stream" in outcome.pictures:
        parts.append(
            page.picture(outcome.pictures["stream"], "Mean watts over the stream: private with interval, and truth")
        )
    return parts


def _ledger(outcome: Outcome) -> list[str]:
    person = outcome.person
    return [
        page.heading("What has one person spent?"),
        page.words(
            f"Every device keeps a ledger of its own, with a limit of {LIMIT:g} here. After {shop.WEEKS} weeks it says "
            f"{person.spent:g}, and {left_of(person):g} is left."
        ),
        page.rows(("on what", "ε"), ((what, f"{epsilon:g}") for what, epsilon in person.charges)),
        page.words("To one more collection, which asks for more than that, the device answers:"),
        page.code(person.refusal),
    ]
