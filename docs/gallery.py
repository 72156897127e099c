"""Draws the charts of the gallery: questions about made-up people, answered from their reports, next to the truth.

`make pages` runs it. Everything is seeded, so that the same charts come out.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import deniable as dn
from deniable.cli.demo import shop
from deniable.queries.answers.answer_plot import draw

IMAGES = Path(__file__).parent / "images"
SQL_BY_NAME = {
    "gallery-ages": "SELECT FLOOR(age / 10) * 10 AS ages, COUNT(*) AS people FROM users GROUP BY ages ORDER BY ages",
    "gallery-spending": "SELECT marital, AVG(amount) AS amount FROM orders JOIN users USING (uid) GROUP BY marital "
    "ORDER BY marital",
    "gallery-categories": "SELECT category, COUNT(*) AS orders, AVG(amount) AS amount FROM orders GROUP BY category "
    "ORDER BY category",
    "gallery-amounts": "SELECT FLOOR(amount / 50) * 50 AS euros, COUNT(*) AS orders FROM orders GROUP BY euros "
    "ORDER BY euros",
}
USERS = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical(*shop.MARITAL))
ORDERS = dn.Table("orders", many=10, amount=dn.Ordinal(0, 500), category=dn.Categorical(*shop.ORDER_CATEGORIES))


def database(people: shop.Shop) -> Any:
    """The reports of everybody, under a design that suits no question in particular."""
    users, orders = people.from_person(0)
    collection = dn.Collection(USERS, ORDERS, epsilon=8.0)
    reports = collection.perturb(
        users=users.drop_columns(["city"]), orders=orders, source=dn.SeededSource(2), simulation=True
    )
    return dn.connect(reports)


def trend() -> None:
    """A year of monthly rounds, and the curve through them."""
    use = dn.Table("use", minutes=dn.Ordinal(0, 240))
    app = dn.Collection(use, epsilon=4.0, name="app", coins="assigned", rounds=dn.Rounds(12, every="month"))
    random, truth = np.random.default_rng(5), []
    with tempfile.TemporaryDirectory() as parent:
        reports = Path(parent, "reports")
        for month in range(1, 13):
            minutes = np.clip(random.normal(60 + 3 * month, 30, 60_000), 0, 240).round().astype(np.int64)
            people = {"uid": [f"p{number}" for number in range(60_000)], "minutes": minutes}
            app.perturb(use=people, round=month, out=reports, source=dn.SeededSource(month), simulation=True)
            truth.append(float(minutes.mean()))
        followed = dn.connect(reports).trend("SELECT AVG(minutes) AS minutes FROM use", moves=4.0)
    draw(followed, IMAGES / "gallery-trend.png", truth=dict.fromkeys(followed.answers, truth), dpi=90)


def main() -> None:
    """Draw them all."""
    people = shop.made_up(200_000)
    asked, true_answers = database(people), shop.TrueAnswers([people])
    for name, sql in SQL_BY_NAME.items():
        answered = shop.ask(asked, true_answers, name, sql)
        draw(answered.result, IMAGES / f"{name}.png", truth=answered.truth, dpi=90)
    trend()


if __name__ == "__main__":
    sys.exit(main())
