"""Collections that arrive in parts: several folders, patterns, folders that grow, object stores."""

import shutil
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.engines.collecting.gathering import ANOTHER
from deniable.errors import BadInput

SHOP = dn.Collection(dn.Table("users", age=dn.Ordinal(0, 9)), epsilon=float("inf"), design="mg")
COUNT = "SELECT COUNT(*) AS n, SUM(age) AS s FROM users"


def write(folder, ids, age=3, key="uid"):
    frame = {key: list(ids), "age": [age] * len(ids)}
    SHOP.perturb(users=frame, out=folder, key=key, source=dn.SeededSource(1), simulation=True)
    return folder


def answered(database):
    (row,) = database.sql(COUNT)
    return row["n"].value, row["s"].value


@pytest.mark.parametrize("memory_limit", [2**30, 0])
def test_folders_of_one_specification_are_one_collection(tmp_path, memory_limit):
    """The first report of a user counts; the same again is nothing, another one is refused, as in gather."""
    first, second, third = (tmp_path / name for name in ("2024-01", "2024-02", "2024-03"))
    write(first, range(10)), write(second, range(5, 20), age=3), write(third, range(15, 25), age=4)
    for opened in ([first, second, third], str(tmp_path / "2024-*")):
        database = dn.connect(opened, memory_limit=memory_limit)
        assert answered(database) == (25, 20 * 3 + 5 * 4)
        assert database.refused["users"] == {ANOTHER: 5}


def test_new_files_are_read_at_the_next_question(tmp_path):
    database = dn.connect(write(tmp_path / "reports", range(10)))
    assert answered(database) == (10, 30)
    assert not database.refresh()
    more = write(tmp_path / "more", range(10, 14))
    shutil.copy(more / "users" / "part-0.parquet", tmp_path / "reports" / "users" / "part-1.parquet")
    assert answered(database) == (14, 42)
    growing = dn.connect(f"{tmp_path}/mo*")
    write(tmp_path / "most", range(20, 22))
    assert growing.refresh()
    assert answered(growing) == (6, 18)


def test_folders_of_another_specification_are_refused(tmp_path):
    write(tmp_path / "a", range(3))
    other = dn.Collection(dn.Table("users", age=dn.Ordinal(0, 8)), epsilon=float("inf"), design="mg")
    other.perturb(users={"uid": [7], "age": [1]}, out=tmp_path / "b", source=dn.SeededSource(1), simulation=True)
    with pytest.raises(BadInput, match="another specification"):
        dn.connect(f"{tmp_path}/*")
    with pytest.raises(BadInput, match="no folder of reports matches 'none-"):
        dn.connect(f"{tmp_path}/none-*")


def test_the_name_of_the_id_is_that_of_the_data(tmp_path):
    tables = (dn.Table("users", age=dn.Ordinal(0, 9)), dn.Table("jobs", pay=dn.Ordinal(0, 9)))
    shop = dn.Collection(*tables, epsilon=float("inf"), design="mg")
    frames = {"users": {"customer_id": [1, 2], "age": [1, 2]}, "jobs": {"customer_id": [2, 3], "pay": [5, 6]}}
    made = {"key": "customer_id", "source": dn.SeededSource(1), "simulation": True}
    for reports in (shop.perturb(**frames, **made), shop.perturb(**frames, **made, out=tmp_path / "reports")):
        database = dn.connect(reports)
        for key in ("customer_id", "uid", "Customer_ID"):
            joined = f"SELECT SUM(pay) AS s FROM users u JOIN jobs j ON u.{key} = j.{key}"
            assert database.sql(joined).scalar().value == 5
            assert (
                database.sql(f"SELECT COUNT(DISTINCT {key}) AS n FROM users JOIN jobs USING ({key})").scalar().value
                == 1
            )
            inside = f"SELECT COUNT(*) FROM users WHERE {key} IN (SELECT {key} FROM jobs WHERE pay > 1)"
            assert database.sql(inside).scalar().value == 1
    assert dn.Collection.load(tmp_path / "reports" / "collection.json") == shop


# Object stores --------------------------------------------------------------------------------------------------------


class Bucket(BaseHTTPRequestHandler):
    """As much of S3 as reading needs: lists of objects, their sizes, and parts of them; from a folder."""

    def __init__(self, root, *arguments):
        self.root = root
        super().__init__(*arguments)

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, *, body):
        parts = urlsplit(self.path)
        bucket, _, name = unquote(parts.path).strip("/").partition("/")
        query = parse_qs(parts.query)
        path = self.root / bucket / name
        if "list-type" in query:
            return self.send(200, self.listed(bucket, query.get("prefix", [""])[0]), body=body, kind="application/xml")
        if not name or not path.is_file():
            return self.send(200 if not name else 404, b"", body=body)
        whole = path.read_bytes()
        asked = self.headers.get("Range")
        if not asked:
            return self.send(200, whole, body=body)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        piece = whole[int(first) : int(last or len(whole) - 1) + 1]
        return self.send(206, piece, body=body, ranged=f"bytes {first}-{int(first) + len(piece) - 1}/{len(whole)}")

    def listed(self, bucket, prefix):
        found = sorted(path for path in (self.root / bucket).rglob("*") if path.is_file())
        names = [(path.relative_to(self.root / bucket).as_posix(), path.stat().st_size) for path in found]
        made = "".join(
            f"<Contents><Key>{name}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><Size>{size}</Size></Contents>"
            for name, size in names
            if name.startswith(prefix)
        )
        return (
            f"<ListBucketResult><Name>{bucket}</Name><IsTruncated>false</IsTruncated>{made}</ListBucketResult>".encode()
        )

    def send(self, code, content, *, body, kind="application/octet-stream", ranged=None):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        if ranged:
            self.send_header("Content-Range", ranged)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def bucket(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Bucket, tmp_path))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_reports_in_an_object_store_are_read_through_arrow(tmp_path, bucket):
    pytest.importorskip("pyarrow.fs").S3FileSystem  # noqa: B018 - some builds of Arrow are without it
    write(tmp_path / "shop" / "reports", range(10))
    settings = f"scheme=http&endpoint_override={bucket.replace(':', '%3A')}&allow_bucket_creation=false"
    database = dn.connect(f"s3://anyone:secret@shop/reports?{settings}&region=us-east-1")
    assert answered(database) == (10, 30)
    more = pq.read_table(write(tmp_path / "more", range(10, 13)) / "users" / "part-0.parquet")
    pq.write_table(more, tmp_path / "shop" / "reports" / "users" / "part-1.parquet")
    assert answered(database) == (13, 39)
    with pytest.raises(dn.DeniableError, match="cannot be listed") as refused:
        dn.connect(f"s3://anyone:secret@shop/none?{settings}&region=us-east-1")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("address", ["nowhere://x/y", "file:///nowhere/at/all"])
def test_addresses_that_lead_nowhere_are_refused(address):
    with pytest.raises(dn.DeniableError, match=r"cannot be opened|cannot be listed"):
        dn.connect(address)


def test_a_local_address_is_read_like_a_folder(tmp_path):
    assert isinstance(pq.read_schema(write(tmp_path / "reports", range(4)) / "users" / "part-0.parquet"), pa.Schema)
    assert answered(dn.connect(f"file://{tmp_path}/reports")) == (4, 12)
