"""Scans: every offset of the ranges, or an error before it is too late."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from tests.support.client.consumer_scene import fetched
from tests.support.client.hand_face import perform
from tests.support.client.scripted_cluster import Log, ScriptedCluster, Seen, seeded_random

from tarry.base.ids import id_text
from tarry.client.core.consumer.column_taker import ColumnTaker
from tarry.client.core.consumer.scan import ScanCore, ranges_of, scan_settings
from tarry.client.errors import (
    LogTruncated,
    OffsetOutOfRange,
    TimedOut,
    TopicRecreated,
    UnknownTopic,
)
from tarry.client.settings import ConsumerSettings
from tarry.protocol import api_keys
from tarry.records.columns import OFFSETS

TIMEOUT_MS = 10_000


def scanning(cluster: ScriptedCluster, ranges: Any, **arguments: Any) -> ScanCore:
    settings = ConsumerSettings({"bootstrap.servers": "10.0.0.1:9092"}, **arguments)
    core = ScanCore(scan_settings(settings), seeded_random(), cluster.now_ms, ranges_of(ranges))
    cluster.attach(core)
    return core


def next_offsets(cluster: ScriptedCluster, core: ScanCore, rows_max: int = 1_000) -> list[int]:
    """The next rows; none at the end of the scan."""
    taker = ColumnTaker(OFFSETS, rows_max)
    perform(cluster, core.begin_rows(taker, TIMEOUT_MS, cluster.now_ms))
    return array("q", taker.buffers.offsets()).tolist()


def all_offsets(cluster: ScriptedCluster, core: ScanCore, rows_max: int = 1_000) -> list[int]:
    found: list[int] = []
    while offsets := next_offsets(cluster, core, rows_max):
        found += offsets
    return found


def filled(cluster: ScriptedCluster, batches: int, partitions: int = 1) -> list[Log]:
    """Logs of batches of ten records each."""
    logs = cluster.topic("t", partitions).logs
    for log in logs:
        for _ in range(batches):
            log.add(*[b"v"] * 10)
    return logs


def test_a_scan_gives_every_offset_of_its_range_and_no_other():
    cluster = ScriptedCluster()
    filled(cluster, 3)

    assert all_offsets(cluster, scanning(cluster, {("t", 0): (7, 24)}), 5) == [*range(7, 24)]


def test_the_partitions_of_a_leader_are_asked_for_in_one_request():
    cluster = ScriptedCluster()
    filled(cluster, 2, partitions=3)
    core = scanning(cluster, {("t", index): (0, 20) for index in range(3)})

    assert all_offsets(cluster, core) == [*range(20)] * 3
    (fetch,) = cluster.requests(api_keys.FETCH)
    assert len(fetch.request.topics[0].partitions) == 3
    # The ends of the logs are asked for beside it, not before.
    assert cluster.requests(api_keys.LIST_OFFSETS)[0].now_ms == fetch.now_ms


def test_records_of_a_newer_epoch_than_is_meant_are_none_of_the_scan():
    cluster = ScriptedCluster()
    (log,) = filled(cluster, 2)
    log.leader_epoch = 3
    log.add(*[b"w"] * 10)
    settings = ConsumerSettings({"bootstrap.servers": "10.0.0.1:9092"})

    def scanned(epoch: int, end: int) -> ScanCore:
        ranges = ranges_of({("t", 0): (0, end)})
        core = ScanCore(
            scan_settings(settings),
            seeded_random(),
            cluster.now_ms,
            ranges,
            None,
            {("t", 0): epoch},
        )
        return cluster.attach(core)

    # Behind the end of the scan anything may lie.
    assert all_offsets(cluster, scanned(0, 20)) == [*range(20)]
    assert all_offsets(cluster, scanned(3, 25)) == [*range(25)]
    core = scanned(2, 25)
    assert next_offsets(cluster, core) == [*range(20)]
    with pytest.raises(LogTruncated, match=r"leader epoch 2 .* of epoch 3 from offset 20 on"):
        next_offsets(cluster, core)


def test_an_empty_scan_ends_at_once():
    cluster = ScriptedCluster()

    assert all_offsets(cluster, scanning(cluster, {})) == []


def test_an_empty_range_at_the_end_of_the_log_is_read_without_a_fetch():
    cluster = ScriptedCluster()
    filled(cluster, 1)

    assert all_offsets(cluster, scanning(cluster, {("t", 0): (10, 10)})) == []
    assert cluster.requests(api_keys.FETCH) == []


@pytest.mark.parametrize(("first", "end"), [(0, 15), (12, 31), (31, 31), (0, 0)])
def test_a_range_that_the_log_does_not_have_is_refused_before_the_first_row(first: int, end: int):
    cluster = ScriptedCluster()
    logs = filled(cluster, 3, partitions=2)
    del logs[1].batches[0]
    logs[1].start_offset = 10
    core = scanning(cluster, {("t", 0): (0, 30), ("t", 1): (first, end)})

    with pytest.raises(OffsetOutOfRange, match=rf"t \[1\] has .* 10 to 30, not {first} to {end}"):
        next_offsets(cluster, core)


def test_gaps_of_a_compaction_are_no_error():
    cluster = ScriptedCluster()
    (log,) = filled(cluster, 4)
    del log.batches[1:3]

    assert all_offsets(cluster, scanning(cluster, {("t", 0): (5, 35)})) == [
        *range(5, 10),
        *range(30, 35),
    ]


def test_a_range_may_end_inside_a_gap():
    cluster = ScriptedCluster()
    (log,) = filled(cluster, 4)
    del log.batches[1:3]

    assert all_offsets(cluster, scanning(cluster, {("t", 0): (5, 20)})) == [*range(5, 10)]


def test_a_log_that_ends_with_a_gap_is_scanned_to_its_end():
    cluster = ScriptedCluster()
    logs = filled(cluster, 4, partitions=2)
    del logs[0].batches[2:]
    core = scanning(cluster, {("t", 0): (0, 40), ("t", 1): (0, 40)})

    assert sorted(all_offsets(cluster, core)) == sorted([*range(20), *range(40)])


def test_offsets_that_a_new_leader_may_not_show_yet_are_no_gap():
    cluster = ScriptedCluster()
    filled(cluster, 2)
    core = scanning(cluster, {("t", 0): (0, 20)})
    asked = 0

    def not_yet(cluster: ScriptedCluster, seen: Seen) -> Any:
        nonlocal asked
        asked += 1
        response = fetched(cluster, seen)
        if asked < 5:
            partition = response.responses[0].partitions[0]
            partition.records, partition.high_watermark = None, 0
        return response

    cluster.rule(api_keys.FETCH, not_yet)

    assert all_offsets(cluster, core) == [*range(20)]


def test_offsets_that_nobody_gives_are_an_error_in_time():
    cluster = ScriptedCluster()
    filled(cluster, 2)
    core = scanning(cluster, {("t", 0): (0, 20)})

    def nothing(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = fetched(cluster, seen)
        partition = response.responses[0].partitions[0]
        partition.records, partition.high_watermark = None, 0
        return response

    cluster.rule(api_keys.FETCH, nothing)

    with pytest.raises(TimedOut, match=r"the leader of t \[0\] gave nothing from offset 0 on"):
        next_offsets(cluster, core)


def test_records_that_went_while_the_scan_ran_are_an_error():
    cluster = ScriptedCluster()
    (log,) = filled(cluster, 3)
    core = scanning(cluster, {("t", 0): (0, 30)}, max_partition_fetch_bytes=1)
    assert next_offsets(cluster, core) == [*range(10)]

    cluster.run_for(100)
    del log.batches[:]
    log.start_offset = 30

    assert next_offsets(cluster, core) == [*range(10, 20)]
    with pytest.raises(OffsetOutOfRange, match="has no offset 20: its log goes from 30 to 30"):
        next_offsets(cluster, core)


def test_a_truncation_is_an_error():
    cluster = ScriptedCluster(brokers=2)
    (log,) = filled(cluster, 4)
    core = scanning(cluster, {("t", 0): (0, 40)}, max_partition_fetch_bytes=1)
    assert next_offsets(cluster, core) == [*range(10)]

    log.batches.clear()
    log.end_offset = 0
    log.leader_id, log.leader_epoch = 2, 1
    for _ in range(4):
        log.add(*[b"other"] * 10)

    with pytest.raises(LogTruncated):
        all_offsets(cluster, core)


def test_a_topic_with_another_id_than_the_one_that_is_meant_is_not_scanned():
    cluster = ScriptedCluster()
    filled(cluster, 1)
    meant = id_text(cluster.topics["t"].topic_id)
    settings = scan_settings(ConsumerSettings({"bootstrap.servers": "10.0.0.1:9092"}))
    ranges = ranges_of({("t", 0): (0, 10)})

    for topic_id in (meant, ""):
        ids = {"t": topic_id}
        core = ScanCore(settings, seeded_random(), cluster.now_ms, ranges, ids)
        cluster.attach(core)
        assert all_offsets(cluster, core) == [*range(10)]

    core = ScanCore(settings, seeded_random(), cluster.now_ms, ranges, {"t": id_text(b"x" * 16)})
    cluster.attach(core)
    with pytest.raises(TopicRecreated, match=f"topic t has the id {meant}"):
        all_offsets(cluster, core)


def test_a_recreation_is_an_error():
    cluster = ScriptedCluster()
    (log,) = filled(cluster, 4)
    core = scanning(cluster, {("t", 0): (0, 40)}, max_partition_fetch_bytes=1)
    assert next_offsets(cluster, core) == [*range(10)]

    topic = cluster.topics["t"]
    topic.topic_id, topic.logs[0] = b"\xff" * 16, log

    with pytest.raises(TopicRecreated):
        all_offsets(cluster, core)


def test_a_topic_that_is_not_there_is_neither_scanned_nor_created():
    cluster = ScriptedCluster()
    core = scanning(cluster, {("t", 0): (0, 1)})

    with pytest.raises(UnknownTopic, match="topic 't' does not exist"):
        next_offsets(cluster, core)
    for seen in cluster.requests(api_keys.METADATA):
        assert not seen.request.allow_auto_topic_creation


@pytest.mark.parametrize(
    ("ranges", "error", "words"),
    [
        ([("t", 0)], TypeError, "scan takes ranges such as"),
        ({("t", 0): 5}, TypeError, "the one behind the last"),
        ({("t", 0): (0, 1, 2)}, TypeError, "the one behind the last"),
        ({("t", 0): (5, 4)}, ValueError, "ends at 4, before 5"),
        ({("t", 0): (-2, 4)}, ValueError, "-2 is no offset"),
        ({("t", 0): (0, "4")}, TypeError, "an offset as an int"),
        ({"t": (0, 4)}, TypeError, "takes partitions"),
    ],
)
def test_wrong_ranges_are_refused(ranges: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        ranges_of(ranges)
