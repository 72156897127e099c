"""What pages say about the data of these experiments: all are drawn, the same ones for the same seed."""

ABOUT = {
    "LIVES": (
        "LIVES: drawn; ages from 1 to 95, geometric with mean 33. From one round to the next one person in twenty "
        "draws another age."
    ),
    "AGES": "AGES: nobody's; how far a report moves an answer does not depend on data.",
    "SHAPES": (
        "SHAPES: drawn; 4,000 people with a value from 0 to 199: normal; skewed (log-normal); spiky (half of them at "
        "one of three values); ties (multiples of ten only)."
    ),
    "CELLS": "CELLS: nobody's; variances of counts are exact.",
    "MESSAGES": "MESSAGES: nobody's; the bounds follow from ε, δ and the number of people.",
    "SHIFTING": (
        "SHIFTING: drawn; a stream of 65,536 geometric values with mean 7, which is ten times as large from value "
        "20,000 on."
    ),
    "WINDOWS": "WINDOWS: nobody's; variances of sums over windows are exact.",
    "PERSONS": "PERSONS: drawn; 32,768 events of 4,096 people, eight each on average, geometric values with mean 7.",
    "GROUPS": "GROUPS: made up; 600 people in each group, with the same ages from 0 to 9 in all, or in all but one.",
    "DEVICES": "DEVICES: drawn; the people of `deniable demo`.",
}
