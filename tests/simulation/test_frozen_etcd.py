"""etcd that is frozen and woken ends every life at once; each broker goes on in its own place."""

from __future__ import annotations

from tests.support.cluster.leader_scene import TOPIC, LeaderScene

from tarry.base import errors
from tarry.cluster.decisions.row_changes import ROWS_PER_TRANSACTION
from tarry.simulation.cluster.cluster_node import SESSION_MS

ALL = [1, 2, 3]
OFFSETS = "__consumer_offsets"
# In which all goes on again.
AGAIN_MS = 1_000


def frozen(*replicas: list[int], name: str = TOPIC) -> LeaderScene:
    """A cluster whose etcd was frozen for longer than a session, at the moment in which it wakes.

    Broker 2 leads the first partition in the place of its preferred leader.
    """
    scene = LeaderScene()
    scene.create([*replicas], name=name)
    scene.until(lambda: scene.leaders(name) == [1], "a leader")
    scene.kill(1)
    scene.until(lambda: scene.leaders(name) == [2], "another leader")
    scene.restart(1)
    scene.until(
        lambda: all(
            len(scene.row(index, name).isr) == len(each) for index, each in enumerate(replicas)
        ),
        "all in sync",
    )
    frozen_ms = SESSION_MS + 2_000
    scene.cluster.etcd_node.freeze(frozen_ms)
    scene.pass_ms(frozen_ms - 1)
    return scene


def until_all_goes_on(scene: LeaderScene, name: str = TOPIC) -> int:
    """Wait until each broker knows other lives and, in them, a leader of each partition; for how
    long it took.
    """
    lived = lives(scene)

    def is_so() -> bool:
        return all(
            row.broker_epoch == broker.cluster.brokers[row.leader_id].broker_epoch > max(lived)
            for broker in scene.cluster.brokers()
            for row in broker.cluster.topics[name].partitions
        )

    return scene.until(is_so, "leaders in other lives")


def lives(scene: LeaderScene) -> list[int]:
    return [scene.broker().cluster.brokers[each].broker_epoch for each in ALL]


def test_each_partition_has_its_leader_again_in_the_next_epoch() -> None:
    scene = frozen(ALL, [2, 3, 1], [3, 1, 2])
    before = [scene.row(index) for index in range(3)]

    took_ms = until_all_goes_on(scene)

    rows = [scene.row(index) for index in range(3)]
    assert [row.leader_id for row in rows] == [row.leader_id for row in before] == [2, 2, 3]
    assert [row.leader_epoch for row in rows] == [row.leader_epoch + 1 for row in before]
    assert took_ms < AGAIN_MS
    assert scene.violations() == []


def test_claims_of_a_broker_that_goes_on_are_one_transaction() -> None:
    count = ROWS_PER_TRANSACTION // 2
    scene = frozen(*[ALL] * count)
    etcd = scene.cluster.etcd_node.etcd
    revision = etcd.revision

    until_all_goes_on(scene)

    claims = [
        changes
        for _, changes in etcd.changes_from(revision + 1)
        if any(b"/parts/" in each.key for each in changes)
    ]
    assert len(claims[0]) == count


def test_groups_stay_loaded() -> None:
    scene = frozen(ALL, name=OFFSETS)
    broker = scene.nodes[2].broker
    assert broker is not None
    shard = broker.groups.shards[0]

    until_all_goes_on(scene, OFFSETS)

    assert broker.groups.shards[0] is shard
    assert shard.runtime.code() == errors.NONE


def test_clients_are_told_of_every_broker_all_the_time() -> None:
    """librdkafka ends for ever what waits at a broker that one answer does not name."""
    scene = frozen(ALL)
    named: dict[tuple[int, ...], None] = {}

    def note() -> bool:
        for each in scene.cluster.brokers():
            named[tuple(each.cluster_view.broker_ids)] = None
        return False

    scene.world.run_until(scene.world.agenda.now_ms + 3_000, note)

    assert list(named) == [tuple(ALL)]
    assert scene.leaders() == [2]


def test_who_does_not_come_back_is_followed_by_another() -> None:
    scene = frozen(ALL)
    scene.kill(2)

    scene.until(lambda: scene.leaders() in ([1], [3]), "another leader", SESSION_MS + 3_000)

    assert scene.violations() == []
