"""The options of an answer are one value, which is checked when it is made."""

import inspect
from dataclasses import fields

import pytest

import deniable as dn
from deniable.errors import InvalidParameter

USERS = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 20)), epsilon=2.0)


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("weights", "best", "weights are unknown"),
        ("sums", "rounded", "sums are unknown"),
        ("confidence", 1, "confidence must lie between 0 and 1"),
        ("confidence", float("nan"), "confidence must lie between 0 and 1"),
        ("confidence", True, "confidence must lie between 0 and 1"),
        ("postprocess", "smooth", "postprocess is unknown"),
        ("unbiased", "no", "unbiased must be True or False"),
        ("simultaneous", 1, "simultaneous must be True or False"),
        ("clip", None, "clip must be True or False"),
        ("nonnegative", "yes", "nonnegative must be True or False"),
    ],
)
def test_a_wrong_option_is_refused_by_name(option, value, problem):
    with pytest.raises(InvalidParameter, match=problem):
        dn.AnswerOptions(**{option: value})
    database = dn.connect(USERS.perturb(users={"uid": [1], "age": [3]}))
    with pytest.raises(InvalidParameter, match=problem):
        database.sql("not even SQL", **{option: value})


def test_sql_takes_every_option_with_the_same_default():
    keywords = inspect.signature(dn.Database.sql).parameters
    assert {name: keywords[name].default for name in keywords if name not in ("self", "text")} == {
        field.name: field.default for field in fields(dn.AnswerOptions)
    }
    for method in (dn.Database.plan, dn.Database.explain):
        planned = inspect.signature(method).parameters
        assert all(planned[name].default == keywords[name].default for name in ("weights", "sums", "unbiased"))


def test_keywords_and_the_value_give_the_same_answer():
    frame = {"uid": range(200), "age": [1 + number % 20 for number in range(200)]}
    database = dn.connect(USERS.perturb(users=frame))
    text = "SELECT age, COUNT(*) AS n FROM users GROUP BY age"
    changes = {"weights": "greedy", "confidence": 0.8, "simultaneous": True, "clip": True}
    assert database.answer(text, dn.AnswerOptions(**changes)) == database.sql(text, **changes)
    assert database.sql(text, **changes) != database.sql(text)
