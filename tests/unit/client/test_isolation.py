"""Isolation levels: what of transactions is handed out, and what never is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.consumer_scene import T0, consumer, poll, poll_all, reading
from tests.support.client.fetch_cluster import ABORT, COMMIT, FetchCluster
from tests.support.client.hand_face import perform

from tarry.client.core.consumer.lookup import LATEST
from tarry.client.core.group.offsets.what import offsets_behind
from tarry.client.errors import CorruptRecords
from tarry.protocol import api_keys

COMMITTED = {"isolation_level": "read_committed"}


def everything(cluster: FetchCluster, end: int) -> list[bytes | None]:
    """All that polls bring until the position is `end`."""
    values: list[bytes | None] = []
    for _ in range(50):
        if cluster.core.position(T0).position == end:
            return values
        values += poll(cluster)
    raise AssertionError(f"the position is {cluster.core.position(T0).position}, not {end}")


def test_a_committed_reader_gets_committed_records_only() -> None:
    cluster = FetchCluster()
    log = cluster.log()
    log.add(b"plain")
    log.write(7, b"aborted 1", b"aborted 2")
    log.write(8, b"committed")
    log.end(7, ABORT)
    log.end(8, COMMIT)
    log.write(7, b"the next one of 7")
    end = log.end(7, COMMIT) + 1
    reading(cluster, **COMMITTED)

    values = everything(cluster, end)

    assert values == [b"plain", b"committed", b"the next one of 7"]


def test_an_uncommitted_reader_gets_all_records_and_no_marker() -> None:
    cluster = FetchCluster()
    log = cluster.log()
    log.write(7, b"aborted")
    log.end(7, ABORT)
    log.write(8, b"open")
    core = reading(cluster)

    assert poll_all(cluster, 2) == [b"aborted", b"open"]
    assert core.position(T0).lag == 0


def test_nothing_comes_from_behind_an_open_transaction_until_it_ends() -> None:
    cluster = FetchCluster()
    log = cluster.log()
    log.add(b"before")
    log.write(7, b"open")
    log.add(b"behind")
    core = reading(cluster, **COMMITTED)
    assert poll(cluster) == [b"before"]
    cluster.run_for(2_000)

    held_back = core.position(T0)
    assert not held_back.has_records
    assert (held_back.lag, held_back.is_at_end, held_back.high_watermark) == (0, True, 3)
    log.end(7, COMMIT)
    assert poll_all(cluster, 2) == [b"open", b"behind"]


@pytest.mark.parametrize("bytes_max", [80, 200, 1 << 20])
def test_a_transaction_that_spans_fetches_is_left_out_as_a_whole(bytes_max: int) -> None:
    cluster = FetchCluster()
    log = cluster.log()
    for number in range(20):
        log.write(7, b"aborted %d" % number)
        log.add(b"plain %d" % number)
    end = log.end(7, ABORT) + 1
    reading(cluster, max_partition_fetch_bytes=bytes_max, **COMMITTED)

    assert everything(cluster, end) == [b"plain %d" % number for number in range(20)]
    fetches = cluster.requests(api_keys.FETCH)
    assert (len(fetches) > 10) is (bytes_max < 1_000)


@pytest.mark.parametrize("offset", range(6))
def test_reading_may_begin_anywhere_inside_an_aborted_transaction(offset: int) -> None:
    cluster = FetchCluster()
    log = cluster.log()
    log.write(7, b"a0", b"a1")
    log.write(7, b"a2")
    log.add(b"plain")
    log.write(7, b"a4")
    end = log.end(7, ABORT) + 1
    reading(cluster, offset=offset, **COMMITTED)

    assert everything(cluster, end) == ([b"plain"] if offset <= 3 else [])


def test_a_marker_as_the_last_record_leaves_no_lag() -> None:
    cluster = FetchCluster()
    log = cluster.log()
    log.write(7, b"only")
    end = log.end(7, COMMIT) + 1
    core = reading(cluster, **COMMITTED)

    assert everything(cluster, end) == [b"only"]
    assert (core.position(T0).lag, core.position(T0).is_at_end) == (0, True)


def test_a_commit_of_a_group_goes_behind_aborted_records_that_follow_it() -> None:
    cluster = FetchCluster()
    log = cluster.log()
    log.add(b"plain")
    log.write(7, b"aborted 1", b"aborted 2")
    end = log.end(7, ABORT) + 1
    core = reading(cluster, **COMMITTED)
    cluster.run_for(2_000)

    (group,) = core.take(500, cluster.now_ms)

    assert [record.value for record in group] == [b"plain"]
    assert group.next_offset == end
    assert offsets_behind(group)[T0].offset == end


def test_a_log_may_begin_inside_a_transaction() -> None:
    for kind, wanted in ((ABORT, []), (COMMIT, [b"kept"])):
        cluster = FetchCluster()
        log = cluster.log()
        log.write(7, b"gone")
        log.write(7, b"kept")
        end = log.end(7, kind) + 1
        # Retention took the first batch away.
        del log.batches[0]
        log.start_offset = 1
        reading(cluster, offset=1, **COMMITTED)

        assert everything(cluster, end) == wanted


@pytest.mark.parametrize("codec", range(5))
def test_aborted_batches_are_left_out_in_every_codec(codec: int) -> None:
    cluster = FetchCluster()
    log = cluster.log()
    log.write(7, b"aborted" * 50, codec=codec)
    log.write(8, b"committed" * 50, codec=codec)
    log.end(8, COMMIT)
    end = log.end(7, ABORT) + 1
    reading(cluster, **COMMITTED)

    assert everything(cluster, end) == [b"committed" * 50]


def test_a_control_batch_whose_marker_was_compacted_away_ends_nothing() -> None:
    cluster = FetchCluster()
    log = cluster.log()
    log.write(7, b"aborted 1")
    log.end(7, ABORT)
    empty = bytearray(log.batches[1][:61])
    empty[8:12] = (61 - 12).to_bytes(4, "big")
    empty[57:61] = bytes(4)
    from tests.support.client.fetch_cluster import crc_of

    empty[17:21] = crc_of(bytes(empty))
    log.batches[1] = bytes(empty)
    log.add(b"plain")
    reading(cluster, **COMMITTED)

    assert everything(cluster, 3) == [b"plain"]


def test_an_aborted_batch_that_is_damaged_is_told_and_not_left_out_in_silence() -> None:
    cluster = FetchCluster()
    log = cluster.log()
    log.write(7, b"aborted")
    flawed = bytearray(log.batches[0])
    flawed[-1] ^= 1
    log.batches[0] = bytes(flawed)
    log.end(7, ABORT)
    reading(cluster, **COMMITTED)

    with pytest.raises(CorruptRecords, match="offset 0"):
        for _ in range(5):
            poll(cluster)


def test_the_end_is_the_last_stable_offset_for_those_who_read_what_is_committed() -> None:
    for level in (0, 1):
        cluster = FetchCluster()
        cluster.log()
        core = consumer(cluster, **(COMMITTED if level else {}))
        asked: list[Any] = []
        cluster.script(
            api_keys.LIST_OFFSETS,
            lambda cluster, seen, asked=asked: asked.append(seen.request) or cluster.default(seen),
        )

        perform(cluster, core.begin_offsets({T0: LATEST}, 1_000, cluster.now_ms))

        assert [one.isolation_level for one in asked] == [level]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_of_fetch_names_aborted_transactions(version: int) -> None:
    cluster = FetchCluster()
    cluster.ranges[api_keys.FETCH] = (4, version)
    log = cluster.log()
    log.write(7, b"aborted")
    log.end(7, ABORT)
    log.add(b"plain")
    reading(cluster, **COMMITTED)

    assert everything(cluster, 3) == [b"plain"]
    assert cluster.requests(api_keys.FETCH)[0].request.isolation_level == 1


def test_an_old_broker_is_asked_for_offsets_in_its_own_words() -> None:
    cluster = FetchCluster()
    cluster.ranges[api_keys.LIST_OFFSETS] = (1, 1)
    cluster.log().add(b"0")
    core = consumer(cluster, **COMMITTED)

    found = perform(cluster, core.begin_offsets({T0: LATEST}, 1_000, cluster.now_ms))

    assert found == {T0: 1}
