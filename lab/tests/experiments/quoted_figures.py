"""Numbers of pages that no committed CSV has, by page, each with its source: a setting, a paper, data or a command."""

BENCH_BURSTS = "deniable bench streams --part bursts --repetitions 25"
BENCH_PEERS = "deniable bench peers --runs 5"

PEER_ROWS = (
    "| 16 counts of 20,000 users, randomized response | pure-ldp 1.2 | 0.89 to 1.05 | 36 to 38 | 0.42 to 0.44 | 16 |",
    "| multi-freq-ldpy 0.2.5 | 0.91 to 1.05 | 23 to 24 | 0.42 to 0.44 | 10 |",
    "| 128 counts of 10,000 users, local hashing | pure-ldp | 0.94 to 1.00 | 620 to 770 | 1.2 to 1.4 | 880 to 900 |",
    "| multi-freq-ldpy | 0.96 to 1.04 | 650 to 800 | 1.2 to 1.4 | 910 to 930 |",
    "| marginals of 3 attributes, 20,000 users | multi-freq-ldpy | 0.66 to 0.76 | 1.7 to 1.9 | 77 to 83 | 140 to 150 |",
    "| noise on 10,000 counts | diffprivlib 0.6.6 | 1.00 | 63 to 130 | 0.65 to 1.3 | 80 to 85 |",
    "| OpenDP 0.16 | 0.99 to 1.00 | 67 to 130 | 0.65 to 1.3 | 86 to 88 |",
    "percentile 99.5 of 65,536 values, noisy max | diffprivlib | 0.40 to 0.61 | 110 to 170 | 0.43 to 0.66 | 72 to 73 |",
    "| OpenDP | 1.00 | 83 to 120 | 0.43 to 0.66 | 53 to 58 |",
    "| … smooth sensitivity, the baselines' way | diffprivlib | 0.001 to 0.005 | 11 | 6.7 to 6.8 | 72 to 73 |",
    "| OpenDP | 0.002 to 0.007 | 7.8 to 8.2 | 6.7 to 6.8 | 53 to 56 |",
    "| sums over 200 ranges of 4,096 values, tree b = 2 | OpenDP | 0.96 to 1.11 | 21 to 23 | 3.4 to 3.6 | 77 to 79 |",
    "| … tree b = 16 | OpenDP | 1.12 to 1.28 | 30 to 32 | 1.3 to 1.5 | 42 to 43 |",
)

RESULTS_PAGE = {
    "it has 2.0 ± 0.1 times (0.84 ± 0.11 at ε = 0.01, 4.7 ± 0.6 at ε = 0.1), because": BENCH_BURSTS,
    "fan-out 16 instead of 2": "setting",
    "The 99.9th percentile": "setting",
    "figures other than 1, 3 and 10": "[WCZ21]",
    "grid of 11 and 12": "findings of this page",
    "(without assumptions: see 11)": "findings of this page",
    "in the geometric mean of 48 cells": "cells of [XDW20, Table 2]",
    "in the geometric mean of 12 cells": "cells of [XDW20, Table 2]",
    "the survey's 1.4 tax units per household": "data: CPS; the page of the study",
    "those of 1940, the paper's year (3.7 persons)": "Statistical Abstract of the United States 2008",
    "on 500 categories": "setting of [XDW20]",
    "saying 0": "a value that is published, not measured",
    "41 % work exactly 0 hours and 23 % exactly 40": "data: ATUS",
    "on 2026-11-17 with a load of 1.4 on 2 cores": BENCH_PEERS,
    "five runs of 8 repetitions": "setting",
    "above 1, ours is better": "no measurement",
    **dict.fromkeys(PEER_ROWS, BENCH_PEERS),
}

SECTIONS = {
    "streams.md": {
        "How often intervals cover the truth": ("deniable bench streams --part intervals",),
        "Accuracy and speed": ("deniable bench streams --part defaults",),
        "How θ is chosen": (
            "deniable bench streams --local --part alternatives --repetitions 10",
            "deniable bench streams --local --part tails --repetitions 2",
        ),
        "Accuracy and speed without trust": ("deniable bench streams --local --part errors",),
    },
    "grids.md": {
        "Measured errors": ("deniable bench accuracy --grids",),
        "Drawn tables": ("deniable bench zoo --quick",),
    },
    "spark.md": {"How fast it is": ("deniable bench spark",)},
    "background/ideas.md": {"How good the hash is": ("deniable bench hash",)},
}
"""By page and heading: the commands that print the figures of a section, which has to name them."""

DOCS_PAGES = {
    "streams.md": {
        "variance of the tree by 14 %": "a formula: (16/15)²",
        "renewed early and often: after 1,024 values": "setting",
        "they are 256 to 4,096, by ε (64/ε)": "setting",
        "four times as long, it is 1/4": "setting",
        "its warm-up is 65,536 values by default": "setting",
        "1/16 of it pays for what the next epoch is told": "setting",
        "has 0.77 times the variance that the best tree gives over 2^20 leaves, and 0.86 times over 128": (
            "deniable bench streams --part variances"
        ),
        "and about 200 of them": "setting",
        "2024-01-31T12:00": "an example",
        "mode 0600": "setting",
        "16 bytes": "setting",
        "65,536 by default": "setting",
        "the mean of 1,000 estimates": "setting of the example",
        "A quiet key takes about 120 bytes": "the test of quiet keys",
        "8 bytes per block": "setting",
    },
    "grids.md": {
        "on a domain up to 99,999 gives 0 a cell": "an example",
        "more than 400 cells": "setting",
        "a coarse view with 2 % of the reports": "setting",
        "by at most 5 %": "setting",
        "41 % exactly 0, 23 % exactly 40": "data: ATUS",
        "(finding 12 of": "a finding of the results",
    },
    "spark.md": {
        "pyspark 4": "version",
        "Java 17": "version",
        "Spark 4": "version",
        "about 300 MiB each": "deniable bench spark",
        "sets to 65,536": "setting",
    },
    "queries.md": {
        "shop of 50,000 made-up people": "setting",
        "up to 64 disjoint terms": "setting",
        "Up to 200 cells are answered this way": "setting",
        "are 95 % by default": "setting",
        "an average of 9.6 ± 5.7 goes with a variance that is about 32 too low": "an example: 5.7² = 32",
        "over 200 simulated collections": "setting of the test suite",
        "fewer than about 30 users": "setting",
        "95 % intervals cover the truth in two thirds of 60 collections": "the test of effective users",
        "a standard error of 1 % of them": "setting of the example",
        "--users 1000000": "setting of the example",
    },
    "tables.md": {
        'texts: 7 and "7" are the same user, "007" is another': "an example",
        "181,335 people in a one-row table, and their 2,094,140 diary rows": "data: ATUS",
        "The true numbers are 15,955, 12,613 and 3,156": "the data of the example, which is seeded",
        "32 bytes": "setting",
        "more than 1 % of a table's rows": "setting",
    },
    "how-to/choose.md": {
        "a standard error of 0.5 % of them": "setting of the example",
    },
    "how-to/domains.md": {},
    "how-to/read-a-release.md": {},
    "how-to/read-an-audit.md": {
        "at most e^ε/(1 + e^ε)": "a formula",
        "the command exits with 1": "setting",
        "a false-alarm rate of 10⁻⁹ and an audit tests fewer than 1,000 events": "settings",
    },
    "how-to/compare-a-mechanism.md": {
        "kept with probability 1/2, and each other bit is set with probability 1/(e^ε + 1)": "the law of the example",
        "one input per run, 0 or 1": "setting",
        "as far as ten runs can show (± 6 %)": "the example on the page, which is seeded",
        "reports of 64 bits": "setting of the example",
    },
    "../README.md": {
        "(3.11 or newer": "version",
        "The true average is 299.5": "the data of the example, which is seeded",
        "stands in for 200,000 devices": "setting of the example",
        "95 %": "setting",
        "shows 200,000 made-up people": "setting of the example",
        "the report with the age gets 2": "setting of the example: half of ε = 4",
        "two reports of one value cost 2ε": "sequential composition",
        "aged 20 to 40 spend on sports": "setting of the example",
        "200,000 people at ε = 4, of whom a third answer a week": "setting of the example",
        "A standard error of 25": "setting of the example",
        "may be 55 times as likely": "a formula: e^4",
        "version 0.2": "version",
    },
    "index.md": {
        "200,000 made-up devices": "setting of the example",
        "Half of these 50,000 made-up people are younger than 40": "setting of the example",
        "The true number is 25,000": "the data of the example",
    },
    "privacy.md": {
        "[XDW20, Definition 3]": "a part of a paper",
        "of 32 bytes each": "setting",
        "Every report has 16 bytes": "setting",
        "δ = 2^-40": "setting",
        "at most ε/16": "setting",
        "(ε/4 in epochs that are followed by one four times as long)": "setting",
        "a count, by at most 1": "proof",
        "max(v − θ, 0)": "proof",
        "the smaller of 3θ": "proof",
        "[0, θ]": "proof",
        "at 64 bits": "setting",
        "for ε = 4, a hundred thousand people and δ = 10^-9 to 0.235": "deniable check shop.toml --shuffled 100000",
        "from her absence: 2ε": "proof",
        "2ε for two of them": "the enumeration in the test suite",
        "2ε for two behaviours": "the enumeration in the test suite",
        "An ε above 64 per report": "setting",
        "outside [0, bound]": "setting",
        ", NaN) as 0": "setting",
    },
    "tutorials/streams.md": {
        "The mean of 1,440 readings, 24 minutes, will have a standard error of about 40 watts": "the page's forecast",
        "The mean of 65,536 readings, most of a day, will have less than 2": "the page's forecast",
        "The first 256 readings": "setting",
        "95 %": "setting",
    },
    "tutorials/tables.md": {"off by about 0.9 % of the users": "the page's forecast"},
    "background/ideas.md": {
        "by a fifth per free attribute at fan-out 5": "a formula: 1/fan-out",
        "multiple of 2^-64": "setting",
        "compares 64 random bits with the first 64 digits": "setting",
        "⌊p·2^n⌋": "a formula",
        "1/(1 + e^x)": "a formula",
        "1/(1 + e^(2^i/scale))": "a formula",
        "inputs 0..n−1": "a formula",
        "a random range is 926/ε² with fan-out 16 and 916/ε² with 17, against 1196/ε²": (
            "deniable bench streams --part variances"
        ),
        "a random prefix 732/ε² and 675/ε², against 852/ε²": "deniable bench streams --part variances",
        "Below 64 leaves": "deniable bench streams --part variances",
        "1/(2·N_0)": "a formula",
    },
    "background/papers.md": {
        "(ε twice is 2ε)": "sequential composition",
        "ages 20 to 40": "an example",
        "the noise of 21 of them": "an example: both ends count",
        "cannot answer 23 to 37": "an example",
    },
    "background/sharp-edges.md": {
        "ε∞ = 1.5": "setting",
        "told apart by e^7.4, not e^4.5": "the enumeration in the test suite",
        "400 that differ by 10^-9": "an attack in the test suite",
        "the first 20,480 rows": "setting",
        "17,280 readings a day": "one every five seconds",
        "365·ε": "an example",
        "An ε above 64": "setting",
        "below 10^-27": "a formula: e^-64",
        "mode 0700": "setting",
        "128 bits each": "setting",
        "less than 2^-128": "a formula",
        "beyond 45 scales": "a formula: e^-45 is about 2^-64",
        "65,536 values take 0.1 s, evenly spaced ones up to 10 s": "seen once, on a machine like yours or not",
        "**95 % means 95 %.** Of 20 groups": "a formula: one in twenty",
        "An estimate of −130 ± 1,100 people": "an example",
    },
}
"""By page: numbers outside these sections.

Pages that describe formats, settings and protocols claim nothing that was measured; the tests of those hold them.
"""
