"""Rows in etcd that are damaged, newer or make no sense: their partitions stand still, loudly."""

from __future__ import annotations

import pytest
from tests.support.cluster.leader_scene import TOPIC, LeaderScene
from tests.support.cluster.row_scene import KEYS, TOPIC_ID, Rows

from tarry.base import errors
from tarry.base.etcd import Put
from tarry.base.ids import id_text
from tarry.cluster.claims import ClaimPartitions
from tarry.cluster.elections import ElectionWish
from tarry.cluster.records import DeletionPending, PartitionRow, TopicDeleted
from tarry.cluster.row_requests import RowWishes
from tarry.cluster.rows import Keys
from tarry.cluster.transactions import Transaction
from tarry.cluster.unclean import UNCLEAN_MS, ElectUncleanly

# Format, leader, epoch, its life, partition epoch, replicas, in sync, adding, removing, unclean.
SOUND = b"[1,1,4,2,4,[1,2,3],[1,2],[],[],-1]"
BAD = [
    b"",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"[1,1,4]",
    b"[2,1,4,2,4,[1,2,3],[1,2],[],[],-1]",
    b'[2,"all is new"]',
    b"[1,9,4,2,4,[1,2,3],[1,2],[],[],-1]",
    b"[1,-1,4,2,4,[1,2,3],[1,2],[],[],-1]",
    b"[1,1,4,2,4,[],[],[],[],-1]",
    b"[1,1,4,2,4,[1,2,3],[],[],[],-1]",
    b"[1,1,4,2,4,[1,2,2],[1,2],[],[],-1]",
    b"[1,1,4,2,4,[1,2,3],[1,1],[],[],-1]",
    b"[1,1,4,2,4,[1,2,3],[1,7],[],[],-1]",
    b"[1,1,4,2,4,[1,2,3],[1,2],[8],[],-1]",
    b"[1,1,4,2,4,[1,2,3],[1,2],[],[8],-1]",
    b"[1,1,-4,2,4,[1,2,3],[1,2],[],[],-1]",
    b"[1,1,2147483648,2,4,[1,2,3],[1,2],[],[],-1]",
    b"[1,1,4,2,2147483648,[1,2,3],[1,2],[],[],-1]",
    b"[1,1,4,2,4,[1,2,2147483648],[1,2],[],[],-1]",
    b"[1,1,4,2,4,[1,2,3],[1,2],[],[],5]",
]


def rows() -> Rows:
    """Two partitions of three replicas; the first has a row of its own, and broker 1 is dead."""
    scene = Rows()
    scene.configs["unclean.leader.election.enable"] = "true"
    for broker_id in (1, 2, 3):
        scene.live(broker_id)
    scene.topic([[1, 2, 3], [1, 2, 3]])
    scene.part(0, 1, 4, scene.epochs[1], [1, 2])
    scene.hear()
    return scene


@pytest.mark.parametrize("value", BAD)
def test_a_row_that_makes_no_sense_has_its_partition_stand_still_and_no_other(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    scene = rows()
    scene.put(Put(KEYS.part(TOPIC_ID, 0), value))
    scene.hear()
    scene.die(1)
    scene.hear()

    claims = ClaimPartitions(scene.known, 2, scene.epochs[2], scene.settings, scene.spells)
    unclean = ElectUncleanly(scene.known, 2, scene.epochs[2], scene.settings, scene.spells)
    scene.decide(unclean)
    scene.turn.now_ms += UNCLEAN_MS
    wish = ElectionWish("orders", 0, is_unclean=True)

    assert scene.row() == PartitionRow(-1, 4, 4, [1, 2, 3], [])
    assert [each.index for each in scene.decide(claims)] == [1]
    assert scene.decide(unclean) == []
    assert RowWishes([wish]).next_change().decide(scene.state) == []
    assert wish.error_code == errors.UNKNOWN_SERVER_ERROR
    assert "orders-0 stands still" in caplog.text
    assert KEYS.part(TOPIC_ID, 0).decode() in caplog.text


def test_a_row_that_is_mended_counts_again() -> None:
    scene = rows()
    scene.put(Put(KEYS.part(TOPIC_ID, 0), b"[]"))
    scene.hear()
    scene.put(Put(KEYS.part(TOPIC_ID, 0), SOUND))
    scene.hear()

    assert (scene.row().leader_id, scene.row().isr) == (1, [1, 2])


def test_a_broker_that_starts_knows_the_replicas_from_how_the_topic_was_made() -> None:
    scene = rows()
    scene.put(Put(KEYS.part(TOPIC_ID, 1), b"[]"))
    other = Rows()
    other.etcd = scene.etcd
    other.hear()

    assert other.row(1) == PartitionRow(-1, 0, 0, [1, 2, 3], [])


@pytest.mark.parametrize(
    "place", ["{}/-1", "{}/2", "{}/99999999999", "{}/x", "{}", "{}/0/0", "nothing/0", "", "\xff/0"]
)
def test_a_row_of_no_partition_is_passed_over(place: str, caplog: pytest.LogCaptureFixture) -> None:
    scene = rows()
    name = place.format(id_text(TOPIC_ID))
    scene.put(Put(KEYS.prefix + b"parts/" + name.encode("latin-1"), SOUND))
    scene.hear()

    assert "belongs to no partition" in caplog.text
    assert [row.leader_epoch for row in scene.state.topics_by_id[TOPIC_ID].partitions] == [4, 0]


def test_of_a_deleted_topic_that_stood_still_every_broker_may_have_data() -> None:
    scene = rows()
    scene.live(4)
    scene.put(Put(KEYS.part(TOPIC_ID, 0), b"[]"))
    scene.hear()
    transaction = Transaction(scene.known)
    transaction.add(TopicDeleted(topic_id=TOPIC_ID))
    assert scene.etcd.transact(transaction.compares, transaction.operations)[0]

    changes = scene.known.difference(scene.etcd.rows(KEYS.prefix))
    pending = [each for each in scene.known.apply(changes) if isinstance(each, DeletionPending)]

    assert [each.broker_ids for each in pending] == [[1, 2, 3, 4]]


def test_brokers_go_on_and_keep_the_data_of_what_stands_still_over_a_restart() -> None:
    scene = LeaderScene()
    scene.create([[1, 2], [1, 2]])
    keys = Keys("/simulated/")
    etcd = scene.cluster.etcd_node.etcd
    topic_id = scene.broker().topics[TOPIC].topic_id
    # It was given to broker 3 since: how the topic was made does not tell of that.
    epoch = scene.broker().cluster.brokers[3].broker_epoch
    moved = f"[1,3,1,{epoch},1,[3],[3],[],[],-1]".encode()
    assert etcd.transact([], [Put(keys.part(topic_id, 0), moved)])[0]
    scene.until(lambda: scene.row().leader_id == 3, "the third broker leads")
    assert etcd.transact([], [Put(keys.part(topic_id, 0), b"[1,7]")])[0]
    scene.until(lambda: scene.row().leader_id == -1, "nobody leads")
    scene.stop(3)
    scene.restart(3)

    broker = scene.nodes[3].broker
    assert broker is not None
    assert list(broker.topics[TOPIC].followed) == [0]
    assert scene.row(1).leader_id == 1
    assert scene.violations() == []


def test_a_setting_that_cannot_be_had_is_left_out_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = rows()
    scene.configs["min.insync.replicas"] = "many"
    scene.topic([[1, 2, 3], [1, 2, 3]])
    scene.die(1)
    scene.hear()

    claims = ClaimPartitions(scene.known, 2, scene.epochs[2], scene.settings, scene.spells)

    assert [each.index for each in scene.decide(claims)] == [0, 1]
    assert "topic orders" in caplog.text
    assert "min.insync.replicas=many" in caplog.text


def test_a_topic_with_a_setting_that_cannot_be_had_is_hosted() -> None:
    scene = LeaderScene()
    scene.create([[1, 2]], {"retention.ms": "for ever"})

    assert scene.leaders() == [1]


def test_a_topic_that_was_made_with_damaged_replicas_stands_still_there_alone() -> None:
    scene = Rows()
    for broker_id in (1, 2, 3):
        scene.live(broker_id)
    scene.topic([[1, 1], [], [2**31, 1], [-1], [1, 2]])
    scene.hear()

    leaders = [row.leader_id for row in scene.state.topics_by_id[TOPIC_ID].partitions]
    assert leaders == [-1, -1, -1, -1, 1]
