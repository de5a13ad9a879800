"""Long flows under measurement: the demo's pipeline, and a stream over minutes or hours.

`bench/spark_worker.py` runs them, in a session of one format.  The pipeline is that of
`examples/orders`: decode, check, deduplicate, an aggregate, waits and an archive.  Both formats get
the same steps; only what reads and what writes differs.  Ours writes exactly once, the connector at
least once.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

import processes

ORDERS: Final = Path(__file__).resolve().parent.parent / "examples" / "orders"
# What stands before each name of a topic in the file.
TOPIC_QUOTE: Final = '"orders'
SAMPLES: Final = 12
# Each look brings the progress of the last 1000 micro-batches as text.
POLL_SECONDS: Final = 20

Figures = dict[str, float]


class Tuning(NamedTuple):
    """Settings of the connector, of reading and of writing."""

    reading: dict[str, str]
    writing: dict[str, str]


def run_orders(
    session: SparkSession, order: dict[str, Any], directory: Path, theirs: Tuning | None
) -> int:
    """Run the demo's pipeline once, up to the ends of its topics; `theirs` has the settings of the
    connector, None stands for ours.  Return the records of its source."""
    from tarry.spark.pipeline.file.reader import BOOTSTRAP_VARIABLE, read_pipeline
    from tarry.spark.pipeline.run import RunOptions, run_pipeline

    directory.mkdir()
    shutil.copy(ORDERS / "order.json", directory)
    file = directory / "orders.toml"
    text = (ORDERS / "orders.toml").read_text().replace(TOPIC_QUOTE, f'"{order["topic"]}')
    # As many records a micro-batch as there are: the connector has no other limit here either.
    file.write_text(text.replace("rate = 8_000, ", ""))
    pipeline = read_pipeline(file, {BOOTSTRAP_VARIABLE: order["address"]})
    if theirs is None:
        run_pipeline(session, pipeline, RunOptions(once=True))
    else:
        _run_on_connector(session, pipeline, theirs)
    return int(order["rows"])


def _run_on_connector(session: SparkSession, pipeline: Any, tuning: Tuning) -> None:
    from tarry.spark.pipeline.queries import decoded_records, frame_of
    from tarry.spark.pipeline.run import session_of
    from tarry.spark.pipeline.stages import ARCHIVE, stages_of
    from tarry.spark.pipeline.topics import admin_of, find_topics, make_topics

    stages = stages_of(pipeline)
    admin = admin_of(pipeline)
    make_topics(admin, find_topics(admin, pipeline, stages).missing)
    admin.close()
    session = session_of(session)
    address = {"kafka.bootstrap.servers": pipeline.source.bootstrap}
    for stage in stages:
        reader = session.readStream.format("kafka").options(**address, **tuning.reading)
        reader = reader.option("subscribe", ",".join(stage.reads))
        reader = reader.option("includeHeaders", "true").option("startingOffsets", "earliest")
        records = reader.load()
        if stage.kind == ARCHIVE:
            writer = records.writeStream.format("parquet").option("path", str(stage.path))
            checkpoint = stage.path.with_name("archive-checkpoint")
        else:
            frame: DataFrame = frame_of(pipeline, stage, decoded_records(pipeline, records))
            writer = frame.writeStream.format("kafka").options(**address, **tuning.writing)
            checkpoint = stage.path
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()


def memory_mb(root: int) -> Figures:
    """Return the resident memory below a process, in MB: of itself, of JVMs and of workers."""
    found = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    for one in processes.below(root):
        role = "driver" if one.pid == root else "jvm" if one.name == "java" else "workers"
        found[role] += one.resident_bytes / 1e6
    return found


def run_stream(frame: DataFrame, sink: Path, minutes: float, heap: Any) -> list[Figures]:
    """Let a stream write Parquet for some minutes; return what was held at even distances."""
    writer = frame.writeStream.format("parquet").option("path", str(sink / "table"))
    query = writer.option("checkpointLocation", str(sink / "checkpoint")).start()
    samples: list[Figures] = []
    began, records, batch = time.monotonic(), 0, -1
    try:
        for number in range(SAMPLES + 1):
            ends_at = began + minutes * 60 * number / SAMPLES
            while time.monotonic() < ends_at:
                time.sleep(min(POLL_SECONDS, max(ends_at - time.monotonic(), 0)))
                for one in query.recentProgress:
                    if one["batchId"] > batch:
                        batch = one["batchId"]
                        records += one["numInputRows"]
            if query.exception() is not None:
                raise SystemExit(f"the stream ended: {query.exception()}")
            samples.append(
                {
                    "minutes": (time.monotonic() - began) / 60,
                    "records": records,
                    "batches": batch + 1,
                    **heap(),
                    **memory_mb(os.getpid()),
                }
            )
    finally:
        query.stop()
    return samples
