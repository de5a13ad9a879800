"""Changes between a leader's two lanes: one for who is in sync, one for who is behind."""

from __future__ import annotations

import pytest
from tests.support.link.link_scene import Request
from tests.support.replication.follower_scene import (
    LEADER,
    LEADER_LIFE,
    OWN,
    FollowerScene,
    a_copy,
    part,
)

from tarry.broker.replication.followed import FETCHING, Followed
from tarry.partition.replicated_log import ReplicatedLog


def test_who_is_out_of_the_isr_goes_by_the_other_lane_and_comes_back() -> None:
    scene = FollowerScene()
    tail, behind = scene.host(0), scene.host(1, isr=[LEADER])

    scene.turn(), scene.turn(), scene.turn()
    asked = [one.message for one in scene.transport.requests]
    assert [[each.partition for each in one.topics[0].partitions] for one in asked] == [[0], [1]]
    scene.answer(part(0))
    scene.answer(part(1))
    scene.role(behind, isr=[OWN, LEADER], partition_epoch=1)
    scene.turn()
    # The fetches of both lanes are answered: one has nothing left, the other one more.
    scene.answer()
    scene.answer()
    scene.turn()

    (request,) = scene.transport.requests
    assert [one.partition for one in request.message.topics[0].partitions] == [1]
    assert scene.followed(tail).lane_key == scene.followed(behind).lane_key


def test_who_comes_back_in_sync_is_fetched_while_the_lane_it_goes_to_waits_for_an_answer() -> None:
    scene = FollowerScene()
    scene.host(0)
    behind = scene.host(1, isr=[LEADER])
    scene.turn(), scene.turn(), scene.turn()
    scene.answer(part(0))
    scene.answer(part(1))
    scene.turn()

    scene.role(behind, isr=[OWN, LEADER], partition_epoch=1)
    scene.turn()
    # The leader keeps the fetch of those in sync until it has something for them.
    kept = scene.transport.requests.popleft()
    scene.answer(part(1, a_copy(0), high_watermark=1))
    scene.flush()

    assert behind.log.log_end_offset == 1
    assert scene.positions() == {1: 1}
    left = scene.transport.requests.popleft()
    scene.transport.requests.append(kept)
    scene.answer()
    scene.turn()
    (request,) = scene.transport.requests
    assert request.connection_id == kept.connection_id
    assert scene.positions() == {1: 1}
    # An answer of the lane that it has left does not count any more, and nothing follows it.
    scene.transport.requests.clear()
    scene.transport.requests.append(left)
    scene.answer(part(1, a_copy(1)))
    scene.flush()
    assert behind.log.log_end_offset == 1
    assert not scene.transport.requests


def joining_scene() -> tuple[FollowerScene, ReplicatedLog, Request]:
    """orders-1 has come back in sync, and waits for the lane whose fetch the leader keeps."""
    scene = FollowerScene()
    scene.host(0)
    behind = scene.host(1, isr=[LEADER])
    scene.turn(), scene.turn(), scene.turn()
    scene.answer(part(0))
    scene.answer(part(1))
    scene.turn()
    scene.role(behind, isr=[OWN, LEADER], partition_epoch=1)
    scene.turn()
    assert scene.followed(behind).is_joining
    return scene, behind, scene.transport.requests.popleft()


def joining_of(scene: FollowerScene) -> list[Followed]:
    return [
        each for lane in scene.follower.placement.lanes.values() for each in lane.joining.values()
    ]


def test_who_is_put_out_again_before_it_has_moved_stays_in_its_lane() -> None:
    scene, behind, kept = joining_scene()

    scene.role(behind, isr=[LEADER], partition_epoch=2)
    scene.transport.requests.append(kept)
    scene.transport.requests.rotate(1)
    scene.answer()
    scene.turn()

    assert joining_of(scene) == []
    assert not scene.followed(behind).is_joining
    scene.answer(part(1, a_copy(0)))
    scene.flush()
    assert behind.log.log_end_offset == 1


@pytest.mark.parametrize("what", ["leader", "life", "address", "leads", "closed", "stop"])
def test_who_was_to_move_moves_no_more_after(what: str) -> None:
    scene, behind, _ = joining_scene()

    if what == "leader":
        scene.life(3, 33)
        scene.role(behind, leader_id=3, leader_epoch=1, broker_epoch=33)
    elif what == "life":
        scene.life(LEADER, -1)
    elif what == "address":
        scene.life(LEADER, LEADER_LIFE, port=9999)
    elif what == "leads":
        scene.role(behind, leader_id=OWN, leader_epoch=1)
    elif what == "closed":
        scene.follower.placement.forget(behind)
    else:
        scene.follower.stop()
    scene.turn()

    assert joining_of(scene) == []
    followed = scene.follower.placement.followed.get(behind)
    assert followed is None or not followed.is_joining
    if what in ("leader", "address"):
        assert followed is not None
        assert followed.state == FETCHING


def test_who_is_not_settled_when_the_other_lane_is_free_moves_later() -> None:
    scene, behind, kept = joining_scene()
    scene.answer(part(1, a_copy(0), high_watermark=1))
    scene.transport.requests.append(kept)
    scene.answer()
    scene.turn()
    # The lane asks again without it, and it is asked for where it was once it is flushed.
    assert [one.connection_id for one in scene.transport.requests] == [kept.connection_id]

    scene.flush()

    assert behind.log.log_end_offset == 1
    again = scene.transport.requests.popleft()
    assert again.connection_id == kept.connection_id
    assert scene.positions() == {1: 1}
    left = scene.transport.requests.popleft()
    scene.transport.requests.append(again)
    scene.answer()
    scene.turn()
    assert scene.transport.requests[-1].connection_id == kept.connection_id != left.connection_id
    assert scene.positions() == {1: 1}


def test_who_gets_as_much_as_it_may_goes_to_the_other_lane_until_it_has_caught_up() -> None:
    scene = FollowerScene({"replica.fetch.max.bytes": "1000"})
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0, bytes(1_000)), high_watermark=1))
    scene.flush()
    lane_key = scene.followed(partition).lane_key
    assert lane_key is not None
    assert lane_key[1]
    assert scene.positions() == {0: 1}

    scene.answer(part(0, a_copy(1), high_watermark=1))
    scene.flush()

    assert scene.positions() == {0: 2}
    lane_key = scene.followed(partition).lane_key
    assert lane_key is not None
    assert not lane_key[1]
