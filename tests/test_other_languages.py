"""The clients in JavaScript that the docs offer repeat every test vector; skipped where there is no Node.js."""

import hashlib
import json
import shutil
import subprocess
from datetime import date
from pathlib import Path

import pytest

from deniable.client import Client
from deniable.collection import Collection
from deniable.tables.schema.attributes import Categorical, Ordinal, Unplaceable

ROOT = Path(__file__).parents[1]
CLIENTS, VECTORS = ROOT / "docs" / "how-to", ROOT / "tests" / "golden"
REPEAT = """
import { readFileSync } from "node:fs";
const [folder, vectors] = process.argv.slice(1);
const { reports } = await import(`${folder}/client.mjs`);
const { streamReport } = await import(`${folder}/stream-client.mjs`);
for (const vector of JSON.parse(readFileSync(vectors))) {
  const draws = vector.draws[Symbol.iterator]();
  const replay = (bound) => {
    const { value, done } = draws.next();
    if (done || BigInt(value[0]) !== bound) throw new Error(`drew below ${bound}`);
    return BigInt(value[1]);
  };
  const read = (value) => (value?.date || value?.time ? new Date(value.date ?? `${value.time}Z`) : value);
  const readRow = (row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, read(value)]));
  const rows = vector.rows?.map(readRow);
  const report = vector.settings
    ? (below) => [streamReport(vector.settings, vector.value, vector.theta, below)]
    : (below) => reports(vector.specification, vector.sha256, vector.table, rows, below, vector.user);
  console.log(JSON.stringify({ sent: report(replay), left: [...draws].length, fresh: report() }));
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.parametrize("name", ["reports.json", "stream_reports.json"])
def test_clients_in_javascript_repeat_every_vector(name):
    command = [shutil.which("node"), "--input-type=module", "-e", REPEAT, str(CLIENTS), str(VECTORS / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    vectors, lines = json.loads((VECTORS / name).read_text()), done.stdout.splitlines()
    assert len(vectors) == len(lines)
    for vector, line in zip(vectors, map(json.loads, lines), strict=True):
        expected = vector.get("reports") or [vector["report"]]
        assert (line["sent"], line["left"]) == (expected, 0)
        # Version, coins, slot, round and tag (or phase) are the same whatever is drawn.
        size = len(expected[0]) // 2 if name == "reports.json" else 8
        assert [report[:size] for report in line["fresh"]] == [report[:size] for report in expected]


REPEAT_ROUNDS = """
import { readFileSync } from "node:fs";
const [folder, vectors] = process.argv.slice(1);
const { needsSecret, newSecret, reports } = await import(`${folder}/client.mjs`);
for (const { specification, sha256, table, rows, draws, user } of JSON.parse(readFileSync(vectors))) {
  let secret = null;
  const sent = rows.map((row, index) => {
    const drawn = draws[index][Symbol.iterator]();
    const replay = (bound) => {
      const { value, done } = drawn.next();
      if (done || BigInt(value[0]) !== bound) throw new Error(`drew below ${bound}`);
      return BigInt(value[1]);
    };
    if (needsSecret(specification)) secret ??= newSecret(replay);
    const made = reports(specification, sha256, table, row, replay, user, index + 1, secret);
    if ([...drawn].length) throw new Error("draws are left");
    return made;
  });
  const refused = [0, rows.length + 1, 1.5, null].filter((round) => {
    try {
      reports(specification, sha256, table, rows[0], undefined, user, round, secret);
    } catch (error) {
      return error.message.includes("round must be an integer from 1 to");
    }
  });
  console.log(JSON.stringify({ sent, refused: refused.length }));
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_client_in_javascript_repeats_every_vector_of_rounds():
    command = [
        shutil.which("node"),
        "--input-type=module",
        "-e",
        REPEAT_ROUNDS,
        str(CLIENTS),
        str(VECTORS / "rounds.json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    vectors, lines = json.loads((VECTORS / "rounds.json").read_text()), done.stdout.splitlines()
    assert [json.loads(line) for line in lines] == [{"sent": vector["reports"], "refused": 4} for vector in vectors]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_a_value_outside_its_domain_does_not_silence_the_client(tmp_path):
    (vector, *_) = json.loads((VECTORS / "reports.json").read_text())
    draws = []
    client = Client(Collection.from_dict(vector["specification"]), randbelow=lambda bound: draws.append(bound) or 0)
    sent = client.report("users", {"age": 200, "marital": "single"}).to_bytes().hex()
    vector |= {"rows": [{"age": 200, "marital": "single"}], "draws": [[str(bound), "0"] for bound in draws]}
    (tmp_path / "outside.json").write_text(json.dumps([vector]))
    command = [shutil.which("node"), "--input-type=module", "-e", REPEAT, str(CLIENTS), str(tmp_path / "outside.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["sent"] == [sent]


def test_the_sha_of_a_specification_is_that_of_its_file(tmp_path):
    """As the page says: of the file's bytes without the line's end."""
    shop = Collection.from_dict(json.loads((VECTORS / "reports.json").read_text())[0]["specification"])
    shop.save(tmp_path / "collection.json")
    assert hashlib.sha256((tmp_path / "collection.json").read_bytes().rstrip(b"\n")).hexdigest() == shop.sha256


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.parametrize("epsilon", ["inf", 65.0])
def test_clients_in_javascript_refuse_an_epsilon_without_noise(epsilon, tmp_path):
    """JSON has no infinity: a specification says "inf"."""
    (table, *_), (stream, *_) = (
        json.loads((VECTORS / name).read_text()) for name in ("reports.json", "stream_reports.json")
    )
    table["specification"]["epsilon"] = epsilon if epsilon == "inf" else 1000.0
    stream["settings"]["epsilon"] = epsilon
    for vector in (table, stream):
        (tmp_path / "one.json").write_text(json.dumps([vector]))
        command = [shutil.which("node"), "--input-type=module", "-e", REPEAT, str(CLIENTS), str(tmp_path / "one.json")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode
        assert "epsilon must be above 0 and at most 64" in done.stderr
        assert not done.stdout


POSITIONS = """
const [folder, asked] = process.argv.slice(1);
const { domainOf } = await import(`${folder}/client.mjs`);
for (const { attribute, values } of JSON.parse(asked)) {
  const domain = domainOf(attribute);
  const codes = values.map((value) => domain.position(value?.date ? new Date(value.date) : value));
  console.log(JSON.stringify(codes.map((code) => (code === null || code < 0 || code >= domain.size ? -1 : code))));
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_rules_of_a_specification_mean_the_same_in_javascript():
    numbers = [None, -3, 0, 3, 7, 400, 1.5, 2.5, 2.675, -0.4, 99.6, 100.4, 0.005, 4.76, "x", True]
    dates = [None, "2023-12-31", "2024-02-29", "2030-01-01"]
    asked = [
        (Ordinal(0, 100), numbers),
        (Ordinal(0, 100, outside="clip"), numbers),
        (Ordinal(0, 100, round=True, missing=3), numbers),
        (Ordinal("0.5", "9.5", "0.25", outside="clip", round=True, missing="1.5"), numbers),
        (Ordinal("0", "9.99", "0.01", round=True), numbers),
        (Ordinal(date(2024, 1, 1), date(2024, 12, 31), outside="clip", missing=date(2024, 6, 1)), dates),
        (Categorical("male", "female", "?", map={"M": "male"}, other="?"), ["male", "M", "odd", None, 3]),
        (Categorical("a", "b", missing="b"), ["a", "z", None]),
    ]
    expected = []
    for domain, values in asked:
        of_dates = values is dates
        given = [date.fromisoformat(value) if of_dates and value else value for value in values]
        expected.append([position(domain, value) for value in given])
    sent = [
        {
            "attribute": domain.to_dict(),
            "values": [{"date": value} if values is dates and value else value for value in values],
        }
        for domain, values in asked
    ]
    command = [shutil.which("node"), "--input-type=module", "-e", POSITIONS, str(CLIENTS), json.dumps(sent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected


def position(domain, value):
    try:
        return domain.encode(value)
    except Unplaceable:
        return -1
