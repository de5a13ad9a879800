"""Partitions that a cooperative round held back, and that their owner may never claim again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.group_member import PLACE, GroupScene
from tests.support.client.scripted_cluster import ScriptedCluster, Seen

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import (
    Subscription,
    encode_assignment,
    encode_subscription,
)
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.join_group import JoinGroupResponseMember

OTHER: TopicPartition = ("t", 1)
SESSION_MS = 45_000


def scene_with(owned: list[TopicPartition], *, skips: bool = False, **settings: Any) -> GroupScene:
    """A leader of two partitions, beside a member `z` that says that it owns these."""
    settings = {"partition_assignment_strategy": "cooperative-sticky", **settings}
    scene = GroupScene(**settings)
    scene.cluster.topic("t", partitions=2)
    claims = [owned, []]

    def with_neighbour(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer: Any = scene.agree_to_join(cluster, seen)
        # It has given up its partitions when it joins again.
        said = encode_subscription(Subscription(["t"], None, claims.pop(0) if claims else [], 1))
        answer.members.append(JoinGroupResponseMember("z", None, said))
        answer.skip_assignment = skips and scene.generation_id == 1
        return answer

    scene.cluster.rule(api_keys.JOIN_GROUP, with_neighbour)
    scene.core.subscribe(["t"])
    return scene


def joins(scene: GroupScene) -> list[str]:
    """The reasons of the joins with which a round began."""
    return [one.request.reason for one in scene.requests(api_keys.JOIN_GROUP)]


def describe(
    scene: GroupScene, places: list[TopicPartition], state: str = "Stable", code: int = 0
) -> None:
    """Have the coordinator describe the group: the leader has t-0, `z` has these."""
    members = [
        DescribedGroupMember("m-1", "i1", "", "", b"", encode_assignment([PLACE])),
        DescribedGroupMember("z", None, "", "", b"", encode_assignment(places)),
    ]
    group = DescribedGroup(code, None, "g", state, "consumer", "cooperative-sticky", members)
    scene.cluster.rule(
        api_keys.DESCRIBE_GROUPS, lambda cluster, seen: DescribeGroupsResponse(groups=[group])
    )


def test_a_leader_joins_again_if_nobody_claims_what_it_held_back() -> None:
    scene = scene_with([PLACE, OTHER])

    scene.poll(SESSION_MS - 1_000)
    before = len(joins(scene))
    scene.poll(5_000)

    assert before == 1
    assert joins(scene)[1:] == ["partitions that were held back went to nobody"]
    assert len(scene.core.membership.owned) == 1


def test_a_round_that_gave_everything_is_followed_by_none() -> None:
    scene = scene_with([OTHER])

    scene.poll(3 * SESSION_MS)

    assert len(joins(scene)) == 1


def test_a_round_that_follows_in_time_is_followed_by_no_other() -> None:
    scene = scene_with([PLACE, OTHER])

    scene.poll(10_000)
    scene.codes[api_keys.HEARTBEAT] = [errors.REBALANCE_IN_PROGRESS]
    scene.poll(3 * SESSION_MS)

    assert len(joins(scene)) == 2


def test_a_leader_that_leaves_does_not_come_back_for_what_it_held_back() -> None:
    scene = scene_with([PLACE, OTHER])
    scene.poll(10_000)

    scene.core.unsubscribe()
    scene.poll(3 * SESSION_MS)

    assert len(joins(scene)) == 1


def test_a_static_leader_that_comes_back_gives_what_nobody_has() -> None:
    scene = scene_with([], skips=True, group_instance_id="i1")
    describe(scene, [])

    scene.poll(10_000)

    assert joins(scene)[1:] == ["partitions that were held back went to nobody"]
    assert len(scene.core.membership.owned) == 1


@pytest.mark.parametrize(
    ("places", "state", "code"),
    [
        ([OTHER], "Stable", errors.NONE),
        ([], "PreparingRebalance", errors.NONE),
        ([], "Stable", errors.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_a_static_leader_that_comes_back_leaves_a_group_alone_that_is_well(
    places: list[TopicPartition], state: str, code: int
) -> None:
    scene = scene_with([], skips=True, group_instance_id="i1")
    describe(scene, places, state, code)

    scene.poll(3 * SESSION_MS)

    assert len(joins(scene)) == 1
    assert len(scene.requests(api_keys.DESCRIBE_GROUPS)) == 1


def test_a_static_leader_of_an_eager_group_asks_nothing_when_it_comes_back() -> None:
    scene = scene_with(
        [], skips=True, group_instance_id="i1", partition_assignment_strategy="range"
    )
    describe(scene, [])

    scene.poll(10_000)

    assert len(joins(scene)) == 1
    assert scene.requests(api_keys.DESCRIBE_GROUPS) == []
