"""Real people's answers, where the development data are present: a household survey and its members, one to many."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.randomness import SeededSource

DATA = Path(__file__).parents[3] / "shared" / "data" / "tables"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the development data are not here: {DATA.name} beside the checkout"
)

PEOPLE = dn.Table(
    "people", age=dn.Ordinal(0, 95), marital=dn.Categorical(range(8)), sex=dn.Categorical(range(3)), state=dn.Public()
)
ACTIVITIES = dn.Table("activities", many=10, minutes=dn.Ordinal(1, 1440), tier1=dn.Categorical(range(1, 51)))


@pytest.mark.parametrize("design", ["hio", "ahio", "ehio"])
def test_a_time_use_survey_with_a_diary(design):
    collection = dn.Collection(PEOPLE, ACTIVITIES, epsilon=2.0, design=design)
    reports = collection.perturb(
        people=DATA / "atus_demographics.parquet", activities=DATA / "atus_activities.parquet", key="person_id"
    )
    people, diary = reports.summaries["people"], reports.summaries["activities"]
    assert (people.rows, people.users, people.reports) == (181_335, 181_335, 181_335)
    assert (diary.rows, diary.users, diary.reports) == (2_094_140, 181_335, 181_335)
    assert (people.rejected, diary.rejected) == ({}, {})
    database = dn.connect(reports)
    assert not database.refused["people"]
    assert not database.refused["activities"]


def test_a_count_from_the_reports_of_real_people():
    # Marital status alone: the two views that see it tell how many are married, within five standard errors.
    collection = dn.Collection(dn.Table("people", marital=dn.Categorical(range(8))), epsilon=2.0)
    path = DATA / "atus_demographics.parquet"
    reports = collection.perturb(people=path, key="person_id", source=SeededSource(1), simulation=True)["people"]
    view = collection.design_of("people").view(1)
    y = reports["y"].to_numpy()[reports["view"].to_numpy() == 1]
    estimate = view.oracle.estimate(y) / float(view.probability)
    truth = np.bincount(pq.read_table(path)["marital"].to_numpy(), minlength=8)
    # Half of the people saw this view: sampling them adds count · (1 − π)/π to the oracle's own variance.
    deviation = np.sqrt(4 * view.oracle.variance(len(y), truth / 2) + truth)
    assert (np.abs(estimate - truth) < 5 * deviation).all()
