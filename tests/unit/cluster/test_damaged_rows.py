"""Rows in etcd that are damaged, newer or make no sense: their topics are frozen, loudly."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace
from tests.support.broker.broker_user import a_batch
from tests.support.cluster.cluster_user import ClusterUser
from tests.support.cluster.leader_scene import TOPIC, LeaderScene
from tests.support.cluster.life_scene import LifeScene
from tests.support.cluster.row_scene import KEYS, TOPIC_ID, Rows
from tests.support.metadata_stores import EtcdSubject, GivenChange

from tarry.base import errors
from tarry.base.errors import CorruptData
from tarry.base.etcd import Put, Remove
from tarry.base.ids import id_text
from tarry.base.partition_row import PartitionRow
from tarry.cluster.configs.config_changes import ConfigRefusal
from tarry.cluster.configs.config_decisions import decide_change_topic
from tarry.cluster.decisions.claims import ClaimPartitions
from tarry.cluster.decisions.elections import ElectionWish
from tarry.cluster.decisions.partition_decisions import GrowthWanted, decide_create_partitions
from tarry.cluster.decisions.row_requests import RowWishes
from tarry.cluster.decisions.topic_decisions import decide_delete_topics
from tarry.cluster.decisions.unclean import UNCLEAN_MS, ElectUncleanly
from tarry.cluster.etcd.transactions import Transaction
from tarry.cluster.rows.row_records import NOBODY
from tarry.cluster.rows.rows import ROW_FORMAT, DeletedRow, Keys, decode_row, encode_row
from tarry.cluster.state.records import ProducerIdsReserved, TopicCreated
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tarry.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.wire.reader import window_of

# Format, leader, epoch, its life, partition epoch, replicas, in sync, adding, removing, unclean.
SOUND = b"[1,1,4,2,4,[1,2,3],[1,2],[],[],-1]"
DEEP = b"[1," + b"[" * 100_000 + b"]" * 100_001
BAD = [
    b"",
    DEEP,
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


def short(value: object) -> str:
    """The name of a value in a test's name."""
    return str(value)[:60]


def still(epoch: int, replicas: list[int]) -> PartitionRow:
    """Return the row of a partition of a frozen topic."""
    return PartitionRow(-1, epoch, -1, epoch, replicas, [])


def produce(scene: LeaderScene, broker_id: int, index: int = 0) -> None:
    """Write one record, acknowledged by all in sync."""
    data = PartitionProduceData(index=index, records=window_of(a_batch(b"a")))
    asked = TopicProduceData(name=TOPIC, partition_data=[data])
    user = ClusterUser(scene.cluster, broker_id)
    user.call(0, 11, ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[asked]))


def end_of_log(scene: LeaderScene, broker_id: int) -> int:
    """Return where the log of the first partition ends at a broker; -1 if it has none."""
    broker = scene.nodes[broker_id].broker
    assert broker is not None
    replica = broker.topics[TOPIC].replica(0)
    return -1 if replica is None else int(replica.log.log_end_offset)


def rows(broker_id: int = NOBODY) -> Rows:
    """Two partitions of three replicas; the first has a row of its own."""
    scene = Rows(broker_id)
    scene.configs["unclean.leader.election.enable"] = "true"
    for each in (1, 2, 3):
        scene.live(each)
    scene.topic([[1, 2, 3], [1, 2, 3]])
    scene.part(0, 1, 4, scene.epochs[1], [1, 2])
    scene.hear()
    return scene


def put_other_topic(scene: Rows) -> bytes:
    """Put a second topic like the first, and return its id."""
    other = b"other".ljust(16, b".")
    sound = scene.etcd.rows(KEYS.topic(TOPIC_ID))[0].value
    scene.put(Put(KEYS.topic(other), sound.replace(b"orders", b"other")))
    scene.hear()
    return other


def refused_start(scene: Rows) -> str:
    """Start another broker on these rows, and return why it does not start."""
    other = Rows()
    other.etcd = scene.etcd
    with pytest.raises(CorruptData) as refused:
        other.hear()
    return str(refused.value)


@pytest.mark.parametrize("value", BAD, ids=short)
def test_a_partitions_row_that_makes_no_sense_freezes_its_topic_and_no_other(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    scene = rows()
    other = put_other_topic(scene)
    scene.put(Put(KEYS.part(TOPIC_ID, 0), value))
    scene.hear()
    scene.die(1)
    scene.hear()

    claims = ClaimPartitions(scene.known, 2, scene.epochs[2], scene.settings, scene.spells)
    unclean = ElectUncleanly(scene.known, 2, scene.epochs[2], scene.settings, scene.spells)
    scene.decide(unclean)
    scene.turn.now_ms += UNCLEAN_MS
    wish = ElectionWish("orders", 0, scene.settings, is_unclean=True)

    assert scene.row() == still(4, [1, 2, 3])
    assert scene.row(1) == still(0, [1, 2, 3])
    assert {each.topic_id for each in scene.decide(claims)} == {other}
    assert {each.topic_id for each in scene.decide(unclean)} <= {other}
    assert RowWishes([wish]).next_change().decide(scene.state) == []
    assert wish.error_code == errors.UNKNOWN_SERVER_ERROR
    (outcome,) = decide_delete_topics(scene.state, [("orders", None)]).outcomes
    assert outcome.error_code == errors.UNKNOWN_SERVER_ERROR
    assert "its topic is frozen" in caplog.text
    assert KEYS.part(TOPIC_ID, 0).decode() in caplog.text
    assert KEYS.part(TOPIC_ID, 0).decode() in refused_start(scene)


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch"), [(3, 4), (4, 3)], ids=["leader epoch", "partition epoch"]
)
def test_a_row_that_goes_back_freezes_its_topic(leader_epoch: int, partition_epoch: int) -> None:
    """An older row would let two leaders write in one epoch."""
    scene = rows()
    row = PartitionRow(
        leader_id=1,
        leader_epoch=leader_epoch,
        broker_epoch=scene.epochs[1],
        partition_epoch=partition_epoch,
        replicas=[1, 2, 3],
        isr=[1, 2],
        adding=[],
        removing=[],
        unclean_epoch=-1,
    )
    scene.put(Put(KEYS.part(TOPIC_ID, 0), encode_row(row)))
    scene.hear()

    assert scene.row() == still(4, [1, 2, 3])


def test_a_row_that_is_mended_counts_again() -> None:
    scene = rows()
    scene.put(Put(KEYS.part(TOPIC_ID, 0), b"[]"))
    scene.hear()
    scene.put(Put(KEYS.part(TOPIC_ID, 0), SOUND))
    scene.hear()

    assert (scene.row().leader_id, scene.row().isr) == (1, [1, 2])


def test_a_row_that_never_counted_is_mended_by_its_removal() -> None:
    scene = rows()
    before = scene.row(1)
    scene.put(Put(KEYS.part(TOPIC_ID, 1), b"[]"))
    scene.hear()
    scene.put(Remove(KEYS.part(TOPIC_ID, 1)))
    scene.hear()

    assert scene.row(1) == before
    assert scene.row().leader_id == 1


@pytest.mark.parametrize(
    "place",
    [
        *("{}/-1", "{}/2", "{}/99999999999", "{}/x", "{}", "{}/0/0", "nothing/0", "", "\xff/0"),
        "{}/00",
    ],
)
def test_a_row_of_no_partition_is_passed_over(place: str, caplog: pytest.LogCaptureFixture) -> None:
    scene = rows()
    name = place.format(id_text(TOPIC_ID))
    scene.put(Put(KEYS.prefix + b"parts/" + name.encode("latin-1"), SOUND))
    scene.hear()

    assert "passed over" in caplog.text
    assert [row.leader_epoch for row in scene.state.topics_by_id[TOPIC_ID].partitions] == [4, 0]


def test_no_broker_starts_before_a_row_is_mended_and_the_data_is_kept() -> None:
    scene = LeaderScene()
    scene.create([[1, 2], [1, 2]], {"message.timestamp.type": "LogAppendTime"})
    keys = Keys("/simulated/")
    etcd = scene.cluster.etcd_node.etcd
    topic_id = scene.broker().topics[TOPIC].topic_id
    # It was given to broker 3 since: how the topic was made does not tell of that.
    epoch = scene.broker().cluster.brokers[3].broker_epoch
    moved = f"[1,3,1,{epoch},1,[3],[3],[],[],-1]".encode()
    assert etcd.transact([], [Put(keys.part(topic_id, 0), moved)])[0]
    scene.until(lambda: scene.leads(3), "the third broker leads")
    produce(scene, 3)
    assert etcd.transact([], [Put(keys.part(topic_id, 0), b"[1,7]")])[0]
    scene.until(lambda: scene.row().leader_id == -1, "nobody leads")
    scene.stop(3)
    scene.nodes[3].reconnect()
    scene.pass_ms(5_000)

    assert scene.nodes[3].broker is None
    assert etcd.transact([], [Put(keys.part(topic_id, 0), moved)])[0]
    scene.wait_until_ready(3)
    scene.until(lambda: scene.leads(3), "it is led")
    broker = scene.nodes[3].broker
    assert broker is not None
    found = broker.topics.replica(TOPIC, 0)
    assert found is not None
    assert found.log.log_end_offset == 1
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


# -- whole topics

NAME = f'[1,"orders","{id_text(TOPIC_ID)}"]'.encode()
BAD_TOPICS = [
    b"",
    DEEP,
    b"\xff",
    b"[]",
    b'[2,"orders",{},[],"new"]',
    b'[1,"orders",{},[]]',
    b'[1,"others",{},[[0,[[1],[2]],[]]]]',
    b'[1,"or/ders",{},[[0,[[1],[2]],[]]]]',
    b'[1,"orders",{},[[0,[[1,2,3]],[]]]]',
    b'[1,"orders",{},7]',
    b'[1,"orders",{},[[5,[[1],[2]],[]]]]',
    b'[1,"orders",{},[[-1,[[1],[2],[3]],[]]]]',
    b'[1,"orders",{},[[0,[[1],[2]],[]],[1,[[1],[2]],[]]]]',
    b'[1,"orders",{},[[0,[[1],[2]],[]],[7,[[1],[2]],[]]]]',
    b'[1,"orders",{},[[0,[[1],[2]],[[1,9223372036854775808]]]]]',
    b'[1,"orders",{},[[0,[[1],[2,2]],[]]]]',
    b'[1,"orders",{},[[0,[[1],[]],[]]]]',
    b'[1,"orders",{},[[0,[[1],[2147483648]],[]]]]',
]


@pytest.mark.parametrize("value", BAD_TOPICS, ids=short)
def test_a_topic_that_makes_no_sense_is_frozen_and_goes_on_when_it_is_mended(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    scene = rows()
    other = put_other_topic(scene)
    sound = scene.etcd.rows(KEYS.topic(TOPIC_ID))[0].value
    before = scene.state.topics_by_id[TOPIC_ID]
    scene.put(Put(KEYS.topic(TOPIC_ID), value))
    scene.hear()
    # Changes of its partitions meanwhile count when the topic does.
    scene.put(Put(KEYS.part(TOPIC_ID, 1), b"[1,2,7,%d,7,[2,3],[2,3],[],[],-1]" % scene.epochs[2]))
    scene.die(1)
    scene.hear()

    frozen = scene.state.topics_by_id[TOPIC_ID]
    claims = ClaimPartitions(scene.known, 2, scene.epochs[2], scene.settings, scene.spells)
    claimed = {each.topic_id for each in scene.decide(claims)}
    asked = [
        *decide_delete_topics(scene.state, [("orders", None)]).outcomes,
        *decide_create_partitions(scene.state, [GrowthWanted("orders", 9)]).outcomes,
    ]
    with pytest.raises(ConfigRefusal):
        decide_change_topic(scene.state, "orders", [], scene.settings, is_whole=False)
    scene.put(Put(KEYS.topic(TOPIC_ID), sound))
    scene.hear()

    assert (frozen.name, frozen.is_frozen) == ("orders", True)
    assert frozen.partitions == [still(4, [1, 2, 3]), still(0, [1, 2, 3])]
    assert claimed == {other}
    assert {each.error_code for each in asked} == {errors.UNKNOWN_SERVER_ERROR}
    assert "its topic is frozen" in caplog.text
    assert KEYS.topic(TOPIC_ID).decode() in caplog.text
    after = scene.state.topics_by_id[TOPIC_ID]
    assert (after.is_frozen, after.partitions[0]) == (False, before.partitions[0])
    assert (after.partitions[1].leader_id, after.partitions[1].isr) == (2, [2, 3])


@pytest.mark.parametrize("is_all", [False, True], ids=["the topic's row", "every row"])
def test_a_topic_whose_row_was_removed_and_that_nobody_has_deleted_is_frozen(
    is_all: bool, caplog: pytest.LogCaptureFixture
) -> None:
    scene = rows(broker_id=1)
    scene.put(Put(KEYS.name("orders"), NAME))
    scene.part(1, 2, 7, scene.epochs[2], [2, 3], [2, 3])
    scene.hear()
    before = scene.state.topics_by_id[TOPIC_ID]
    stored = scene.etcd.rows(KEYS.prefix)
    scene.put(Remove(KEYS.prefix if is_all else KEYS.topic(TOPIC_ID), is_prefix=is_all))
    scene.hear()
    scene.hear()

    frozen = scene.state.topics_by_id[TOPIC_ID]
    assert not scene.state.deleted_topics
    assert frozen.partitions == [still(4, [1, 2, 3]), still(7, [2, 3])]
    assert "nobody has deleted its topic" in caplog.text
    # Put back, one after the other, it is what it was.
    for row in stored:
        if b"/lives/" not in row.key:
            scene.put(Put(row.key, row.value))
            scene.hear()
    after = scene.state.topics_by_id[TOPIC_ID]
    assert (after.is_frozen, after.partitions) == (False, before.partitions)


def test_who_has_no_data_of_a_topic_may_miss_its_deletion() -> None:
    """The brokers that had some were through with it while this one was away."""
    scene = rows()
    scene.put(Remove(KEYS.topic(TOPIC_ID)), Put(KEYS.part(TOPIC_ID, 1), SOUND))
    scene.hear()

    assert not scene.state.topics
    assert not scene.state.deleted_topics


def test_the_name_of_a_topic_is_free_at_a_broker_that_was_away_while_others_deleted_it() -> None:
    scene = LeaderScene()
    scene.create([[2, 3]])
    scene.until(lambda: scene.leads(2), "a leader")
    topic_id = scene.broker().topics[TOPIC].topic_id
    etcd, keys = scene.cluster.etcd_node.etcd, Keys("/simulated/")
    scene.nodes[1].cut_off()
    ClusterUser(scene.cluster, 2).call(
        20, 6, DeleteTopicsRequest([DeleteTopicState(TOPIC)], [], 5_000)
    )
    scene.until(lambda: etcd.row(keys.deleted(topic_id)) is None, "the data is away")
    scene.pass_ms(1_000)
    etcd.compact(etcd.revision)
    scene.nodes[1].reconnect()
    scene.wait_until_ready(1)
    broker = scene.nodes[1].broker
    assert broker is not None
    scene.until(lambda: TOPIC not in broker.topics, "it knows of the deletion")
    scene.pass_ms(2_000)

    wanted = CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1)], timeout_ms=5_000)
    answer = ClusterUser(scene.cluster, 1).call(19, 7, wanted)

    assert isinstance(answer, CreateTopicsResponse)
    assert [each.error_code for each in answer.topics] == [errors.NONE]
    scene.until(lambda: len(scene.leaders()) == 1, "it is led")
    assert scene.violations() == []


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (KEYS.topic(TOPIC_ID), b"[]", "cannot be read"),
        (KEYS.topic(TOPIC_ID), None, "which is not there"),
        (KEYS.part(TOPIC_ID, 1), b"[2]", "in format 2"),
        (KEYS.part(TOPIC_ID, 2), SOUND, "has 2 partitions"),
        (KEYS.part(b"o" * 16, 0), SOUND, "there is no topic"),
        (KEYS.deleted(TOPIC_ID), b'[1,"orders",2,[1]]', "is deleted and there"),
        (KEYS.broker(2), b"[]", "cannot be read"),
        (KEYS.life(2), b"[]", "cannot be read"),
        (KEYS.name("orders"), b"[]", "cannot be read"),
        (KEYS.configs(-1), b"[]", "cannot be read"),
        (KEYS.feature("f"), b"[]", "cannot be read"),
    ],
)
def test_no_broker_starts_while_a_row_is_damaged_on_which_its_data_rests(
    key: bytes, value: bytes | None, words: str
) -> None:
    scene = rows()
    scene.put(Put(KEYS.name("orders"), NAME))
    scene.put(Remove(key) if value is None else Put(key, value))
    sentence = refused_start(scene)

    assert words in sentence
    assert "tarry metadata check" in sentence


def creation_of_bills() -> TopicCreated:
    row = PartitionRow(1, 0, -1, 0, [1], [1])
    return TopicCreated(topic_id=b"b" * 16, name="bills", partitions=[row], configs={})


@pytest.mark.parametrize("is_damaged", [False, True], ids=["of another topic", "damaged"])
def test_a_name_whose_row_is_there_is_taken_by_no_other_topic(is_damaged: bool) -> None:
    subject = EtcdSubject()
    key = subject.keys.name("bills")
    subject.etcd.transact([], [Put(key, b"[]" if is_damaged else NAME)])
    creation = GivenChange(creation_of_bills())
    subject.store.change(creation)
    subject.run(lambda: creation.is_ended)

    assert key.decode() in creation.refusal
    assert subject.store.state.topics == {}


def test_a_topic_of_which_nothing_is_known_lets_no_broker_start_and_ends_none() -> None:
    scene = rows()
    unknown = b"unknown".ljust(16, b".")
    scene.put(Put(KEYS.topic(unknown), b"[]"))
    scene.hear()

    assert list(scene.state.topics) == ["orders"]
    assert "topics/" in refused_start(scene)


def test_a_second_topic_with_a_name_that_is_taken_is_passed_over() -> None:
    scene = rows()
    sound = scene.etcd.rows(KEYS.topic(TOPIC_ID))[0].value
    scene.put(Put(KEYS.topic(b"o" * 16), sound))
    scene.put(Put(KEYS.name("orders"), NAME))
    scene.hear()

    assert list(scene.state.topics_by_id) == [TOPIC_ID]
    assert "its name orders is taken by topic" in refused_start(scene)


@pytest.mark.parametrize("version", [1, 12])
def test_clients_are_told_nothing_that_no_answer_holds(version: int) -> None:
    scene = LeaderScene()
    scene.create([[1, 2]])
    keys, new = Keys("/simulated/"), b"new".ljust(16, b".")
    puts = [
        Put(keys.topic(new), b'[1,"new",{},[[0,[[2147483648,1],[2147483648,1]],[]]]]'),
        Put(keys.part(new, 1), b"[7]"),
        # The rows of a release that is newer, and lives.
        Put(keys.broker(7), b'[2,"d","",{"PLAINTEXT":["h",99999999999]},""]'),
        Put(keys.life(7), b'[1,"d",1,"serving"]'),
    ]
    assert scene.cluster.etcd_node.etcd.transact([], puts)[0]
    scene.pass_ms(3_000)
    user = ClusterUser(scene.cluster, 1)
    answer = user.call(3, version, MetadataRequest(None))

    assert isinstance(answer, MetadataResponse)
    assert [each.node_id for each in answer.brokers] == [1, 2, 3]
    told = {topic.name: [each.leader_id for each in topic.partitions] for topic in answer.topics}
    assert told == {TOPIC: [1]}


def test_data_of_a_topic_whose_row_was_removed_stays_and_is_served_again() -> None:
    scene = LeaderScene()
    scene.create([[1, 2]], {"message.timestamp.type": "LogAppendTime"})
    scene.until(lambda: scene.leads(1), "a leader")
    produce(scene, 1)
    etcd = scene.cluster.etcd_node.etcd
    key = Keys("/simulated/").topic(scene.broker().topics[TOPIC].topic_id)
    sound = etcd.rows(key)[0].value
    assert etcd.transact([], [Remove(key)])[0]
    scene.until(lambda: scene.leaders() == [], "nobody leads")
    scene.pass_ms(3_000)
    assert etcd.transact([], [Put(key, sound)])[0]
    scene.until(lambda: scene.leaders() == [1], "it is led")

    found = [scene.nodes[each].broker for each in (1, 2)]
    logs = [each.topics.replica(TOPIC, 0) for each in found if each is not None]
    assert [each.log.log_end_offset for each in logs if each is not None] == [1, 1]
    assert scene.violations() == []


def test_a_partitions_row_that_was_removed_freezes_its_topic_until_it_is_put_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = LeaderScene()
    scene.create([[1, 2], [2]])
    scene.until(lambda: scene.leads(1), "a leader")
    scene.kill(1)
    scene.until(lambda: scene.leads(2), "another leader")
    etcd = scene.cluster.etcd_node.etcd
    key = Keys("/simulated/").part(scene.broker().topics[TOPIC].topic_id, 0)
    (sound,) = etcd.rows(key)
    assert etcd.transact([], [Remove(key)])[0]
    scene.until(lambda: scene.leaders() == [], "nobody leads")
    scene.pass_ms(3_000)

    assert etcd.rows(key) == []
    assert scene.leaders(index=1) == []
    assert f"{key.decode()} was removed from etcd, and its topic goes on" in caplog.text
    assert etcd.transact([], [Put(key, sound.value)])[0]
    scene.until(lambda: scene.leaders() == [2], "it is led")
    assert (scene.row().leader_id, scene.row().leader_epoch, scene.row().isr) == (2, 1, [2])
    # A setting that was never changed needs no row, and one of a deleted topic is not missed.
    caplog.clear()
    ClusterUser(scene.cluster, 2).call(
        20, 6, DeleteTopicsRequest([DeleteTopicState(TOPIC)], [], 5_000)
    )
    scene.pass_ms(2_000)
    assert "was removed" not in caplog.text
    assert etcd.rows(Keys("/simulated/").prefix + b"parts/") == []
    assert scene.violations() == []


@pytest.mark.parametrize("is_old", [False, True], ids=["removed", "an older one"])
@pytest.mark.parametrize("made", [[1, 2], [3, 1]], ids=["replicas as made", "reassigned"])
def test_a_partition_whose_row_went_while_nobody_lived_stands_still_where_that_can_be_told(
    made: list[int], is_old: bool, caplog: pytest.LogCaptureFixture
) -> None:
    scene = LeaderScene()
    scene.create([made], {"message.timestamp.type": "LogAppendTime"})
    scene.until(lambda: scene.leads(made[0]), "a leader")
    etcd = scene.cluster.etcd_node.etcd
    key = Keys("/simulated/").part(scene.broker().topics[TOPIC].topic_id, 0)
    epoch = scene.broker().cluster.brokers[1].broker_epoch
    old = encode_row(PartitionRow(1, 1, epoch, 1, [1, 2], [1]))
    assert etcd.transact([], [Put(key, old)])[0]
    scene.until(lambda: scene.row().partition_epoch == 2, "both in sync")
    scene.kill(1)
    scene.until(lambda: scene.leaders() == [2], "another leader")
    produce(scene, 2)
    scene.kill(2)
    sound = etcd.rows(key)[0].value
    assert etcd.transact([], [Put(key, old) if is_old else Remove(key)])[0]
    scene.kill(3)
    scene.restart(2)
    scene.pass_ms(5_000)

    assert scene.leaders() == []
    assert "t-0 stands still here" in caplog.text
    assert end_of_log(scene, 2) == 1
    assert etcd.rows(key) == [] or etcd.rows(key)[0].value == old
    assert etcd.transact([], [Put(key, sound)])[0]
    scene.until(lambda: scene.leaders() == [2], "it is led")
    assert scene.row().leader_epoch == 3
    assert scene.violations() == []


@pytest.mark.parametrize("leaves_out", [False, True], ids=["a follower", "no replica any more"])
def test_what_stands_still_by_an_older_row_stays_so_when_others_go_on_from_that_row(
    leaves_out: bool, caplog: pytest.LogCaptureFixture
) -> None:
    scene = LeaderScene()
    scene.create([[1, 2]], {"message.timestamp.type": "LogAppendTime"})
    scene.until(lambda: scene.leads(1), "a leader")
    etcd = scene.cluster.etcd_node.etcd
    key = Keys("/simulated/").part(scene.broker().topics[TOPIC].topic_id, 0)
    old = encode_row(PartitionRow(1, 0, scene.row().broker_epoch, 0, [1, 2], [1]))
    scene.kill(1)
    scene.until(lambda: scene.leaders() == [2], "another leader")
    for _ in range(2):
        scene.kill(2)
        scene.restart(2)
        scene.until(lambda: scene.leaders() == [2], "it leads again")
    produce(scene, 2)
    assert scene.row().leader_epoch == 3
    scene.kill(2)
    sound = etcd.rows(key)[0].value
    assert etcd.transact([], [Put(key, old)])[0]
    scene.kill(3)
    scene.restart(2)
    scene.pass_ms(3_000)

    # The log of broker 1 knows of no later epoch than that row.
    scene.restart(1)
    scene.until(lambda: scene.leads(1), "it leads by the older row")
    if leaves_out:
        etcd.transact([], [Put(key, encode_row(PartitionRow(1, 1, -1, 9, [1], [1])))])
    scene.pass_ms(5_000)

    broker = scene.nodes[2].broker
    assert broker is not None
    assert end_of_log(scene, 2) == 1
    assert broker.cluster.topics[TOPIC].partitions[0].leader_id == -1
    assert caplog.text.count("t-0 stands still here") == 1
    # The row of before is put back by hand, with the epoch of all that has happened since.
    row = decode_row("parts", key, sound)
    assert isinstance(row, PartitionRow)
    assert etcd.transact([], [Put(key, encode_row(replace(row, partition_epoch=20)))])[0]
    scene.until(lambda: scene.leaders() == [2], "it is led")
    assert scene.row().leader_epoch == 4


def test_data_of_a_damaged_topic_is_kept_and_served_again() -> None:
    scene = LeaderScene()
    scene.create([[1, 2], [2, 1], [3, 2]], {"message.timestamp.type": "LogAppendTime"})
    scene.create([[1, 2]], name="other")
    for index, leader in enumerate((1, 2, 3)):
        produce(scene, leader, index)
    etcd = scene.cluster.etcd_node.etcd
    key = Keys("/simulated/").topic(scene.broker().topics[TOPIC].topic_id)
    sound = etcd.rows(key)[0].value
    assert etcd.transact([], [Put(key, b"[1,7]")])[0]
    scene.until(lambda: scene.leaders() == [], "nobody leads")
    scene.stop(2)
    scene.nodes[2].reconnect()
    scene.pass_ms(5_000)
    other = scene.leaders("other")
    has_started = scene.nodes[2].broker is not None
    assert etcd.transact([], [Put(key, sound)])[0]
    scene.wait_until_ready(2)
    scene.until(
        lambda: all(len(scene.leaders(index=index)) == 1 for index in range(3)), "all are led"
    )
    scene.until(lambda: len(scene.row(2).isr) == 2, "all in sync")

    assert (has_started, other) == (False, [1])
    broker = scene.nodes[2].broker
    assert broker is not None
    replicas = list(broker.topics[TOPIC].replicas())
    assert [each.log.log_end_offset for each in replicas] == [1, 1, 1]
    assert scene.violations() == []


# -- brokers, lives, settings, names, deletions

BAD_ROWS = [b"", DEEP, b"\xff", b"[]", b'[2,"new"]', b"[1,7]"]
# Rows that brokers write, with something that no answer to a client holds.
IMPOSSIBLE = [
    ("brokers/2", b'[1,"","",{"PLAINTEXT":["h",2147483648]},""]'),
    ("brokers/2", b'[1,"","",{"PLAINTEXT":["h",-1]},""]'),
    ("brokers/2", b'[1,"","%s",{},""]' % (b"r" * 32_768)),
    ("brokers/2", b'[1,"","",{"PLAINTEXT":["%s",1]},""]' % (b"h" * 32_768)),
    ("configs/2", b'[1,{"message.max.bytes":"%s"}]' % (b"7" * 32_768)),
    ("lives/2", b'[1,"",9223372036854775808,"serving"]'),
    ("lives/2", b'[1,"",-1,"serving"]'),
]
RECORDED = ["brokers/2", "lives/2", "configs/-1", "configs/2", "names/orders"]
NOBODYS = [
    *("brokers/x", "brokers", "lives/", "configs/1/2", "topics/x", "deleted/"),
    *("ids/other", "brokers/2147483648", "brokers/-1", "lives/-7", "lives/02", "configs/-2"),
]


@pytest.mark.parametrize(("kind", "value"), [*itertools.product(RECORDED, BAD_ROWS), *IMPOSSIBLE])
def test_what_was_known_before_counts_in_the_place_of_a_damaged_row(
    kind: str, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    scene = rows()
    scene.put(
        Put(KEYS.name("orders"), NAME),
        Put(KEYS.configs(-1), b'[1,{"message.max.bytes":"7"}]'),
        Put(KEYS.configs(2), b'[1,{"message.max.bytes":"8"}]'),
    )
    scene.hear()
    before = [scene.state.brokers, scene.state.broker_configs, scene.state.topics]
    shown = [dict(each) for each in before]
    scene.put(Put(KEYS.prefix + kind.encode(), value))
    scene.hear()

    assert [dict(each) for each in before] == shown
    assert kind in caplog.text
    assert scene.known.mod_revision(KEYS.prefix + kind.encode()) == scene.etcd.revision
    assert scene.known.fault(KEYS.prefix + kind.encode())


@pytest.mark.parametrize(
    "damage",
    [
        [Put(KEYS.producer_ids, b"[1,1000]")],
        [Put(KEYS.producer_ids, b"[1,-5]")],
        [Put(KEYS.producer_ids, b"nonsense")],
        [Remove(KEYS.producer_ids)],
    ],
    ids=["lowered", "negative", "not decoded", "removed"],
)
def test_producer_ids_that_were_given_out_are_given_to_nobody_else(
    damage: list[Put | Remove],
) -> None:
    scene = rows()
    scene.put(Put(KEYS.producer_ids, b"[1,2000]"))
    scene.hear()
    scene.put(*damage)
    scene.hear()
    after_damage = scene.state.producer_id_end

    transaction = Transaction(scene.known)
    transaction.add(ProducerIdsReserved(first_id=after_damage, count=1_000))
    is_written = scene.etcd.transact(transaction.compares, transaction.operations)[0]
    scene.hear()

    assert (after_damage, is_written, scene.state.producer_id_end) == (2_000, True, 3_000)
    assert not scene.known.fault(KEYS.producer_ids)


@pytest.mark.parametrize("kind", NOBODYS)
def test_a_row_of_nobody_is_passed_over(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    scene = rows()
    scene.put(Put(KEYS.prefix + kind.encode(), b"[1]"))
    scene.hear()
    scene.etcd._remove([KEYS.prefix + kind.encode()])
    scene.hear()

    assert f"{kind} in etcd is passed over" in caplog.text


@pytest.mark.parametrize(
    "value",
    [
        b"[]",
        b'[1,"orders",999999999999,[1]]',
        b'[1,"orders",-1,[1]]',
        b'[1,"../orders",2,[1]]',
    ],
)
def test_a_topic_with_a_damaged_deletion_is_frozen_until_that_is_mended(value: bytes) -> None:
    scene = rows(broker_id=1)
    scene.put(Remove(KEYS.topic(TOPIC_ID)), Put(KEYS.deleted(TOPIC_ID), value))
    scene.hear()
    frozen = scene.state.topics_by_id[TOPIC_ID]
    has_deleted = bool(scene.state.deleted_topics)
    scene.put(Put(KEYS.deleted(TOPIC_ID), b'[1,"orders",2,[1,3]]'))
    scene.hear()

    assert (frozen.is_frozen, has_deleted) == (True, False)
    assert scene.state.deleted_topics[TOPIC_ID].broker_ids == (1, 3)
    assert not scene.state.topics


def test_a_topic_of_which_nothing_was_known_is_deleted_and_ends_no_broker() -> None:
    scene = rows(1)
    other_id = bytes(reversed(TOPIC_ID))
    scene.put(Put(KEYS.topic(other_id), b'[2,"all is new"]'))
    scene.hear()
    deletion = DeletedRow(ROW_FORMAT, "bills", 1, [1])
    scene.put(Remove(KEYS.topic(other_id)), Put(KEYS.deleted(other_id), encode_row(deletion)))
    scene.hear()
    assert scene.state.deleted_topics[other_id].broker_ids == (1,)
    scene.put(Remove(KEYS.deleted(other_id)))
    scene.hear()
    assert other_id not in scene.state.deleted_topics


def test_a_deletion_beside_its_topic_can_be_taken_back() -> None:
    scene = rows(1)
    deletion = DeletedRow(ROW_FORMAT, "orders", 2, [1])
    scene.put(Put(KEYS.deleted(TOPIC_ID), encode_row(deletion)))
    scene.hear()
    scene.put(Remove(KEYS.deleted(TOPIC_ID)))
    scene.hear()
    assert TOPIC_ID in scene.state.topics_by_id
    assert not scene.state.deleted_topics


def test_a_deletion_of_a_topic_that_is_there_removes_nothing_before_the_topic_goes() -> None:
    scene = rows(broker_id=1)
    scene.put(Put(KEYS.deleted(TOPIC_ID), b'[1,"orders",2,[1,3]]'))
    scene.hear()
    has_deleted = bool(scene.state.deleted_topics)
    scene.put(Remove(KEYS.topic(TOPIC_ID)))
    scene.hear()

    assert not has_deleted
    assert scene.state.deleted_topics[TOPIC_ID].broker_ids == (1, 3)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cluster", b'[1,"another"]'),
        ("ids/producer", b"[1,-1]"),
        ("ids/producer", b"[1,9223372036854775808]"),
    ],
)
def test_what_concerns_the_whole_cluster_is_refused(key: str, value: bytes) -> None:
    scene = rows()
    scene.put(Put(KEYS.prefix + key.encode(), value))

    with pytest.raises(CorruptData, match=key):
        scene.hear()


NEWER = [("cluster", b"[2]"), ("ids/producer", b"[2,7]")]


@pytest.mark.parametrize(("key", "value"), [*NEWER, ("wonders/1", b"[1]")])
def test_what_a_newer_release_has_written_stops_no_broker_that_runs(key: str, value: bytes) -> None:
    scene = rows()
    before = scene.state.snapshot()
    scene.put(Put(KEYS.prefix + key.encode(), value))

    scene.hear()

    assert scene.state.snapshot() == before


@pytest.mark.parametrize(("key", "value"), NEWER)
def test_what_a_newer_release_has_written_of_the_whole_cluster_lets_no_broker_start(
    key: str, value: bytes
) -> None:
    scene = rows()
    scene.put(Put(KEYS.prefix + key.encode(), value))

    assert key in refused_start(scene)


def test_a_kind_of_row_that_is_not_known_lets_a_broker_start() -> None:
    scene = rows()
    scene.put(Put(KEYS.prefix + b"wonders/1", b"[1]"))

    other = Rows()
    other.etcd = scene.etcd
    other.hear()

    assert other.state.snapshot() == scene.state.snapshot()


def test_a_broker_that_lives_writes_its_damaged_registration_anew() -> None:
    scene = LifeScene()
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    sound = scene.etcd.rows(b"/test/brokers/1")[0].value
    epoch = broker.life.broker_epoch
    assert scene.etcd.transact([], [Put(b"/test/brokers/1", b"[]")])[0]
    scene.pass_ms(5_000)

    assert scene.etcd.rows(b"/test/brokers/1")[0].value == sound
    assert broker.life.broker_epoch == epoch


def test_a_broker_that_lives_writes_the_damaged_row_of_its_life_anew_with_its_lease() -> None:
    scene = LifeScene()
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    (sound,) = scene.etcd.rows(b"/test/lives/1")
    assert scene.etcd.transact([], [Put(b"/test/lives/1", b"[]")])[0]
    scene.pass_ms(5_000)

    (row,) = scene.etcd.rows(b"/test/lives/1")
    assert (row.value, row.lease_id) == (sound.value, sound.lease_id)
    assert broker.epochs == [broker.life.broker_epoch]
    broker.kill()
    scene.run(lambda: scene.stored_lives() == [])


def test_a_broker_whose_life_cannot_be_read_is_told_to_have_the_row_removed() -> None:
    scene = LifeScene()
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    (row,) = scene.etcd.rows(b"/test/lives/1")
    scene.etcd.revoke(row.lease_id)
    assert scene.etcd.transact([], [Put(b"/test/lives/1", b"[]")])[0]
    scene.run(lambda: "if none runs, remove that row" in broker.life.obstacle)
    assert "/test/lives/1 in etcd cannot be read" in broker.life.obstacle
    scene.etcd._remove([b"/test/lives/1"])

    scene.run(lambda: broker.life.is_alive)
