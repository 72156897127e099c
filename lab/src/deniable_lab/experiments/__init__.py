"""Every table and figure of both papers, one file each: `streams/` for [WCZ21], `tables/` for [XDW20].

`beyond/` has one file for each claim that goes further than they do.

A file in one of these folders is an experiment: it defines EXPERIMENT, a `harness.Experiment`, and appears in
`deniable reproduce` under its path, `streams/overall` for `streams/overall.py`. Files that begin with an underscore are
shared by others. How to write one:

    from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting

    def settings(data: Data, quick: bool) -> list[Setting]:
        return [{"data": name, "epsilon": e} for name in ("SYN-1",) for e in (0.5, 1.0, 2.0)]

    def measure(setting: Setting, seed: int, data: Data) -> Measured:
        ...                                     # pure: the same seed gives the same numbers, in any process
        return {"MSE": error}                   # or [({"volume": 0.1}, {"MSE": error}), …] if a run has several results

    def plot(rows: Rows, figure: Any) -> None:
        axes = figure.subplots()
        for method, line in rows.of("MSE").split("method"):
            axes.errorbar(line.column("epsilon"), line.means, line.stderrs, label=method)

    def describe(rows: Rows) -> str:
        return f"Ours is {ratio:.1f} times better; the paper prints …"       # the result, the paper's figure and ours

    EXPERIMENT = Experiment("Error by ε", "[XDW20, Fig. 6]", settings, measure, plot, describe, repetitions=(3, 20))

Every setting names its `data`; `Data.about` has the sentence that says what that is, real or stand-in. `running.py`
repeats every setting, with seeds 0, 1, …, over processes, and keeps finished runs on disk, so that an interrupted
command goes on where it was. `writing.py` writes the CSV, the picture and the page.
"""
