"""One session for all tests of Spark: they are one group, so one worker runs them and one JVM starts."""

import pytest

from deniable.engines.spark.spark_session import checked_session, require_java
from deniable.errors import Failure

# Questions here are small: compiling them, or checking the bytecode of Spark, takes longer than answering. Without room
# for classes, and for what a question leaves, all is searched for garbage again and again while they are loaded. The
# first option leaves little room for compiled code, which is then swept, and compiled again.
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    "-XX:MetaspaceSize=384m -Xmn256m -XX:ReservedCodeCacheSize=240m -XX:-UseCodeCacheFlushing"
)


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
        .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
        .config("spark.default.parallelism", "2")
        # Nothing leaves this machine.
        .config("spark.shuffle.compress", "false")
        .config("spark.shuffle.spill.compress", "false")
        .config("spark.broadcast.compress", "false")
        .config("spark.sql.inMemoryColumnarStorage.compressed", "false")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.ui.explainMode", "simple")  # every question is described at length for a page nobody sees
        .getOrCreate()
    )
    yield checked_session(session)  # workers run this Python, whichever test comes first
    session.stop()
