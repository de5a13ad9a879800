"""The consumer's core: positions, fetches, resets, and what it never hands out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client import scripted_cluster
from tests.support.client.consumer_scene import (
    T0,
    answer_with,
    answer_with_bytes,
    consumer,
    poll,
    poll_all,
    reading,
)
from tests.support.client.hand_face import perform
from tests.support.client.scripted_cluster import CUT, WALL_MS, Log, ScriptedCluster, Seen

from tarry.base import errors
from tarry.client.core.consumer.lookup import EARLIEST, LATEST, FoundOffset
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.metadata import LeaderHint
from tarry.client.errors import (
    BrokerError,
    CorruptRecords,
    LogTruncated,
    OffsetOutOfRange,
    TopicRecreated,
    UnknownTopic,
)
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import LeaderIdAndEpoch, NodeEndpoint
from tarry.records.builder import BatchBuilder

# --- Reading


def test_records_are_read_from_the_position_on() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"0", b"1")
    log.add(b"2")
    reading(cluster)

    values = poll(cluster)

    assert values == [b"0", b"1", b"2"]


def test_a_position_inside_a_batch_skips_what_lies_before_it() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0", b"1", b"2", b"3")
    core = reading(cluster, offset=2)

    values = poll(cluster)

    assert values == [b"2", b"3"]
    assert core.position(T0).position == 4


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_is_decoded(codec: int) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"a" * 500, b"b", codec=codec)
    reading(cluster)

    assert poll(cluster) == [b"a" * 500, b"b"]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_of_fetch_brings_records(version: int) -> None:
    cluster = ScriptedCluster()
    cluster.ranges[api_keys.FETCH] = (4, version)
    cluster.topic("t").logs[0].add(b"0")
    reading(cluster)

    assert poll(cluster) == [b"0"]
    assert cluster.requests(api_keys.FETCH)[0].version == version


@pytest.mark.parametrize("version", range(1, 11))
def test_every_version_of_list_offsets_finds_the_end(version: int) -> None:
    cluster = ScriptedCluster()
    cluster.ranges[api_keys.LIST_OFFSETS] = (1, version)
    cluster.topic("t").logs[0].add(b"0", b"1")
    core = consumer(cluster)
    core.assign([T0])

    core.seek_to(T0, LATEST)
    cluster.run_until(lambda: core.position(T0).position >= 0)

    assert core.position(T0).position == 2


def test_the_next_fetch_is_under_way_before_the_records_are_taken() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    core = reading(cluster)

    cluster.run_until(lambda: core.has_records(cluster.now_ms))

    offsets = [
        seen.request.topics[0].partitions[0].fetch_offset
        for seen in cluster.requests(api_keys.FETCH)
    ]
    assert offsets == [0, 1]


def test_what_is_read_ahead_is_bounded() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    for _ in range(100):
        log.add(b"x" * 1_000)
    core = reading(cluster, fetch_max_bytes=5_000, max_partition_fetch_bytes=2_000)

    cluster.run_for(10_000)

    assert core.fetcher.buffered_bytes <= 5_000
    assert core.fetcher.buffered_bytes == core.position(T0).buffered_bytes


def test_everything_is_read_once_and_in_order_however_small_the_fetches_are() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    for number in range(0, 300, 3):
        log.add(b"%d" % number, b"%d" % (number + 1), b"%d" % (number + 2))
    core = reading(cluster, max_partition_fetch_bytes=250)

    values: list[bytes | None] = []
    while len(values) < 300:
        values += poll(cluster)

    assert values == [b"%d" % number for number in range(300)]
    assert core.fetcher.buffered_bytes == 0


def test_partitions_take_turns() -> None:
    cluster = ScriptedCluster()
    topic = cluster.topic("t", partitions=3)
    for log in topic.logs:
        for _ in range(10):
            log.add(b"x")
    core = consumer(cluster, max_partition_fetch_bytes=150)
    places = [("t", index) for index in range(3)]
    core.assign(places)
    for place in places:
        core.seek(place, 0)

    first = []
    for _ in range(6):
        cluster.run_until(lambda: core.has_records(cluster.now_ms))
        first.append(core.take(1, cluster.now_ms)[0].partition)

    assert sorted(first[:3]) == [0, 1, 2]


def test_control_batches_are_stepped_over() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    marker = BatchBuilder()
    marker.append(0, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00", None)
    log.append(marker.build(attributes=0x20))
    log.add(b"2")
    core = reading(cluster)

    assert poll(cluster) == [b"0", b"2"]
    assert core.position(T0).position == 3


def test_null_values_and_headers_come_as_they_are() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    builder = BatchBuilder()
    builder.append(WALL_MS, b"k", None, [("h", None), ("h", b"2")])
    log.append(builder.build())
    core = reading(cluster)

    cluster.run_until(lambda: core.has_records(cluster.now_ms))
    record = core.take(10, cluster.now_ms)[0].records[0]

    assert (record.key, record.value) == (b"k", None)
    assert record.headers == [("h", None), ("h", b"2")]


# --- Moving


def test_seeking_drops_what_was_fetched_and_what_is_on_its_way() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    for number in range(20):
        log.add(b"%d" % number)
    core = reading(cluster, max_partition_fetch_bytes=200)
    cluster.run_until(lambda: core.has_records(cluster.now_ms))

    core.seek(T0, 15)
    values: list[bytes | None] = []
    while len(values) < 5:
        values += poll(cluster)

    assert values == [b"15", b"16", b"17", b"18", b"19"]


def test_a_time_is_looked_up_at_the_leader() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"old", timestamp=1_000)
    log.add(b"new", timestamp=2_000)
    core = consumer(cluster)
    core.assign([T0])

    core.seek_to(T0, 1_500)

    assert poll(cluster) == [b"new"]


def test_a_time_after_the_last_record_is_the_end() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"old", timestamp=1_000)
    core = consumer(cluster)
    core.assign([T0])

    core.seek_to(T0, 5_000)
    cluster.run_for(1_000)
    log.add(b"later", timestamp=6_000)

    assert poll(cluster) == [b"later"]


def test_the_last_of_two_seeks_counts() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0", b"1")
    core = consumer(cluster)
    core.assign([T0])

    core.seek_to(T0, LATEST)
    cluster.run_for(cluster.latency_ms)
    core.seek_to(T0, EARLIEST)

    assert poll(cluster) == [b"0", b"1"]


def test_offsets_are_looked_up_beside_a_seek_of_the_same_partition() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0", b"1")
    core = consumer(cluster)
    core.assign([T0])
    core.seek_to(T0, EARLIEST)

    found = perform(cluster, core.begin_offsets({T0: LATEST}, 10_000, cluster.now_ms))

    assert found == {T0: 2}
    assert poll(cluster) == [b"0", b"1"]


def test_a_paused_partition_is_neither_fetched_nor_handed_out() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0")
    core = reading(cluster)
    core.position(T0).is_paused = True

    cluster.run_for(2_000)

    assert not core.has_records(cluster.now_ms)
    assert not cluster.requests(api_keys.FETCH)


def test_partitions_that_are_given_up_are_forgotten() -> None:
    cluster = ScriptedCluster()
    for name in ("t", "u"):
        cluster.topic(name).logs[0].add(b"from " + name.encode())
    core = reading(cluster)
    cluster.run_until(lambda: core.has_records(cluster.now_ms))

    core.assign([("u", 0)])
    core.seek(("u", 0), 0)

    assert poll(cluster) == [b"from u"]
    assert core.metadata.tracked == ["u"]
    assert core.fetcher.buffered_bytes == 0


# --- What goes wrong


def test_an_offset_that_is_gone_is_reset_as_the_setting_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for reset, wanted in (("earliest", [b"5"]), ("latest", [b"6"])):
        cluster = ScriptedCluster()
        log = cluster.topic("t").logs[0]
        log.start_offset = log.end_offset = 5
        log.add(b"5")
        reading(cluster, offset=2, auto_offset_reset=reset)

        cluster.run_for(1_000)
        if reset == "latest":
            log.add(b"6")

        assert poll(cluster) == wanted
    assert "3 records are gone" in caplog.text


def test_an_offset_that_is_gone_raises_with_the_valid_range() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.start_offset = log.end_offset = 5
    log.add(b"5")
    core = reading(cluster, offset=99, auto_offset_reset="none")
    cluster.run_until(lambda: core.has_records(cluster.now_ms))

    with pytest.raises(OffsetOutOfRange, match="no offset 99: its log goes from 5 to 6"):
        core.take(1, cluster.now_ms)


def test_a_corrupt_batch_is_fetched_once_more_and_then_raised_with_its_offset() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    log.add(b"1")
    flawed = bytearray(log.batches[1])
    flawed[-1] ^= 1
    good = log.batches[1]
    log.batches[1] = bytes(flawed)
    core = reading(cluster)

    assert poll(cluster) == [b"0"]
    with pytest.raises(CorruptRecords, match="offset 1"):
        for _ in range(10):
            poll(cluster)
    assert core.position(T0).position == 1
    log.batches[1] = good
    core.seek(T0, 1)
    assert poll(cluster) == [b"1"]


def test_a_batch_that_was_damaged_on_its_way_is_fetched_again() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    flawed = bytearray(log.batches[0])
    flawed[-1] ^= 1
    cluster.script(api_keys.FETCH, answer_with_bytes(bytes(flawed)))
    reading(cluster)

    values: list[bytes | None] = []
    while not values:
        values = poll(cluster)

    assert values == [b"0"]


def test_bytes_that_hold_no_whole_batch_do_not_spin() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0")
    cluster.rule(api_keys.FETCH, answer_with_bytes(b"x" * 20))
    reading(cluster)

    with pytest.raises(CorruptRecords):
        poll(cluster)
    cluster.run_for(5_000)
    assert len(cluster.requests(api_keys.FETCH)) == 2


def test_a_moved_leader_is_followed() -> None:
    cluster = ScriptedCluster(brokers=2)
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    reading(cluster)
    assert poll(cluster) == [b"0"]
    log.leader_id, log.leader_epoch = 2, 1
    log.add(b"1")

    assert poll(cluster) == [b"1"]


def test_a_leader_named_in_the_answer_is_followed_at_once() -> None:
    cluster = ScriptedCluster(brokers=2)
    log = cluster.topic("t").logs[0]
    log.add(b"0")

    def pointing(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = answer_with(errors.NOT_LEADER_OR_FOLLOWER)(cluster, seen)
        response.responses[0].partitions[0].current_leader = LeaderIdAndEpoch(2, 1)
        response.node_endpoints = [NodeEndpoint(2, "10.0.0.2", 9092, None)]
        log.leader_id, log.leader_epoch = 2, 1
        return response

    cluster.script(api_keys.FETCH, pointing)
    reading(cluster)

    started_ms = cluster.now_ms
    assert poll(cluster) == [b"0"]
    assert cluster.now_ms - started_ms < 50


def test_a_cut_connection_loses_and_doubles_nothing() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    for number in range(30):
        log.add(b"%d" % number)
    for _ in range(5):
        cluster.script(api_keys.FETCH, lambda cluster, seen: cluster.fetch(seen))
        cluster.script(api_keys.FETCH, lambda cluster, seen: CUT)
    reading(cluster, max_partition_fetch_bytes=200)

    values: list[bytes | None] = []
    while len(values) < 30:
        values += poll(cluster)

    assert values == [b"%d" % number for number in range(30)]


def test_a_topic_that_is_not_there_is_raised_and_may_still_come() -> None:
    cluster = ScriptedCluster()
    core = reading(cluster)
    cluster.run_until(lambda: core.has_records(cluster.now_ms))

    with pytest.raises(UnknownTopic, match="topic 't' does not exist"):
        core.take(1, cluster.now_ms)
    cluster.topic("t").logs[0].add(b"0")
    cluster.run_until(lambda: bool(core.position(T0).buffered))
    assert poll(cluster) == [b"0"]


def test_a_consumer_never_makes_topics() -> None:
    cluster = ScriptedCluster()
    reading(cluster)

    cluster.run_for(1_000)

    asked = [seen.request for seen in cluster.requests(api_keys.METADATA)]
    assert asked
    assert not any(request.allow_auto_topic_creation for request in asked)


def test_a_topic_that_was_made_anew_is_told() -> None:
    cluster = ScriptedCluster()
    topic = cluster.topic("t")
    topic.logs[0].add(b"0")
    core = reading(cluster, metadata_max_age_ms=1_000)
    assert poll(cluster) == [b"0"]
    topic.topic_id = b"\xff" * 16
    topic.logs[0] = Log(1)

    cluster.run_until(lambda: core.has_records(cluster.now_ms))

    with pytest.raises(TopicRecreated, match="belonged to the old one"):
        core.take(1, cluster.now_ms)


@pytest.mark.parametrize("code", sorted(code for code in errors.ERRORS if code != errors.NONE))
def test_every_error_code_of_a_fetch_is_raised_or_passes(code: int) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0")
    cluster.script(api_keys.FETCH, answer_with(code))
    core = reading(cluster, auto_offset_reset="earliest")

    try:
        values = poll(cluster)
    except BrokerError as error:
        assert error.code == code
        assert not errors.ERRORS[code].retriable
        cluster.run_for(5_000)
        assert len(cluster.requests(api_keys.FETCH)) == 1
    else:
        assert values == [b"0"]
    assert core.position(T0).position in (0, 1)


@pytest.mark.parametrize("code", sorted(code for code in errors.ERRORS if code != errors.NONE))
def test_every_error_code_of_a_look_up_is_raised_or_passes(code: int) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0")

    def refused(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = cluster.default(seen)
        response.topics[0].partitions[0].error_code = code
        return response

    cluster.script(api_keys.LIST_OFFSETS, refused)
    core = consumer(cluster)
    query = core.begin_offsets({T0: LATEST}, 10_000, cluster.now_ms)

    cluster.run_until(lambda: query.is_ready, 10_000)

    answer = query.answers[T0]
    if isinstance(answer, BrokerError):
        assert answer.code == code
        assert not errors.ERRORS[code].retriable
    else:
        assert answer == FoundOffset(1, -1, -1)


@pytest.mark.parametrize(("reset", "wanted"), [("earliest", [b"0"]), ("latest", [])])
def test_a_partition_that_nobody_sought_begins_as_the_setting_says(
    reset: str, wanted: list[bytes]
) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0")
    core = consumer(cluster, auto_offset_reset=reset)

    core.assign([T0])

    assert poll(cluster) == wanted
    assert core.position(T0).position == 1


def test_a_partition_that_nobody_sought_is_raised_without_a_reset() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = consumer(cluster, auto_offset_reset="none")

    core.assign([T0])
    cluster.run_until(lambda: core.has_records(cluster.now_ms))

    with pytest.raises(OffsetOutOfRange, match="there is no offset to begin at"):
        core.take(1, cluster.now_ms)


def test_a_partition_that_is_paused_while_it_is_sought_goes_on_from_there() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0")
    core = consumer(cluster, auto_offset_reset="none")
    core.assign([T0])
    core.seek_to(T0, EARLIEST)

    core.pause([T0])
    cluster.run_for(1_000)
    core.resume([T0])

    assert poll(cluster) == [b"0"]


# --- New leaders


def test_a_new_leader_that_has_everything_is_read_on_from() -> None:
    cluster = ScriptedCluster(brokers=2)
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    reading(cluster)
    assert poll(cluster) == [b"0"]
    log.leader_id, log.leader_epoch = 2, 1
    log.add(b"1")

    values = poll(cluster)

    assert values == [b"1"]
    assert len(cluster.requests(api_keys.OFFSET_FOR_LEADER_EPOCH)) == 1


def test_a_new_leader_that_lost_what_was_read_is_told() -> None:
    cluster = ScriptedCluster(brokers=2)
    log = cluster.topic("t").logs[0]
    for number in range(3):
        log.add(b"%d" % number)
    core = reading(cluster)
    assert poll(cluster) == [b"0", b"1", b"2"]
    del log.batches[1:]
    log.end_offset = 1
    log.leader_id, log.leader_epoch = 2, 1
    log.add(b"other 1")
    log.add(b"other 2")
    log.add(b"other 3")

    cluster.run_until(lambda: core.has_records(cluster.now_ms))

    with pytest.raises(
        LogTruncated, match="read up to offset 3, but epoch 0 ends at 1"
    ) as truncated:
        core.take(1, cluster.now_ms)
    assert str(truncated.value).endswith("to go on, seek('t', 0, 1)")
    core.seek(T0, 1)
    assert poll(cluster) == [b"other 1", b"other 2", b"other 3"]


def test_a_truncation_below_what_was_fetched_ahead_is_told_before_it_is_passed() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    for value in (b"0", b"1", b"2"):
        log.add(value)
    core = reading(cluster, metadata_max_age_ms=500)
    cluster.run_until(lambda: core.has_records(cluster.now_ms))

    # Fetched, and not yet handed out: a new leader has only the first.
    del log.batches[1:]
    log.end_offset = 1
    log.leader_epoch += 1
    cluster.run_for(3_000)

    assert isinstance(core.position(T0).error, LogTruncated)


def test_what_was_read_ahead_and_dropped_leaves_the_epoch_of_what_was_taken() -> None:
    position = PartitionPosition("t", 0)
    position.seek(5, 3)
    position.fetch_epoch, position.fetch_offset = 4, 9

    position.drop_fetched()

    assert (position.fetch_offset, position.fetch_epoch) == (5, 3)


def test_records_that_come_while_a_new_leader_is_checked_are_no_truncation() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    core = reading(cluster)
    assert poll(cluster) == [b"0"]

    def later(cluster: ScriptedCluster, seen: Seen) -> Any:
        # A fetch that was under way when the leader's epoch grew brings the first new record.
        log.leader_epoch = 1
        log.add(b"1")
        return 300, cluster.fetch(seen)

    cluster.script(api_keys.FETCH, later)
    cluster.run_until(lambda: log.leader_epoch == 1)
    core.metadata.set_leader(LeaderHint("t", 0, 1, 1, None))
    cluster.run_until(lambda: len(cluster.requests(api_keys.OFFSET_FOR_LEADER_EPOCH)) == 1)

    assert poll(cluster) == [b"1"]
    cluster.run_for(1_000)
    assert core.position(T0).error is None


def test_a_broker_that_cannot_tell_about_epochs_is_read_on_from() -> None:
    cluster = ScriptedCluster(brokers=2)
    del cluster.ranges[api_keys.OFFSET_FOR_LEADER_EPOCH]
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    reading(cluster)
    assert poll(cluster) == [b"0"]
    log.leader_id, log.leader_epoch = 2, 1
    log.add(b"1")

    assert poll(cluster) == [b"1"]


@pytest.mark.parametrize("code", sorted(code for code in errors.ERRORS if code != errors.NONE))
def test_every_error_code_of_an_epoch_check_is_raised_or_passes(code: int) -> None:
    cluster = ScriptedCluster(brokers=2)
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    reading(cluster)
    assert poll(cluster) == [b"0"]
    log.leader_id, log.leader_epoch = 2, 1
    log.add(b"1")

    def refused(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = cluster.default(seen)
        response.topics[0].partitions[0].error_code = code
        return response

    cluster.script(api_keys.OFFSET_FOR_LEADER_EPOCH, refused)

    try:
        values = poll(cluster)
    except BrokerError as error:
        assert error.code == code
        assert not errors.ERRORS[code].retriable
    else:
        assert values == [b"1"]


def test_a_poll_never_gives_more_records_than_it_was_asked_for() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    for number in range(0, 100, 10):
        log.add(*[b"%d" % place for place in range(number, number + 10)])
    core = reading(cluster)

    values: list[bytes | None] = []
    sizes: list[int] = []
    while len(values) < 100:
        cluster.run_until(lambda: core.has_records(cluster.now_ms))
        taken = [record.value for group in core.take(7, cluster.now_ms) for record in group.records]
        values += taken
        sizes.append(len(taken))
        assert core.position(T0).position == len(values)

    assert values == [b"%d" % number for number in range(100)]
    assert max(sizes) == 7


def test_what_a_poll_left_over_is_dropped_by_a_seek() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(*[b"%d" % number for number in range(10)])
    core = reading(cluster)
    cluster.run_until(lambda: core.has_records(cluster.now_ms))
    core.take(3, cluster.now_ms)

    core.seek(T0, 8)

    assert poll(cluster) == [b"8", b"9"]


# --- What happens to a topic, and to the calendar


def test_a_record_larger_than_every_limit_of_a_fetch_is_read() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"before")
    log.add(b"x" * 300_000)
    log.add(b"behind")
    core = reading(cluster, fetch_max_bytes=1_000, max_partition_fetch_bytes=100)

    values = poll_all(cluster, 3)

    assert [len(value or b"") for value in values] == [6, 300_000, 6]
    assert core.fetcher.buffered_bytes == 0


def test_partitions_that_a_topic_has_grown_by_can_be_assigned() -> None:
    cluster = ScriptedCluster()
    topic = cluster.topic("t")
    topic.logs[0].add(b"0")
    core = reading(cluster)
    assert poll(cluster) == [b"0"]

    topic.logs.append(Log(1))
    topic.logs[1].add(b"1")
    core.assign([T0, ("t", 1)])
    core.seek(("t", 1), 0)

    assert poll(cluster) == [b"1"]


@pytest.mark.parametrize("step_ms", [-(10**12), 10**12])
def test_a_calendar_that_is_set_neither_hurries_nor_holds_up_a_reader(
    step_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    core = reading(cluster)
    assert poll(cluster) == [b"0"]
    before = len(cluster.seen)

    monkeypatch.setattr(scripted_cluster, "WALL_MS", WALL_MS + step_ms)
    cluster.run_for(2_000)
    log.add(b"1")

    assert poll(cluster) == [b"1"]
    assert len(cluster.seen) - before < 10
    assert core.position(T0).error is None
