"""What the page on clients in other languages says about specifications; `make javascript` tests the client itself."""

import hashlib
import json
from pathlib import Path

from deniable.collection import Collection
from fuzzing.client_cases import random_case

VECTORS = Path(__file__).parent / "golden"


def test_the_sha_of_a_specification_is_that_of_its_file(tmp_path):
    """As the page says: of the file's bytes without the line's end."""
    shop = Collection.from_dict(json.loads((VECTORS / "reports.json").read_text(encoding="utf-8"))[0]["specification"])
    shop.save(tmp_path / "collection.json")
    assert hashlib.sha256((tmp_path / "collection.json").read_bytes().rstrip(b"\n")).hexdigest() == shop.sha256


def test_cases_for_other_clients_come_out_the_same_and_show_everything():
    cases = [random_case("seed", number) for number in range(60)]
    assert cases == [random_case("seed", number) for number in range(60)]
    assert any("accepted" in case for case in cases)
    assert any("stream" in case for case in cases)
    assert any(case.get("refused") for case in cases)
    assert any(case.get("reports") for case in cases)
