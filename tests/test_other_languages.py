"""The client in JavaScript that the docs offer repeats every test vector; skipped where there is no Node.js."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from deniable.tables import Collection

ROOT = Path(__file__).parents[1]
CLIENT, VECTORS = ROOT / "docs" / "how-to" / "client.mjs", ROOT / "tests" / "golden" / "reports.json"
REPEAT = """
import { readFileSync } from "node:fs";
const { reports } = await import(process.argv[1]);
for (const one of JSON.parse(readFileSync(process.argv[2]))) {
  const draws = one.draws[Symbol.iterator]();
  const replay = (bound) => {
    const { value, done } = draws.next();
    if (done || BigInt(value[0]) !== bound) throw new Error(`drew below ${bound}`);
    return BigInt(value[1]);
  };
  const given = [one.specification, one.sha256, one.table, one.rows];
  console.log(JSON.stringify({ sent: reports(...given, replay), left: [...draws].length, fresh: reports(...given) }));
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_client_in_javascript_repeats_every_vector():
    command = [shutil.which("node"), "--input-type=module", "-e", REPEAT, str(CLIENT), str(VECTORS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    vectors, lines = json.loads(VECTORS.read_text()), done.stdout.splitlines()
    assert len(vectors) == len(lines) == 21
    for vector, line in zip(vectors, map(json.loads, lines), strict=True):
        assert (line["sent"], line["left"]) == (vector["reports"], 0)
        assert [one[:8] for one in line["fresh"]] == [one[:8] for one in vector["reports"]]


def test_the_sha_of_a_specification_is_that_of_its_file(tmp_path):
    """As the page says: of the file's bytes without the line's end."""
    shop = Collection.from_dict(json.loads(VECTORS.read_text())[0]["specification"])
    shop.save(tmp_path / "collection.json")
    assert hashlib.sha256((tmp_path / "collection.json").read_bytes().rstrip(b"\n")).hexdigest() == shop.sha256
