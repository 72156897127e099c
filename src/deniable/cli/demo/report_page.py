"""The demonstration as a page to send to somebody: report.html."""

from __future__ import annotations

from deniable.cli.demo import meters, page, shop
from deniable.cli.demo.outcome import HEADER, Outcome, cells


def report(outcome: Outcome) -> str:
    """The whole page."""
    parts = [
        page.words(
            f"{outcome.users:,} made-up people use two services. Their devices randomise their rows and send reports; "
            f"one ε = {outcome.collection.epsilon:g} covers all that a person sends. The server joins the reports and "
            "answers SQL. The truth is shown next to each answer because these people are made up. Otherwise nobody "
            "knows it."
        )
    ]
    for answer in outcome.answered:
        rows = (cells(*row) for row in answer.rows())
        parts += [page.heading(answer.title), page.code(answer.sql), page.rows(HEADER, rows)]
    if outcome.ages_picture is not None:
        parts.append(page.picture(outcome.ages_picture, "People by age: estimates with 95 % intervals, and the truth"))
    parts += [
        page.heading("An answer says when it is too uncertain"),
        page.code(shop.TOO_MUCH),
        page.words(
            f"The answer is {outcome.too_much_in_words}. A standard error of 25 would take about "
            f"{outcome.people_needed_in_words}. A forecast shows this before anything is collected."
        ),
    ]
    parts += [
        page.heading("The frequency attack fails"),
        page.words(
            "The attacker sees how many reports each person sends and guesses how many orders she has. If every "
            "order is reported on its own, the guess is always right, however well each report is randomised. Here "
            "everybody sends the same number of reports, so they do not help the attacker at all."
        ),
        page.rows(("guessed from", "right"), ((name, f"{share:.1%}") for name, share in outcome.attack.items())),
    ]
    if outcome.attack_picture is not None:
        parts.append(page.picture(outcome.attack_picture, "Reports a person sends, by the number of orders she has"))
    parts += [
        page.heading("A private stream"),
        page.words(
            f"{meters.READINGS:,} meter readings. After a warm-up of {meters.WARMUP_READINGS:,}, one private number is "
            f"published for each. ε = {meters.EPSILON_PER_READING:g} protects one reading, and the publisher is "
            f"trusted. Values above θ = {outcome.published.theta:g} watts, which was chosen privately, count as θ."
        ),
        page.rows(HEADER, (cells(*row) for row in outcome.published.rows)),
    ]
    if outcome.stream_picture is not None:
        parts.append(
            page.picture(outcome.stream_picture, "Mean watts over the stream: private with interval, and truth")
        )
    parts += [
        page.heading("Try next"),
        page.code("\n".join(outcome.next_commands)),
        "<footer>95 % intervals miss the truth in about one of twenty cases, so an occasional “no” is expected."
        "</footer>",
    ]
    return page.page("deniable: what was asked, what was learnt", parts)
