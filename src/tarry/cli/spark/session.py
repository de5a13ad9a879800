"""Settings of the jobs' clients, and the Spark session that a command starts and ends."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tarry.cli.running import CONSUMER, Cluster, client_arguments, fail

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def settings_of(cluster: Cluster, owner: str = CONSUMER) -> dict[str, str]:
    """Return the settings of a kind of clients, under Kafka's keys."""
    given = client_arguments(cluster.bootstrap, cluster.client_settings, owner=owner)
    return {key: str(value) for key, value in given.items()}


@contextmanager
def spark_session(master: str | None, *, is_local: bool) -> Iterator[SparkSession | None]:
    """Yield a session that ends with the command; None without Spark."""
    if is_local:
        yield None
        return
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        fail('PySpark is not installed: pip install "tarry[spark]", or use --local')
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        fail("Spark needs Java 17 or newer, and there is no java: install it, or use --local")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    builder = builder.appName("tarry spark")
    # On a busy machine a worker needs longer than Spark's 15 s to come up.
    builder = builder.config("spark.python.authenticate.socketTimeout", "120s")
    # Under spark-submit the master is given already.
    if master is not None or "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master(master or "local[*]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        # A process of Java's that is gone has nothing left to stop; what ended it was told.
        with suppress(Exception), warnings.catch_warnings(action="ignore"):
            session.stop()
