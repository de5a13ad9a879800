"""One local Spark and one broker, shared by the Spark tests of a worker."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.interop.conftest import apache_kafka  # noqa: F401  # one node for all of these tests
from tests.support.interop.kafka_server import POM, KafkaUnavailable, class_path

from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

JAVA_VERSION_MIN = 17

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "768m",
    "spark.sql.shuffle.partitions": "2",
    # On a busy machine a worker needs longer than 15 s to come up.
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.streaming.metricsEnabled": "false",
    # A program that runs for seconds gains nothing from the slow compiler.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.session.timeZone": "UTC",
}

# Spark tells nothing of its own; what fails comes as an exception.
LOGGING = """\
rootLogger.level = off
"""


def what_is_missing() -> str | None:
    """What Spark lacks on this machine, as a sentence."""
    java = shutil.which("java")
    if java is None:
        return "Spark needs Java 17 or newer, and there is no java"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found[1]) < JAVA_VERSION_MIN:
        return f"Spark needs Java 17 or newer, not {told.splitlines()[0] if told else 'this java'}"
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed"
    return None


@pytest.fixture(scope="session")
def connector_jars() -> str:
    """Class path of Spark's own Kafka connector, or why it is not there."""
    try:
        return class_path(POM.with_name("spark-pom.xml"))
    except KafkaUnavailable as reason:
        return f"missing: {reason}"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, connector_jars: str) -> Iterator[SparkSession]:
    missing = what_is_missing()
    if missing is not None:
        pytest.skip(missing)
    from pyspark.sql import SparkSession

    directory = tmp_path_factory.mktemp("spark")
    # Workers run the Python of the tests, whatever `python3` is.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_DIRS"] = str(directory)
    quiet = directory / "log4j2.properties"
    quiet.write_text(LOGGING)
    builder: Any = SparkSession.builder
    builder = builder.master("local[2]").appName("tests")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.sql.warehouse.dir", str(directory / "warehouse"))
    # Where workers keep schemas of registries: another run's had the same address, maybe.
    builder = builder.config("spark.executorEnv.XDG_CACHE_HOME", str(directory / "cache"))
    if not connector_jars.startswith("missing: "):
        builder = builder.config("spark.driver.extraClassPath", connector_jars)
    options = f"{SETTINGS['spark.driver.extraJavaOptions']} -Dlog4j.configurationFile={quiet}"
    session: SparkSession = builder.config("spark.driver.extraJavaOptions", options).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tarry]:
    """One broker; each test has topics of its own."""
    # Records of these tests are of all times: none is too old to be kept.
    with Tarry({"log.retention.ms": "-1"}) as tarry:
        yield tarry


@pytest.fixture
def commands_share_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands take the session of the tests, and leave it running."""

    @contextlib.contextmanager
    def shared(
        master: str | None, *, is_local: bool, **settings: object
    ) -> Iterator[SparkSession | None]:
        del settings
        yield None if is_local else spark

    for command in ("archive", "backfill", "compact", "replay", "run"):
        monkeypatch.setattr(f"tarry.cli.spark.{command}.spark_session", shared)


@pytest.fixture
def read(spark: SparkSession, broker: Tarry) -> DataFrameReader:
    """Reader of the broker."""
    return spark.read.format("tarry").option("kafka.bootstrap.servers", broker.bootstrap)


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
