"""Spark session under measurement: one format, one process, orders on stdin, figures on stdout.

`bench/spark.py` starts one for each format and gives them the same work in turn.  An order is a
line of JSON with `work`, `address` (of the broker) and `topic`; its answer is a line of JSON:
seconds, CPU seconds of the session's whole tree of processes (driver, JVM, Python workers), rows.
The settings of the session come with its start, those of reading and writing with each order; ours
has none.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, functions
from spark_flows import Tuning, run_orders, run_stream
from spark_values import JSON_FIELDS

from processes import cpu_seconds

OURS: Final = "tarry"

# Spark's defaults, heap included, besides the settings that a measurement needs.
SESSION: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.python.authenticate.socketTimeout": "120s",
}

WRITTEN_ROWS_BYTES: Final = 100
MICRO_BATCHES: Final = 40
# The first ones load classes and start Python.
MICRO_BATCHES_UNCOUNTED: Final = 8
WAIT_SECONDS_MAX: Final = 300

Figures = dict[str, float]


class Session:
    """Session of one format, with the kinds of work it can be given."""

    def __init__(self, form: str, jars: str, settings: dict[str, str], directory: Path) -> None:
        self.form = form
        self.directory = directory
        self._count = 0
        quiet = directory / "log4j2.properties"
        quiet.write_text("rootLogger.level = off\n")
        builder: Any = SparkSession.builder
        builder = builder.master("local[2]").appName(f"bench {form}")
        for key, value in (SESSION | settings).items():
            builder = builder.config(key, value)
        builder = builder.config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        builder = builder.config(
            "spark.driver.extraJavaOptions", f"-Dlog4j.configurationFile={quiet}"
        )
        if jars:
            builder = builder.config("spark.driver.extraClassPath", jars)
        self.spark: SparkSession = builder.getOrCreate()

    def path(self) -> str:
        """Return a path that nothing has used yet."""
        self._count += 1
        return str(self.directory / str(self._count))

    def options(self, order: dict[str, Any]) -> dict[str, str]:
        """Return the options of a reader."""
        place = {"kafka.bootstrap.servers": order["address"], "subscribe": order["topic"]}
        return {**place, **order["reading"]}

    def read(self, order: dict[str, Any]) -> DataFrame:
        options = self.options(order)
        return self.spark.read.format(self.form).options(**options).load()

    # --- Works: each returns the rows that went through it

    def rows(self, order: dict[str, Any]) -> int:
        self.read(order).write.format("noop").mode("overwrite").save()
        return int(order["rows"])

    def parquet(self, order: dict[str, Any]) -> int:
        self._write_parquet(self.read(order))
        return int(order["rows"])

    def _write_parquet(self, frame: DataFrame) -> None:
        path = self.path()
        frame.write.parquet(path)
        shutil.rmtree(path)

    def value(self, order: dict[str, Any]) -> int:
        if self.form == OURS:
            order = {**order, "reading": {**order["reading"], "columns": "value"}}
        frame = self.read(order).select("value")
        frame.write.format("noop").mode("overwrite").save()
        return int(order["rows"])

    def typed_frame(self, order: dict[str, Any]) -> DataFrame:
        """Read values of JSON as columns: decoded by our source, and by Spark's from_json."""
        if self.form != OURS:
            text = functions.col("value").cast("string")
            fields = functions.from_json(text, JSON_FIELDS).alias("fields")
            return self.read(order).select(fields).select("fields.*")
        reader = self.spark.read.format(OURS).options(**self.options(order))
        return reader.option("valueFormat", "json").schema(JSON_FIELDS).load()

    def typed(self, order: dict[str, Any]) -> int:
        self.typed_frame(order).write.format("noop").mode("overwrite").save()
        return int(order["rows"])

    def typed_parquet(self, order: dict[str, Any]) -> int:
        self._write_parquet(self.typed_frame(order))
        return int(order["rows"])

    def archive(self, order: dict[str, Any]) -> int:
        from tarry.spark.archive.archive import ArchiveOptions, archive
        from tarry.spark.reading.bounds import TopicChoice

        path = Path(self.path())
        options = ArchiveOptions(
            {"bootstrap.servers": order["address"]}, by="none", compression="snappy"
        )
        summaries = list(archive(self.spark, TopicChoice(names=(order["topic"],)), path, options))
        shutil.rmtree(path)
        return summaries[-1].records

    def write(self, order: dict[str, Any]) -> int:
        rows = int(order["rows"])
        frame = self.spark.range(0, rows, 1, 2).selectExpr(
            "cast(id as string) as key", f"repeat('x', {WRITTEN_ROWS_BYTES}) as value"
        )
        writer = frame.write.format(self.form).mode("append").options(**order["writing"])
        writer.option("kafka.bootstrap.servers", order["address"]).option(
            "topic", order["to"]
        ).save()
        return rows

    def copy(self, order: dict[str, Any]) -> int:
        """Copy a topic by a stream: ours exactly once, the connector's at least once."""
        path = self.path()
        options = self.options(order)
        stream = self.spark.readStream.format(self.form).options(**options)
        frame = stream.option("startingOffsets", "earliest").load().select("key", "value")
        writer = frame.writeStream.format(self.form).options(**order["writing"])
        writer = writer.option("kafka.bootstrap.servers", order["address"])
        writer = writer.option("topic", order["to"]).option("checkpointLocation", path)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        shutil.rmtree(path)
        return int(order["rows"])

    def micro_batches(self, order: dict[str, Any]) -> Figures:
        """Return the middle and the slowest twentieth of the time of micro-batches, in ms."""
        path = self.path()
        options = self.options(order)
        frame = self.spark.readStream.format(self.form).options(**options).load()
        writer = frame.writeStream.option("checkpointLocation", f"{path}/checkpoint")
        if order["sink"] == "parquet":
            writer = writer.format("parquet").option("path", f"{path}/table")
        else:
            writer = writer.format("noop")
        query = writer.start()
        try:
            taken = self._micro_batch_times(query)
        finally:
            query.stop()
        shutil.rmtree(path, ignore_errors=True)
        return {"p50_ms": statistics.median(taken), "p95_ms": sorted(taken)[len(taken) * 95 // 100]}

    def _micro_batch_times(self, query: Any) -> list[int]:
        ends_at = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            taken = [one for one in query.recentProgress if one["numInputRows"] > 0]
            if len(taken) >= MICRO_BATCHES + MICRO_BATCHES_UNCOUNTED:
                counted = taken[MICRO_BATCHES_UNCOUNTED:]
                return [one["durationMs"]["triggerExecution"] for one in counted]
            if query.exception() is not None or time.monotonic() > ends_at:
                raise SystemExit(f"{self.form}: {len(taken)} micro-batches; {query.exception()}")
            time.sleep(0.2)

    def pipeline(self, order: dict[str, Any]) -> int:
        """Run the demo's pipeline over a day of orders."""
        path = Path(self.path())
        theirs = None if self.form == OURS else Tuning(order["reading"], order["writing"])
        rows = run_orders(self.spark, order, path, theirs)
        shutil.rmtree(path)
        return rows

    def stream(self, order: dict[str, Any]) -> Figures:
        """Run a stream for minutes; return what it held, sample by sample."""
        path = Path(self.path())
        options = self.options(order)
        frame = self.spark.readStream.format(self.form).options(**options).load()
        samples = run_stream(frame, path, float(order["minutes"]), self.heap)
        shutil.rmtree(path, ignore_errors=True)
        return {
            f"{name} {number}": value
            for number, sample in enumerate(samples)
            for name, value in sample.items()
        }

    def heap(self) -> Figures:
        """Return what the driver's JVM holds after a collection, in MB."""
        jvm: Any = self.spark._jvm
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        return {"heap_mb": (runtime.totalMemory() - runtime.freeMemory()) / 1e6}

    def measure(self, order: dict[str, Any]) -> Figures:
        """Carry out an order."""
        work = order["work"]
        if work == "heap":
            return self.heap()
        if work == "micro-batches":
            return self.micro_batches(order)
        if work == "stream":
            return self.stream(order)
        works: dict[str, Callable[[dict[str, Any]], int]] = {
            "rows": self.rows,
            "parquet": self.parquet,
            "value": self.value,
            "typed": self.typed,
            "typed_parquet": self.typed_parquet,
            "archive": self.archive,
            "write": self.write,
            "copy": self.copy,
            "pipeline": self.pipeline,
        }
        cpu, began = cpu_seconds(os.getpid()), time.perf_counter()
        rows = works[work](order)
        seconds = time.perf_counter() - began
        return {"rows": rows, "s": seconds, "cpu_s": cpu_seconds(os.getpid()) - cpu}


def main() -> None:
    form, jars, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Spark's start speaks on stdout now and then.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        os.environ["SPARK_LOCAL_DIRS"] = directory
        session = Session(form, jars, settings, Path(directory))
        for line in sys.stdin:
            answers.write(json.dumps(session.measure(json.loads(line))) + "\n")
            answers.flush()
        session.spark.stop()


if __name__ == "__main__":
    main()
