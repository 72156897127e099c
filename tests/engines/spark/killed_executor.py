"""`python killed_executor.py FOLDER SECRET` publishes a stream on two executors, and kills one within a task.

What is published goes to published.parquet in the folder. Values are those in its files in/*.parquet. Everything that
Spark can write down is written down: plans, events, and what driver and executors log.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import deniable as dn
from deniable.engines.spark.spark_session import ROCKSDB, STATE_STORE


def killing(folder, secret):
    """A function that fetches the secret; the first worker that calls it after the first batch kills its executor."""
    armed, killed = folder / "armed", folder / "killed"

    def fetch():
        if armed.exists() and not killed.exists():
            daemon = os.getppid()
            executor = int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
            if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes():
                killed.touch()
                os.kill(executor, signal.SIGKILL)
                time.sleep(60)  # without its executor this worker ends as well
        return bytes.fromhex(secret.read_text())

    return fetch


def main(folder, secret):
    (folder / "events").mkdir()
    spark = (
        SparkSession.builder.master("local-cluster[2,1,700]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "DEBUG")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", (folder / "events").as_uri())
        .config("spark.sql.maxPlanStringLength", 10**8)
        .config("spark.executor.memory", "600m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.pyspark.python", sys.executable)
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config(STATE_STORE, ROCKSDB)
        .getOrCreate()
    )
    about = json.loads((folder / "about.json").read_text())
    readings = spark.readStream.schema(about["schema"]).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    parts = {}

    def note(batch, number):
        parts[number] = batch.toArrow()
        (folder / "armed").touch()

    writer = dn.spark.publish_stream(
        readings,
        **about["columns"],
        settings=about["settings"],
        secret=killing(folder, secret),
        checkpoint=folder / "checkpoint",
    )
    for _ in range(20):  # as an operator would: on a busy machine a Python process may start too late for Spark
        query = writer.trigger(availableNow=True).foreachBatch(note).start()
        try:
            query.awaitTermination()
            break
        except StreamingQueryException as problem:
            if "failed to connect back" not in str(problem):
                raise
    query.explain(extended=True)
    pq.write_table(pa.concat_tables(parts.values()), folder / "published.parquet")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
