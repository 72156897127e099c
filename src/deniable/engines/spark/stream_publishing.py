"""A streaming DataFrame of keys and values → a query that publishes them, bound to one checkpoint.

Noise belongs to a secret and its settings. So one checkpoint publishes with it, and no other: a second one would add
the same noise to other values. A file in the checkpoint says which stream it is of, and a note in a private folder of
the driver which checkpoint publishes with the secret.
"""

from __future__ import annotations

import importlib
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from deniable.engines.spark.report_paths import Folder
from deniable.engines.spark.spark_session import ROCKSDB, STATE_STORE, checked_session
from deniable.engines.spark.stream_secret import COMMAND_FOR_NEW, UNPUBLISHED, StreamSecret, check_absent
from deniable.errors import BadInput, Failure, InvalidParameter, MissingExtra, RandomnessFault
from deniable.files import LockedFile
from deniable.private_folders import private_folder
from deniable.stores.bad_values import BadValues
from deniable.streams.central.lent_keys import LentKeys, name_of_secret
from deniable.streams.central.settings import Settings
from deniable.streams.central.stream_keys import keyed_settings
from deniable.strict_json import read_json

CHECKPOINT_FILE = "deniable-stream.json"
_VERSION = 1
_KEYS = ("string", "tinyint", "smallint", "int", "bigint")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")


def publishing(
    frame: Any,
    *,
    key: str,
    value: str,
    order: str | Sequence[str],
    settings: Mapping[str, Any],
    secret: Any,
    checkpoint: Any,
    on_bad: str,
) -> Any:
    """See `deniable.spark.publish_stream`."""
    spark = _checked_frame(frame)
    chosen, per_key = _settings(settings)
    columns = (order,) if isinstance(order, str) else tuple(order)
    selected = _selected(frame, key, value, columns)
    BadValues(on_bad)
    where = StreamSecret.of(secret)
    own = where.read()
    LentKeys(chosen, own, per_key=per_key)  # refuses what cannot be published

    from deniable.engines.spark.key_processor import KEY, KeyedQuery, KeyProcessor

    places = tuple(f"order{number}" for number in range(len(columns)))
    query = KeyedQuery(chosen, per_key, where, name_of_secret(own, chosen), places, on_bad)
    processor = KeyProcessor(query)
    check_absent(own, _travelling(processor))
    facts = {"key": key, "value": value, "order": list(columns), "on_bad": on_bad, "per_key": per_key}
    _bind(Folder(spark, str(checkpoint)), query.noise, {**facts, "settings": chosen.describe()})
    private = selected.groupBy(KEY).transformWithStateInPandas(processor, query.output_columns, "Append", "None")
    return private.writeStream.outputMode("append").option("checkpointLocation", str(checkpoint))


def _checked_frame(frame: Any) -> Any:
    if not getattr(frame, "isStreaming", False):
        raise InvalidParameter(
            "frame", "must be a streaming DataFrame", "Read it with spark.readStream; for others use KeyedPublisher."
        )
    spark = checked_session(frame.sparkSession)
    for package, module in (("pandas", "pandas"), ("protobuf", "google.protobuf")):
        try:
            importlib.import_module(module)
        except ImportError:
            raise MissingExtra(package, "spark") from None
    if spark.conf.get(STATE_STORE, "") != ROCKSDB:
        raise InvalidParameter(STATE_STORE, "must be RocksDB's for streams", f'Set it to "{ROCKSDB}".')
    return spark


def _settings(given: Mapping[str, Any]) -> tuple[Settings, bool]:
    rest = dict(given)
    if rest.pop("public_keys", False) is not True:
        raise InvalidParameter(
            "public_keys",
            "is not given: everybody sees which keys there are, and how many values each of them has",
            "Say public_keys=True in the settings if that is public; otherwise publish one stream without keys.",
        )
    for name in ("key", "source", "simulation", "keys"):
        if name in rest:
            raise InvalidParameter(name, "is not a setting on Spark", "Pass secret=; keys appear with their values.")
    try:
        return keyed_settings(**rest), bool(rest.get("per_key", False))
    except TypeError:
        raise InvalidParameter(
            "settings", "must be the arguments of KeyedPublisher by name", "Write {'epsilon': 1.0, 'bound': 100, …}."
        ) from None


def _selected(frame: Any, key: str, value: str, order: tuple[str, ...]) -> Any:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    kinds = dict(frame.dtypes)
    for role, name in (("key", key), ("value", value), *(("order", name) for name in order)):
        if name not in kinds:
            raise InvalidParameter(role, f"is {name!r}, which the frame does not have", "Name one of its columns.")
    if kinds[key] not in _KEYS:
        raise InvalidParameter("key", "must be a column of texts or whole numbers", "Cast it.")
    if kinds[value] not in _NUMBERS:
        raise InvalidParameter("value", "must be a column of integers or floats", "Cast it to double or bigint.")
    if not order or value in order:
        raise InvalidParameter(
            "order", "must name columns that do not depend on values", "Use an offset, a position or a time."
        )
    return frame.select(
        F.col(f"`{key}`").cast("string").alias("key"),
        F.col(f"`{value}`").alias("value"),
        *(F.col(f"`{name}`").alias(f"order{number}") for number, name in enumerate(order)),
    )


def _travelling(processor: Any) -> bytes:
    from pyspark import cloudpickle

    return bytes(cloudpickle.dumps(processor))


def _bind(checkpoint: Folder, noise: str, facts: dict[str, Any]) -> None:
    """Make the checkpoint the one that publishes with this noise, or refuse."""
    folder = private_folder("spark-streams", "note which checkpoint publishes with a secret", UNPUBLISHED)
    file = checkpoint.below(CHECKPOINT_FILE)
    with LockedFile(folder / noise, "the note", cost=UNPUBLISHED, wait_s=10.0) as note:
        noted = note.read()
        if file.exists():
            mark = _read_mark(file, {"version": _VERSION, "noise": noise, **facts})
        elif checkpoint.exists() and checkpoint.names():
            raise BadInput(f"the checkpoint {checkpoint.name!r} is of another query. {UNPUBLISHED}. Use a new folder.")
        elif noted is not None:
            raise _elsewhere()
        else:
            mark = secrets.token_hex(16)
            checkpoint.make()
            file.write_text(json.dumps({"version": _VERSION, "noise": noise, **facts, "mark": mark}))
        if noted not in (None, mark.encode()):
            raise _elsewhere()
        if noted is None:
            note.write(mark.encode())


def _read_mark(file: Folder, expected: dict[str, Any]) -> str:
    try:
        written = read_json(file.read_text())
        mark = written.pop("mark")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise Failure(
            f"the checkpoint's file {file.name!r} is damaged. {UNPUBLISHED}. Restore it from a copy."
        ) from None
    if written != json.loads(json.dumps(expected)):
        raise BadInput(
            f"the checkpoint was begun with other settings, columns or another secret. {UNPUBLISHED}. Go on with "
            f"those, or begin a new stream with a new checkpoint and a new secret ({COMMAND_FOR_NEW})."
        )
    return str(mark)


def _elsewhere() -> RandomnessFault:
    return RandomnessFault(
        "a stream was published with this secret and these settings from another checkpoint, or the checkpoint was "
        "deleted; going on would publish the same noise with other values. Nothing was published. Use that checkpoint, "
        f"or a new secret ({COMMAND_FOR_NEW})."
    )
