"""A driver of its own: a stream from a topic to a topic until nothing is left, with traps.

    python -m tests.support.spark.stream_program BOOTSTRAP SOURCE TARGET FOLDER TRAPS

The checkpoint is FOLDER/checkpoint, TRAPS is a list of traps in JSON.  A trap whose `what` is
"driver" kills the whole driver: its Python, its JVM and what carries out the sink's steps.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tests.support.spark.trap import Trap, trapped_source

A_BATCH = 200
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.python.authenticate.socketTimeout": "120s",
}


def run(spark: Any, bootstrap: str, source: str, target: str, checkpoint: str) -> None:
    """Stream what is there, by micro-batches of several record batches a partition."""
    read = spark.readStream.format("tarry").option("kafka.bootstrap.servers", bootstrap)
    read = read.options(subscribe=source, startingOffsets="earliest")
    frame = read.option("maxOffsetsPerTrigger", A_BATCH).load().select("key", "value")
    write = frame.writeStream.format("tarry-trapped").trigger(availableNow=True)
    write = write.option("kafka.bootstrap.servers", bootstrap).option("topic", target)
    write = write.option("kafka.batch.size", "1000").option("checkpointLocation", checkpoint)
    write.start().awaitTermination()


def main(arguments: list[str]) -> None:
    bootstrap, source, target, folder, traps = arguments
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder
    builder = builder.master("local[1]").config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    made = [Trap(*trap) for trap in json.loads(traps)]
    group = os.getpgid(0)
    made = [trap._replace(what=group) if trap.what == "driver" else trap for trap in made]
    spark.dataSource.register(trapped_source(made, folder))
    run(spark, bootstrap, source, target, f"{folder}/checkpoint")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
