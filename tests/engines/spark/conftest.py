"""One session for all tests of Spark: they are one group, so one worker runs them and one JVM starts."""

import pytest

from deniable.engines.spark.spark_session import checked_session, require_java
from deniable.errors import Failure


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    try:
        require_java()
    except Failure as problem:
        pytest.skip(str(problem))
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2,4]")  # up to four attempts per task
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.python.daemon.module", "deniable.engines.spark.daemon")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        # Questions here are small: compiling each one, by Spark or by Java, would take longer than answering it.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .getOrCreate()
    )
    yield checked_session(session)  # workers run this Python, whichever test comes first
    session.stop()
