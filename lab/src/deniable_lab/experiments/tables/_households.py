"""Households and the people in them: the tables of the case study, and how they are collected."""

from __future__ import annotations

from deniable.tables.schema.attributes import Categorical, Ordinal, Table
from deniable_lab.experiments.harness import Data
from deniable_lab.experiments.table_data import AGES, FILING, INCOMES, MANY, STATES, WEST, households
from deniable_lab.experiments.tables._errors import Study
from deniable_lab.experiments.tables._lines import OURS

COUNTRY, REGION = "country", "west"
ROWS = {COUNTRY: 3_420_000, REGION: 7_560_000}
"""People in each sample: as many as the paper has in Indiana and in Illinois."""
METHODS = ("HIO-JOIN", "HIO-JOIN-RDC", *OURS)
ASSUMED = (
    "Assumed and different: tax units stand for persons, filing status for race, California for the city (a tenth of "
    "the country, as Indianapolis is of Indiana; two fifths of the western states, as Chicago is of Illinois); persons "
    "have no sex here, so there are three attributes, not four."
)


def study(sample: str, rows: int, data: Data, sizes: tuple[float, ...] = ()) -> Study:
    """Homes have a state; people have a status, an age and an income. `sizes` are those of `households`."""
    file = data.file("tables", "cps_households")
    folder = None if file is None or data.file("tables", "cps_tax_units") is None else file.parent
    homes = Table("homes", state=Categorical(*(WEST if sample == REGION else STATES)))
    people = Table(
        "people",
        many=MANY,
        status=Categorical(*FILING),
        age=Ordinal(1, AGES),
        income=Ordinal(0, INCOMES - 1),
    )
    return Study(households(rows, sample == REGION, folder, sizes), (homes, people))


def name_of(data: Data) -> str:
    """What results call the data."""
    real = data.file("tables", "cps_households") and data.file("tables", "cps_tax_units")
    return "CPS" if real else "CPS stand-in"
