"""Where a consumer reads: sought by offset, beginning, end and time, and how far it is behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.client.scripted_cluster import WALL_MS, ScriptedCluster
from tests.support.client.scripted_consumer import consumer_of

from tarry.client.errors import NotSubscribed
from tarry.client.sync.consumer import Consumer

PLACES = [("t", 0), ("t", 1)]


@pytest.fixture
def cluster() -> ScriptedCluster:
    """Topic t: in each of two partitions ten records, a second apart."""
    cluster = ScriptedCluster()
    for log in cluster.topic("t", 2).logs:
        for number in range(10):
            log.add(b"%d" % number, timestamp=WALL_MS + 1000 * number)
    return cluster


@pytest.fixture
def consumer(cluster: ScriptedCluster) -> Consumer:
    consumer = consumer_of(cluster)
    consumer.assign(PLACES)
    return consumer


def read(consumer: Consumer, cluster: ScriptedCluster) -> dict[int, list[bytes | None]]:
    """Poll until nothing more comes; values by partition."""
    found: dict[int, list[bytes | None]] = {}
    while groups := consumer.poll(timeout=1.0):
        for group in groups:
            found.setdefault(group.partition, []).extend(one.value for one in group.records)
    return found


def values(begin: int) -> list[bytes]:
    return [b"%d" % number for number in range(begin, 10)]


SEEKS: list[tuple[str, Callable[[Consumer], None], int]] = [
    ("to the beginning", lambda consumer: consumer.seek_to_beginning(), 0),
    ("to the end", lambda consumer: consumer.seek_to_end(), 10),
    ("to the first record's time", lambda consumer: consumer.seek_to_time(WALL_MS), 0),
    ("to a time before all", lambda consumer: consumer.seek_to_time(0), 0),
    ("to a record's time", lambda consumer: consumer.seek_to_time(WALL_MS + 4000), 4),
    ("to a time between", lambda consumer: consumer.seek_to_time(WALL_MS + 4001), 5),
    # No record is that young: reading goes on with what comes.
    ("to a time after all", lambda consumer: consumer.seek_to_time(WALL_MS + 9001), 10),
]


@pytest.mark.parametrize(("name", "seek", "offset"), SEEKS)
def test_a_seek_of_everything_moves_every_partition(
    consumer: Consumer,
    cluster: ScriptedCluster,
    name: str,
    seek: Callable[[Consumer], None],
    offset: int,
) -> None:
    consumer.seek("t", 0, 7)
    consumer.seek("t", 1, 2)
    read(consumer, cluster)

    seek(consumer)
    found = read(consumer, cluster)

    assert found == ({0: values(offset), 1: values(offset)} if offset < 10 else {})
    assert [consumer.position(*place) for place in PLACES] == [10, 10]


def test_a_seek_of_one_partition_leaves_the_others_where_they_are(
    consumer: Consumer, cluster: ScriptedCluster
) -> None:
    consumer.seek_to_end()
    read(consumer, cluster)

    consumer.seek_to_time(WALL_MS + 8000, [("t", 1)])

    assert consumer.position("t", 0) == 10
    assert read(consumer, cluster) == {1: values(8)}


def test_a_position_is_not_known_while_it_is_being_looked_up(
    consumer: Consumer, cluster: ScriptedCluster
) -> None:
    consumer.seek("t", 0, 3)

    consumer.seek_to_end([("t", 0)])
    before = consumer.position("t", 0)
    read(consumer, cluster)

    assert (before, consumer.position("t", 0)) == (-1, 10)


def test_what_was_read_ahead_is_dropped_by_a_seek(
    consumer: Consumer, cluster: ScriptedCluster
) -> None:
    consumer.seek_to_beginning()
    (first, *_) = consumer.poll(timeout=1.0, max_records=1)

    consumer.seek_to_end()

    assert [one.value for one in first.records] == [b"0"]
    assert read(consumer, cluster) == {}


def test_records_that_come_after_a_seek_to_the_end_are_read(
    consumer: Consumer, cluster: ScriptedCluster
) -> None:
    consumer.seek_to_end()
    read(consumer, cluster)

    cluster.topics["t"].logs[1].add(b"new")

    assert read(consumer, cluster) == {1: [b"new"]}


@pytest.mark.parametrize(
    "ask",
    [
        lambda consumer: consumer.seek_to_end([("t", 0), ("t", 7)]),
        lambda consumer: consumer.seek_to_time(0, [("t", 0), ("t", 7)]),
        lambda consumer: consumer.seek_to_beginning([("t", 0), ("t", 7)]),
        lambda consumer: consumer.lag("t", 7),
        lambda consumer: consumer.is_at_end("t", 7),
    ],
)
def test_what_is_not_read_can_neither_be_sought_nor_measured(
    consumer: Consumer, ask: Callable[[Consumer], object]
) -> None:
    consumer.seek("t", 0, 3)

    with pytest.raises(NotSubscribed, match=r"t \[7\] is not read by this consumer"):
        ask(consumer)

    # Nothing has moved before the error.
    assert consumer.position("t", 0) == 3


def test_lag_and_end_follow_what_is_handed_out(
    consumer: Consumer, cluster: ScriptedCluster
) -> None:
    consumer.assign([("t", 0)])
    consumer.seek("t", 0, 4)
    seen = [(consumer.lag("t", 0), consumer.is_at_end("t", 0))]

    for _ in range(3):
        consumer.poll(timeout=1.0, max_records=2)
        seen.append((consumer.lag("t", 0), consumer.is_at_end("t", 0)))

    # Before the first fetch nobody knows where the end is.
    assert seen == [(-1, False), (4, False), (2, False), (0, True)]


def test_lag_and_end_are_those_that_the_last_fetch_saw(
    consumer: Consumer, cluster: ScriptedCluster
) -> None:
    consumer.assign([("t", 0)])
    consumer.seek_to_end()
    read(consumer, cluster)
    before = (consumer.lag("t", 0), consumer.is_at_end("t", 0))

    cluster.topics["t"].logs[0].add(b"a", b"b")
    unseen = (consumer.lag("t", 0), consumer.is_at_end("t", 0))
    consumer.poll(timeout=1.0, max_records=1)

    assert before == unseen == (0, True)
    assert (consumer.lag("t", 0), consumer.is_at_end("t", 0)) == (1, False)


def test_a_seek_backwards_is_behind_at_once(consumer: Consumer, cluster: ScriptedCluster) -> None:
    consumer.assign([("t", 0)])
    consumer.seek_to_end()
    read(consumer, cluster)

    consumer.seek("t", 0, 4)

    assert (consumer.lag("t", 0), consumer.is_at_end("t", 0)) == (6, False)
