"""The check of a cluster's rows: what is sound, and a sentence for each thing that is not."""

from __future__ import annotations

import pytest

from tarry.base.etcd import Row
from tarry.base.ids import id_text
from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.row_check import RowCheck
from tarry.cluster.rows.rows import (
    ROW_FORMAT,
    AnyRow,
    BlockRow,
    BrokerRow,
    ClusterRow,
    ConfigsRow,
    DeletedRow,
    Keys,
    LifeRow,
    NameRow,
    ProducerIdsRow,
    TopicRow,
    encode_row,
)

KEYS = Keys("/demo/")
TOPIC_ID, OTHER_ID, DELETED_ID = bytes(range(16)), bytes(range(1, 17)), bytes(range(2, 18))
TEXT = id_text(TOPIC_ID)
LEASE = 77


def part(**changed: object) -> PartitionRow:
    """Partition 0 of three replicas, led by broker 1."""
    fields: dict[str, object] = {
        "leader_id": 1,
        "leader_epoch": 2,
        "broker_epoch": 5,
        "partition_epoch": 3,
        "replicas": [1, 2, 3],
        "isr": [1, 2],
        "adding": [],
        "removing": [],
        "unclean_epoch": -1,
    }
    return PartitionRow(**(fields | changed))  # type: ignore[arg-type]


def topic(*blocks: BlockRow, name: str = "orders") -> TopicRow:
    return TopicRow(ROW_FORMAT, name, {}, list(blocks))


FIRST = BlockRow(0, [[1, 2, 3], [2, 3, 1]], [(1, 1)])
SECOND = BlockRow(2, [[3]], [])


def sound() -> dict[bytes, AnyRow]:
    """Rows of a cluster with nothing wrong."""
    brokers = {
        KEYS.broker(number): BrokerRow(ROW_FORMAT, f"disk-{number}", "", {}, "1")
        for number in (1, 2, 3)
    }
    return {
        KEYS.cluster: ClusterRow(ROW_FORMAT, "c"),
        **brokers,
        KEYS.life(1): LifeRow(ROW_FORMAT, "disk-1", LEASE, "serving"),
        KEYS.name("orders"): NameRow(ROW_FORMAT, "orders", TEXT),
        KEYS.topic(TOPIC_ID): topic(FIRST, SECOND),
        KEYS.part(TOPIC_ID, 0): part(),
        KEYS.part(TOPIC_ID, 2): part(leader_id=3, replicas=[3], isr=[3]),
        KEYS.deleted(DELETED_ID): DeletedRow(ROW_FORMAT, "gone", 3, [1, 2]),
        KEYS.configs(-1): ConfigsRow(ROW_FORMAT, {}),
        KEYS.configs(2): ConfigsRow(ROW_FORMAT, {}),
        KEYS.producer_ids: ProducerIdsRow(ROW_FORMAT, 1000),
    }


def check(rows: dict[bytes, AnyRow], *more: Row) -> RowCheck:
    stored = [
        Row(key, encode_row(row), 1, 1, LEASE if b"/lives/" in key else 0)
        for key, row in rows.items()
    ]
    return RowCheck(KEYS, [*stored, *more])


def test_sound_rows_are_counted_and_nothing_is_found() -> None:
    found = check(sound())

    assert found.problems == []
    assert found.is_sound
    assert found.cluster_id == "c"
    assert found.row_count == 13
    assert (len(found.brokers), len(found.lives), len(found.deleted)) == (3, 1, 1)
    assert (len(found.topics), found.partition_count) == (1, 3)


def test_a_partition_without_a_row_whose_leader_has_begun_another_life_is_named() -> None:
    rows = sound()
    rows[KEYS.topic(TOPIC_ID)] = topic(BlockRow(0, FIRST.replicas, [(1, 7)]), SECOND)
    found = check(rows)

    (problem,) = found.problems
    assert problem.key == f"/demo/parts/{TEXT}/1"
    assert "orders [1]: it has no row, so broker 1 leads it as it was made" in problem.problem
    assert found.is_sound


@pytest.mark.parametrize(
    ("key", "row", "words"),
    [
        (KEYS.cluster, None, "a migration was not ended"),
        (KEYS.cluster, ClusterRow(ROW_FORMAT, ""), "it has no cluster id"),
        (KEYS.name("orders"), None, "its name orders is not kept"),
        (
            KEYS.name("orders"),
            NameRow(ROW_FORMAT, "orders", id_text(OTHER_ID)),
            f"its name orders is taken by topic {id_text(OTHER_ID)}",
        ),
        (KEYS.name("orders"), NameRow(ROW_FORMAT, "Orders", TEXT), "which has another key"),
        (KEYS.name("free"), NameRow(ROW_FORMAT, "free", id_text(OTHER_ID)), "which is not there"),
        (KEYS.name("free"), NameRow(ROW_FORMAT, "free", TEXT), "the topic says orders"),
        (KEYS.topic(TOPIC_ID), topic(FIRST, SECOND, name="a b"), "cannot be a topic's name"),
        (KEYS.topic(TOPIC_ID), topic(FIRST), "topic orders has 2 partitions"),
        (KEYS.topic(TOPIC_ID), topic(), "has no partition"),
        (
            KEYS.topic(TOPIC_ID),
            topic(BlockRow(0, [[1]], []), SECOND),
            "partitions from 1 on are followed by those from 2",
        ),
        (KEYS.topic(TOPIC_ID), topic(FIRST, BlockRow(2, [[]], [])), "partition 2: it has no rep"),
        (KEYS.topic(TOPIC_ID), topic(FIRST, BlockRow(2, [[3, 3]], [])), "name a broker twice"),
        (
            KEYS.topic(TOPIC_ID),
            topic(BlockRow(0, [[1], [9]], []), SECOND),
            "orders [1]: broker 9 has a replica and is not registered",
        ),
        (KEYS.part(OTHER_ID, 0), part(), "there is no topic"),
        (KEYS.part(TOPIC_ID, 3), part(), "has 3 partitions"),
        (KEYS.part(TOPIC_ID, 1), part(leader_id=4), "leader 4 is none of the replicas 1, 2, 3"),
        (KEYS.part(TOPIC_ID, 1), part(leader_id=-1), "leader -1 is none of the replicas"),
        (
            KEYS.part(TOPIC_ID, 1),
            part(leader_id=1, broker_epoch=1, isr=[2, 3]),
            "leader 1 is not in sync (2, 3)",
        ),
        (KEYS.part(TOPIC_ID, 1), part(isr=[1, 4]), "4 in sync, but the replicas are 1, 2, 3"),
        (KEYS.part(TOPIC_ID, 1), part(isr=[]), "no replica is in sync"),
        (KEYS.part(TOPIC_ID, 1), part(isr=[1, 1]), "1, 1 in sync name a broker twice"),
        (KEYS.part(TOPIC_ID, 1), part(adding=[5]), "5 being added"),
        (KEYS.part(TOPIC_ID, 1), part(removing=[5]), "5 being removed"),
        (KEYS.part(TOPIC_ID, 1), part(leader_epoch=-1), "an epoch is out of its range"),
        (
            KEYS.part(TOPIC_ID, 1),
            part(replicas=[1, 2, 9]),
            "orders [1]: broker 9 has a replica and is not registered",
        ),
        (KEYS.deleted(TOPIC_ID), DeletedRow(ROW_FORMAT, "orders", 3, [1]), "is deleted and there"),
        (KEYS.deleted(OTHER_ID), DeletedRow(ROW_FORMAT, "../x", 3, [1]), "makes no sense"),
        (KEYS.life(1), LifeRow(ROW_FORMAT, "disk-1", -1, "serving"), "its lease has no id"),
        (
            KEYS.broker(1),
            BrokerRow(ROW_FORMAT, "disk-1", "", {"PLAINTEXT": ("h", 70_000)}, "1"),
            "70000 is no port",
        ),
        (KEYS.producer_ids, ProducerIdsRow(ROW_FORMAT, -1), "-1 is no producer id"),
        (b"/demo/ids/other", ProducerIdsRow(ROW_FORMAT, 1), "it names no kind of ids"),
    ],
)
def test_what_does_not_fit_is_damage(key: bytes, row: AnyRow | None, words: str) -> None:
    rows = sound()
    if row is None:
        del rows[key]
    else:
        rows[key] = row
    found = check(rows)

    assert not found.is_sound
    assert any(words in each.problem for each in found.problems), found.problems
    assert all(each.is_damage for each in found.problems)


def test_a_leader_whose_life_is_over_may_have_left_the_isr() -> None:
    """It came back with another disk, and who is in sync is dead."""
    found = check(sound() | {KEYS.part(TOPIC_ID, 1): part(leader_id=1, isr=[2, 3])})

    assert found.problems == []


@pytest.mark.parametrize(
    ("key", "row", "words"),
    [
        (KEYS.broker(4), BrokerRow(ROW_FORMAT, "", "", {}, ""), "was never started"),
        (
            KEYS.life(2),
            LifeRow(ROW_FORMAT, "new-disk", LEASE, "serving"),
            "another log directory than it is registered with",
        ),
        (KEYS.life(4), LifeRow(ROW_FORMAT, "d", LEASE, "serving"), "lives and is not registered"),
        (
            KEYS.deleted(DELETED_ID),
            DeletedRow(ROW_FORMAT, "gone", 3, [9]),
            "broker 9 still has its data",
        ),
        (KEYS.configs(9), ConfigsRow(ROW_FORMAT, {}), "settings of broker 9"),
    ],
)
def test_what_a_cluster_can_go_on_with_is_a_note(key: bytes, row: AnyRow, words: str) -> None:
    rows = sound()
    rows[key] = row
    found = check(rows)

    assert found.is_sound
    assert [words in each.problem for each in found.problems] == [True]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (KEYS.part(TOPIC_ID, 1), b"[1,", "cannot be read"),
        (KEYS.part(TOPIC_ID, 1), b"{}", "cannot be read"),
        (KEYS.part(TOPIC_ID, 1), b"[2,7]", "in format 2, this Tarry reads up to 1"),
        (KEYS.group("g"), b"[1,5]", "cannot be read"),
        (b"/demo/groups/a%2fb", b"[1,{}]", "it names no group"),
        (KEYS.feature("tarry.wonders"), b"[1,-1]", "-1 is no level of a feature"),
        (
            b"/demo/brokers/one",
            encode_row(BrokerRow(1, "", "", {}, "")),
            "it names no broker",
        ),
        (b"/demo/brokers/01", encode_row(BrokerRow(1, "", "", {}, "")), "it names no broker"),
        (b"/demo/brokers/1/2", encode_row(BrokerRow(1, "", "", {}, "")), "brokers has 2 parts"),
        (b"/demo/parts/x/0", encode_row(part()), "it names no topic"),
        (b"/demo/\xff\xfe", b"[1]", "the key is no text"),
        (KEYS.life(3), encode_row(LifeRow(1, "disk-3", 0, "serving")), "it has no lease"),
    ],
)
def test_what_cannot_be_read_is_damage_and_hides_nothing_else(
    key: bytes, value: bytes, words: str
) -> None:
    found = check(sound(), Row(key, value, 1, 1))

    assert [each.is_damage for each in found.problems] == [True]
    assert words in found.problems[0].problem


def test_a_kind_of_row_that_is_not_known_is_no_damage() -> None:
    found = check(sound(), Row(b"/demo/wishes/1", b"[1]", 1, 1))

    assert found.is_sound
    assert [each.key for each in found.problems] == ["/demo/wishes/1"]


def test_a_broker_that_does_not_know_a_level_in_force_is_named() -> None:
    found = check(sound(), Row(KEYS.feature("tarry.wonders"), b"[1,3]", 1, 1))

    assert not found.is_sound
    assert "level 3 is in force, and broker 1 does not know it" in found.problems[0].problem


def test_a_kind_of_which_a_row_cannot_be_read_is_not_told_to_be_missing() -> None:
    rows = sound()
    del rows[KEYS.broker(3)], rows[KEYS.topic(TOPIC_ID)], rows[KEYS.cluster]
    damaged = [Row(key, b"?", 1, 1) for key in (KEYS.broker(3), KEYS.topic(TOPIC_ID), KEYS.cluster)]
    found = check(rows, *damaged)

    assert [each.key.encode() for each in found.problems] == [each.key for each in damaged]


def test_an_empty_prefix_is_told() -> None:
    found = RowCheck(KEYS, [])

    assert not found.is_sound
    assert "no row below this prefix" in found.problems[0].problem
