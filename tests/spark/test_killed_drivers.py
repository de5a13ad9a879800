"""A stream from a topic to a topic whose driver dies at every step of the sink."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException
from tests.support.spark.audit import make_topic, values_of
from tests.support.spark.trap import Trap, snapped, trapped_source

from tarry.client import Producer

A_BATCH = 200
RECORDS = 6 * A_BATCH
# Spark's workers may fail by themselves on a machine that is very busy.
RESTARTS_MORE = 20

TRAPS = [
    Trap(0, "CreatePlan", is_behind=False),
    Trap(1, "CreatePlan", is_behind=True),
    Trap(2, "SendRound", is_behind=True, nth=2),
    Trap(3, "MarkDone", is_behind=False),
    Trap(4, "RemoveFiles", is_behind=False),
]


def run(spark, bootstrap, source, target, checkpoint):
    read = spark.readStream.format("tarry").option("kafka.bootstrap.servers", bootstrap)
    read = read.options(subscribe=source, startingOffsets="earliest")
    frame = read.option("maxOffsetsPerTrigger", A_BATCH).load().select("key", "value")
    write = frame.writeStream.format("tarry-trapped").trigger(availableNow=True)
    write = write.option("kafka.bootstrap.servers", bootstrap).option("topic", target)
    # Several batches a partition.
    write = write.option("kafka.batch.size", "1000").option("checkpointLocation", checkpoint)
    write.start().awaitTermination()


@pytest.mark.timeout(900)
def test_every_record_is_written_once_wherever_the_driver_dies(spark, broker, tmp_path, checkpoint):
    source, target = "killed-in", "killed-out"
    make_topic(broker.bootstrap, source, 2)
    make_topic(broker.bootstrap, target, 2)
    sent = [b"%d" % number for number in range(RECORDS)]
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in sent:
            producer.send(source, value, key=value[-2:])
    spark.dataSource.register(trapped_source(TRAPS, str(tmp_path)))

    deaths = 0
    while True:
        try:
            run(spark, broker.bootstrap, source, target, checkpoint)
            break
        except StreamingQueryException:
            deaths += 1
            if deaths > len(TRAPS) + RESTARTS_MORE:
                raise

    assert snapped(str(tmp_path), len(TRAPS)) == len(TRAPS)
    assert values_of(broker.bootstrap, target) == dict.fromkeys(sent, 1)
