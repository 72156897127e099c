"""Commands with odd arguments: each works, or ends with a message and 1 or 2."""
# ruff: noqa: E501, RUF001 - lists read best on few lines, and digits of other scripts are meant

import pytest

import deniable as dn
from command_line import run
from fuzzing.harness import SECRET, cases, fuzz

NUMBERS = [
    *(
        "0",
        "1",
        "-1",
        "2",
        "3",
        "7",
        "0.5",
        "1e-9",
        "1e-320",
        "1e9",
        "1e18",
        "1e300",
        "1e999",
        "nan",
        "inf",
        "-inf",
        "1/3",
    ),
    *(
        "",
        " ",
        "x",
        "²",
        "١",
        "1_0",
        "1,000",
        "0x10",
        "--",
        "-",
        "@",
        "1e6",
        "64",
        "100",
        "1000",
        "\udcff",
        "'",
        "9" * 30,
    ),
]
WINDOWS = [
    "0:9",
    ":",
    "9:0",
    "-1:5",
    "0:99999999999999999999",
    "..",
    "2024-01-01..",
    "..x",
    "x..y",
    "1:2:3",
    "",
    "\udcff",
    "a:b",
]
COMMANDS = [
    ["stream", "forecast", "--epsilon", "#", "--bound", "#", "--horizon", "#"],
    ["stream", "forecast", "--epsilon", "1", "--bound", "100", "--theta", "#", "--block", "#"],
    ["stream", "forecast", "--epsilon", "1", "--bound", "100", "--drift", "#", "--spread", "#"],
    ["stream", "publish", "--epsilon", "#", "--bound", "#", "--warmup", "9", "--horizon", "64", "values.txt"],
    ["stream", "publish", "--epsilon", "1", "--bound", "90", "--warmup", "#", "--horizon", "#", "values.txt"],
    ["stream", "publish", "--epsilon", "1", "--bound", "90", "--warmup", "9", "--low", "#", "--resolution", "#", "values.txt"],
    ["stream", "publish", "--epsilon", "1", "--bound", "90", "--warmup", "9", "--theta", "#", "--block", "#", "values.txt"],
    ["stream", "report", "--epsilon", "#", "--bound", "#", "--theta", "#", "values.txt"],
    ["stream", "report", "--epsilon", "1", "--bound", "9", "--first-uid", "#", "--name", "#", "values.txt"],
    ["stream", "collect", "--epsilon", "#", "--bound", "#", "--first", "#", "sent.jsonl"],
    ["stream", "collect", "--epsilon", "1", "--bound", "90", "--theta", "#", "--horizon", "#", "--every", "#", "sent.jsonl"],
    ["stream", "query", "private.parquet", "~", "~", "--confidence", "#"],
    ["stream", "query", "private.parquet", "~", "--mean", "--json"],
    ["forecast", "shop.toml", "SELECT COUNT(*) FROM users WHERE age < #", "--users", "#"],
    ["forecast", "shop.toml", "SELECT AVG(age) FROM users", "--error", "#", "--users", "#"],
    ["forecast", "shop.toml", "SELECT AVG(age) FROM users", "--users", "9", "--weights", "#"],
    ["query", "reports", "SELECT COUNT(*) FROM users WHERE age < 9", "--confidence", "#", "--weights", "#"],
    ["query", "reports", "SELECT COUNT(*) FROM users", "--dimension", "#=#", "--engine", "#"],
]  # fmt: skip


@pytest.fixture(scope="module")
def folder_of_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arguments")
    shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 20)), epsilon=2.0)
    shop.save(folder / "shop.toml")
    shop.perturb(users={"uid": range(SECRET, SECRET + 50), "age": [3, 9] * 25}, out=folder / "reports")
    (folder / "values.txt").write_text("".join(f"{value % 50}\n" for value in range(100)) + f"{SECRET}\n")
    sent = run("stream", "report", "--epsilon", "1", "--bound", "90", folder / "values.txt")
    (folder / "sent.jsonl").write_text(sent.stdout)
    publish = ["stream", "publish", "--epsilon", "1", "--bound", "90", "--warmup", "9", "--horizon", "64"]
    assert run(*publish, folder / "values.txt", "-o", folder / "private.parquet").returncode == 0
    return folder


@cases(200)
def test_odd_arguments(folder_of_files, monkeypatch, count):
    monkeypatch.chdir(folder_of_files)

    def attempt(chance):
        arguments = [
            part.replace("~", chance.choice(WINDOWS)).replace("#", chance.choice(NUMBERS), 1)
            for part in chance.choice(COMMANDS)
        ]
        done = run(*arguments, DENIABLE_TRACEBACK="1")
        assert done.returncode in (0, 1, 2), arguments
        assert str(SECRET) not in done.stderr

    assert set(fuzz(attempt, "odd arguments", count)) == {"works"}
