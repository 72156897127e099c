"""Numbers of pages that no committed CSV has, by page, each with its source: a setting, a paper, data or a command."""

BENCH_BURSTS = "deniable bench streams --part bursts --repetitions 25"
BENCH_PEERS = "deniable bench peers"
BENCH_TAILS = "deniable bench streams --local --part tails --repetitions 20"

RESULTS_PAGE = {
    "it has 2.0 ± 0.1 times (0.84 ± 0.11 at ε = 0.01, 4.7 ± 0.6 at ε = 0.1), because": BENCH_BURSTS,
    "fan-out 16 instead of 2": "setting",
    "The 99.9th percentile": "setting",
    "with B = 5,000 it has 9.2 ± 0.9 times at ε = 0.5 and 7.4 ± 0.2 times at ε = 2 there": BENCH_TAILS,
    "figures other than 1, 3 and 10": "[WCZ21]",
    "grid of 11 and 12": "findings of this page",
    "(without assumptions: see 11)": "findings of this page",
    "the survey's 1.4 tax units per household": "data: CPS; the page of the study",
    "those of 1940, the paper's year (3.7 persons)": "Bureau of the Census, historical table HH-4",
    "on 500 categories": "setting of [XDW20]",
    "saying 0": "a value that is published, not measured",
    "41 % work exactly 0 hours and 23 % exactly 40": "data: ATUS",
    "one run of 8 repetitions": "setting",
    "above 1, ours is better": "no measurement",
    "| 16 counts of 20,000 users, randomized response | pure-ldp 1.2 | 1.12 ± 0.12 | 97 |": BENCH_PEERS,
    "| multi-freq-ldpy 0.2.5 | 0.98 ± 0.07 | 48 |": BENCH_PEERS,
    "| 128 counts of 10,000 users, local hashing | pure-ldp | 0.98 ± 0.04 | 1,700 |": BENCH_PEERS,
    "| multi-freq-ldpy | 1.05 ± 0.05 | 1,100 |": BENCH_PEERS,
    "| marginals of 3 attributes, 20,000 users | multi-freq-ldpy | 0.75 ± 0.06 | 1.7 |": BENCH_PEERS,
    "| noise on 10,000 counts | diffprivlib 0.6.6 | 1.00 | 170 |": BENCH_PEERS,
    "| OpenDP 0.16 | 1.00 | 160 |": BENCH_PEERS,
    "| percentile 99.5 of 65,536 values, noisy max | diffprivlib | 0.54 ± 0.09 | 320 |": BENCH_PEERS,
    "| OpenDP | 1.00 | 210 |": BENCH_PEERS,
    "| … smooth sensitivity, the baselines' way | diffprivlib | 0.005 | 13 |": BENCH_PEERS,
    "| OpenDP | 0.009 | 10 |": BENCH_PEERS,
    "| sums over 200 ranges of 4,096 values, tree b = 2 | OpenDP | 1.07 ± 0.04 | 26 |": BENCH_PEERS,
    "| … tree b = 16 | OpenDP | 1.27 ± 0.08 | 61 |": BENCH_PEERS,
}
