"""An archive that a real Spark writes, read by pyarrow and by Spark without our code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
from tests.support.spark.duck import rows_of

from tarry.spark.archive.archive import ArchiveOptions, archive
from tarry.spark.archive.compact import compact
from tarry.spark.archive.verify import verify
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.replay.replay import ReplayOptions, replay
from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 30_000


def test_workers_archive_and_any_reader_reads(
    spark: SparkSession, broker: Tarry, tmp_path: Path
) -> None:
    # Readers pass over files whose names begin like this one.
    broker.topic("_archived", partitions=3)
    for partition in range(3):
        broker.send(
            "_archived", *(b"%d" % number for number in range(COUNT // 3)), partition=partition
        )
    settings = {"bootstrap.servers": broker.bootstrap}

    (summary,) = list(
        archive(spark, TopicChoice(names=("_archived",)), tmp_path, ArchiveOptions(settings))
    )

    assert (summary.rounds, summary.records) == (1, COUNT)
    recounted = verify(tmp_path, settings)
    assert (recounted.faults, recounted.compared) == ([], COUNT)
    table = ds.dataset(tmp_path, format="parquet", partitioning="hive").to_table()
    places = set(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
    assert len(places) == table.num_rows == COUNT
    assert set(table["topic"].to_pylist()) == {"_archived"}
    query = f"SELECT count(*) FROM read_parquet('{tmp_path}/topic=*/**/*.parquet')"
    assert rows_of(query) == [[COUNT]]
    frame = spark.read.parquet(str(tmp_path))
    assert frame.select("topic", "partition", "offset").distinct().count() == COUNT
    assert frame.selectExpr("sum(cast(cast(value as string) as long)) as total").collect()[
        0
    ].total == 3 * sum(range(COUNT // 3))


def test_workers_merge_and_replay_what_workers_archived(
    spark: SparkSession, broker: Tarry, tmp_path: Path
) -> None:
    values = [b"%d" % number for number in range(COUNT)]
    broker.topic("before", partitions=2)
    broker.topic("after", partitions=2)
    settings = {"bootstrap.servers": broker.bootstrap}
    made = ArchiveOptions(settings, by="none")
    for partition, sent in ((0, values[:10_000]), (0, values[10_000:20_000]), (1, values[20_000:])):
        broker.send("before", *sent, partition=partition)
        list(archive(spark, TopicChoice(names=("before",)), tmp_path, made))
    (merged,) = list(compact(spark, tmp_path))

    # Both tasks of a round have a part of the larger partition.
    options = ReplayOptions(settings, "before", "after", round_records_max=20_000)
    *_, summary = replay(spark, tmp_path, options)

    assert (merged.files_before, merged.files_after) == (2, 1)
    assert verify(tmp_path, settings).faults == []
    assert (summary.rounds, summary.records, summary.is_finished) == (2, COUNT, True)
    found = broker.records("after")
    for partition, expected in enumerate((values[:20_000], values[20_000:])):
        assert [one.value for one in found if one.partition == partition] == expected
