"""Leaders that are slow, wrong or hostile, and cuts that a row interrupts."""

from __future__ import annotations

import pytest
from tests.support.replication.follower_scene import LEADER, OWN, FollowerScene, a_copy, part

from tarry.base.doors import received
from tarry.broker.replication.followed import CUTTING, FETCHING, PAUSED
from tarry.broker.replication.follower import TAKEN_BYTES_PER_TURN


def test_a_leader_that_sends_a_byte_a_second_times_out() -> None:
    scene = FollowerScene({"replica.socket.timeout.ms": "3000"})
    scene.host(0)
    scene.asked()
    slow = scene.transport.requests.popleft().connection_id

    for byte in b"\0\0\1\0\0\0":
        scene.transport.events.append(received(slow, bytes([byte])))
        scene.wait(1_000)

    assert slow not in scene.transport.open
    assert scene.positions() == {0: 0}


def test_an_answer_longer_than_any_that_was_asked_for_ends_the_link() -> None:
    scene = FollowerScene({"socket.request.max.bytes": "1000000"})
    scene.host(0)
    scene.asked()
    bad = scene.transport.requests.popleft().connection_id

    size = 10_485_760 + (1 << 20) + 1
    scene.transport.events.append(received(bad, size.to_bytes(4, "big")))
    scene.turn()

    assert bad not in scene.transport.open
    scene.wait(2_000)
    assert scene.positions() == {0: 0}


def test_partitions_that_nobody_asked_for_and_second_answers_count_for_nothing() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()

    scene.answer(part(9, a_copy(0)), part(0, a_copy(0)), part(0, a_copy(0)))
    scene.flush()

    assert scene.positions() == {0: 1}
    assert partition.log.log_end_offset == 1


@pytest.mark.parametrize(
    "batches",
    [
        # From before what was asked for, of an epoch before it, and not in order.
        (a_copy(0, epoch=1),),
        (a_copy(1, epoch=0),),
        (a_copy(3, epoch=1), a_copy(2, epoch=1)),
        (a_copy(1, epoch=1), a_copy(1, epoch=1)),
    ],
)
def test_batches_that_cannot_follow_are_not_taken(batches: tuple[bytes, ...]) -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0, epoch=1)))
    scene.flush()
    scene.asked()

    scene.answer(part(0, *batches))
    scene.flush()

    assert partition.log.log_end_offset <= 2
    assert scene.state_of(partition) in (PAUSED, FETCHING)
    scene.wait(3_000)
    assert scene.transport.requests


def test_a_large_answer_is_taken_over_several_turns() -> None:
    scene = FollowerScene()
    partitions = [scene.host(index) for index in range(4)]
    large = a_copy(0, bytes(TAKEN_BYTES_PER_TURN * 2 // 3))
    scene.asked()

    scene.answer(*(part(index, large) for index in range(4)))

    assert [one.log.log_end_offset for one in partitions] == [1, 1, 0, 0]
    assert scene.follower.has_work_left()
    scene.flush()
    assert not scene.transport.requests
    scene.flush()
    assert [one.log.log_end_offset for one in partitions] == [1, 1, 1, 1]
    assert scene.positions() == {0: 1, 1: 1, 2: 1, 3: 1}


def long_log(scene: FollowerScene) -> None:
    """Host a log of forty segments, all but the first of an epoch that the leader does not know."""
    partition = scene.host(0, {"segment.bytes": 100})
    scene.asked()
    scene.answer(part(0, a_copy(0), *(a_copy(at, epoch=1) for at in range(1, 40))))
    scene.flush()
    assert len(partition.log.segments) == 40
    scene.role(partition, leader_epoch=2)
    scene.answer()
    scene.answer(part(0, diverging=(0, 1)))
    assert scene.state_of(partition) == CUTTING


def test_a_cut_of_many_segments_takes_several_turns() -> None:
    scene = FollowerScene()
    long_log(scene)
    partition = scene.partitions[0]

    assert 1 < partition.log.log_end_offset < 40
    assert scene.follower.has_work_left()
    scene.run()

    assert partition.log.log_end_offset == 1
    assert scene.positions() == {0: 1}


@pytest.mark.parametrize("turns", range(0, 6))
def test_a_row_that_comes_during_a_cut_is_followed_in_the_end(turns: int) -> None:
    scene = FollowerScene()
    long_log(scene)
    partition = scene.partitions[0]
    scene.run(turns)

    scene.role(partition, leader_epoch=3)
    for _ in range(20):
        scene.run(1)
        if scene.transport.requests:
            break
    while [one.current_leader_epoch for one in scene.asked_partitions()] != [3]:
        scene.answer()

    (asked,) = scene.asked_partitions()
    assert asked.fetch_offset == partition.log.log_end_offset
    assert not partition.log.is_being_cut
    assert scene.state_of(partition) == FETCHING


@pytest.mark.parametrize("turns", range(0, 6))
def test_who_is_to_lead_during_a_cut_can_append_after_one_flush(turns: int) -> None:
    scene = FollowerScene()
    long_log(scene)
    partition = scene.partitions[0]
    scene.run(turns)

    scene.role(partition, leader_id=OWN, leader_epoch=3)
    assert partition.log.leader_epochs.latest_epoch == 3
    end = partition.log.log_end_offset
    scene.turn()
    scene.flush()
    partition.log.append_bytes(a_copy(end), 3, 0)
    scene.flushes.touch(partition)
    scene.run(3)

    assert partition.log.flushed_offset == end + 1
    scene.transport.requests.clear()
    scene.role(partition, leader_id=LEADER, leader_epoch=4)
    assert scene.positions() == {0: end + 1}
