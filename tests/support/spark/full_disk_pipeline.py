"""A full disk below checkpoint, state, sink and archive of a pipeline on a Spark; by hand.

    mkdir disk && mount -t tmpfs -o size=4m tmpfs disk
    python -m tests.support.spark.full_disk_pipeline --rounds 10 --seed 1 disk DIRECTORY

Each round leaves a random room on the disk and runs the pipeline, whose end has to ask for room;
with room it comes to its end, each record is in one of two topics, once, and the archive is whole.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.spark.full_disk import fill_up

from tarry.testing import Tarry

PIPELINE = """\
name = "orders"
checkpoint = "{disk}/checkpoint"
source = {{ topics = ["orders"] }}
decode = {{ format = "json", schema = "order.json" }}
check = {{ even = "number % 2 = 0" }}
deduplicate = {{ by = ["number"], within = "24h" }}
clean = {{ topic = "clean", rejected = "rejected" }}
archive = {{ path = "{disk}/lake", topics = ["orders", "clean"], by = "none" }}
"""
SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
ROOMS_KB = (0, 4, 8, 16, 24, 32, 48, 64, 96)


def session(directory: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.warehouse.dir", str(directory / "warehouse"))
    spark = builder.config("spark.local.dir", str(directory / "spark")).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def values_of(numbers: range) -> list[bytes]:
    return [json.dumps({"number": number}).encode() for number in numbers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("disk", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    disk, directory = given.disk.absolute(), given.directory.absolute()
    directory.mkdir(parents=True)
    spark = session(directory)
    from tarry.spark.archive.verify import verify
    from tarry.spark.pipeline.faults import StageFailed
    from tarry.spark.pipeline.file.reader import read_pipeline
    from tarry.spark.pipeline.run import RunOptions, run_pipeline

    (directory / "order.json").write_text(json.dumps(SCHEMA))
    file = directory / "orders.toml"
    file.write_text(PIPELINE.format(disk=disk))
    draw = random.Random(given.seed)
    sent = 0
    with Tarry() as broker:
        broker.topic("orders", partitions=2, retention_ms=-1)
        pipeline = read_pipeline(file, {"TARRY_BOOTSTRAP_SERVERS": broker.bootstrap})
        for number in range(given.rounds):
            count = draw.randint(5, 40)
            broker.send("orders", *values_of(range(sent, sent + count)))
            sent += count
            fill_up(disk, draw.choice(ROOMS_KB) * 1024)
            told = "room enough"
            try:
                run_pipeline(spark, pipeline, RunOptions(once=True, restarts_max=0))
            except StageFailed as failure:
                told = str(failure)
                assert "ake room" in told, told
            sys.stdout.write(f"round {number}: {told}\n")
            sys.stdout.flush()
            (disk / "filling").unlink()
            run_pipeline(spark, pipeline, RunOptions(once=True))
            found = Counter(
                record.value for name in ("clean", "rejected") for record in broker.records(name)
            )
            assert found == Counter(values_of(range(sent))), (sum(found.values()), sent)
        flaws = verify(disk / "lake", pipeline.reading()).faults
    spark.stop()
    sys.stdout.write("\n".join(flaws or ["all is well"]) + "\n")
    sys.exit(1 if flaws else 0)


if __name__ == "__main__":
    main()
