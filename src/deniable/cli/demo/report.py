"""The demonstration as a page that can be sent to somebody: report.html."""

from __future__ import annotations

from deniable.cli.demo import meters, page, shop
from deniable.cli.demo.outcome import HEADER, Outcome, cells


def report(outcome: Outcome) -> str:
    """The whole page."""
    parts = [
        page.words(
            f"{outcome.users:,} made-up people use two services. Their devices randomise their rows and send reports; "
            f"one ε = {outcome.collection.epsilon:g} covers all that a person sends. The server joins the reports and "
            "answers SQL. The truth stands beside each answer because these people are made up: no one has it "
            "otherwise."
        )
    ]
    for one in outcome.answered:
        parts += [page.heading(one.title), page.code(one.sql), page.rows(HEADER, (cells(*row) for row in one.rows()))]
    if outcome.ages_picture is not None:
        parts.append(page.picture(outcome.ages_picture, "People by age: estimates with 95 % intervals, and the truth"))
    parts += [
        page.heading("Who asks too much is told so"),
        page.code(shop.TOO_MUCH),
        page.words(
            f"Here that is {outcome.too_much_in_words}. For a standard error of 25 it would take about "
            f"{outcome.people_needed_in_words}, which could be known before anything was collected."
        ),
    ]
    parts += [
        page.heading("The frequency attack fails"),
        page.words(
            "The attacker sees how many reports each person sends and guesses how many orders she has. Where every "
            "order is reported on its own, however well each is randomised, the guess is always right. Here everybody "
            "sends the same number of reports, so the attacker can do no better than without any."
        ),
        page.rows(("guessed from", "right"), ((name, f"{share:.1%}") for name, share in outcome.attack.items())),
    ]
    if outcome.attack_picture is not None:
        parts.append(page.picture(outcome.attack_picture, "Reports a person sends, by the number of orders she has"))
    parts += [
        page.heading("A private stream"),
        page.words(
            f"{meters.READINGS:,} meter readings, one private number published for each after a warm-up of "
            f"{meters.WARMUP:,}. ε = {meters.EPSILON:g} protects one reading; whoever publishes is trusted. Values "
            f"above θ = {outcome.published.theta:g} watts, which was chosen privately, count as θ."
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
        "<footer>95 % intervals miss the truth in about one of twenty cases: a “no” now and then is as it should be."
        "</footer>",
    ]
    return page.page("deniable: what was asked, what was learnt", parts)
