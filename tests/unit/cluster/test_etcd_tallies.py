"""Tallies of etcd's rows, once a minute: what a watch has lost is found, and nothing else is."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.support.metadata_stores import EtcdSubject

from tarry.base.etcd import TALLIED_MAX, Operation, Put, Remove
from tarry.base.ids import id_text
from tarry.base.partition_row import PartitionRow
from tarry.cluster.decisions.producer_ids import ReserveProducerIds
from tarry.cluster.etcd.etcd_store import TALLY_MS, EtcdStore
from tarry.cluster.rows.rows import ROW_FORMAT, ConfigsRow, encode_row
from tarry.cluster.state.records import (
    ConfigChanged,
    MetadataRecord,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.simulation.etcd import SimulatedEtcdDoor

ORDERS = bytes(15) + b"\1"
BILLS = bytes(15) + b"\2"


def creation(topic_id: bytes, name: str) -> TopicCreated:
    row = PartitionRow(1, 0, 2, 0, [1], [1])
    return TopicCreated(topic_id=topic_id, name=name, partitions=[row] * 3, configs={})


def with_topics(subject: EtcdSubject) -> EtcdSubject:
    subject.interfere(creation(ORDERS, "orders"), creation(BILLS, "bills"))
    subject.run(lambda: "bills" in subject.store.state.topics)
    return subject


@pytest.fixture
def subject() -> EtcdSubject:
    return with_topics(EtcdSubject())


def pass_ms(subject: EtcdSubject, ms: int, between: Callable[[], None] | None = None) -> None:
    end_ms = subject.etcd.now_ms + ms
    while subject.etcd.now_ms < end_ms:
        subject.step()
        if between is not None:
            between()


def lose(subject: EtcdSubject, *records: MetadataRecord) -> None:
    """Have another broker change rows, of which no watch tells."""
    subject.door.lost_revisions[subject.etcd.revision + 1] = None
    subject.interfere(*records)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("is_removal", [False, True])
def test_what_a_watch_has_lost_is_found_within_a_minute(
    caplog: pytest.LogCaptureFixture, seed: int, *, is_removal: bool, is_busy: bool
) -> None:
    """This broker writes nothing, so no compare of its own fails and tells of what was lost."""
    subject = with_topics(EtcdSubject(seed))
    lost = (
        TopicDeleted(topic_id=BILLS)
        if is_removal
        else ConfigChanged(topic_id=BILLS, configs={"retention.ms": "5"})
    )
    drawn = random.Random(seed)

    def change() -> None:
        if is_busy and drawn.random() < 0.5:
            value = str(drawn.randrange(10**6))
            subject.interfere(ConfigChanged(topic_id=ORDERS, configs={"retention.ms": value}))

    lose(subject, lost)
    pass_ms(subject, TALLY_MS + 1_000, change)

    assert caplog.text.count("has not told") == 1
    bills = subject.store.state.topics.get("bills")
    assert (bills is None) if is_removal else (bills is not None and len(bills.configs) == 1)


REMADE = bytes(15) + b"\3"


@pytest.mark.parametrize("has_parts", [False, True])
def test_a_topic_that_is_made_again_beside_one_whose_deletion_a_watch_has_lost_is_known_in_a_minute(
    subject: EtcdSubject, *, has_parts: bool
) -> None:
    lose(subject, TopicDeleted(topic_id=BILLS))
    subject.interfere(TopicRemoved(topic_id=BILLS))
    remade = creation(REMADE, "bills")
    subject.interfere(remade)
    row = PartitionRow(1, 1, 2, 1, [1], [1])
    if has_parts:
        subject.interfere(PartitionChanged(topic_id=REMADE, index=1, row=row))

    pass_ms(subject, TALLY_MS + 1_000)

    state = subject.store.state
    assert state.topics["bills"].topic_id == REMADE
    wanted = [remade.partitions[0], row if has_parts else remade.partitions[1]]
    assert state.topics["bills"].partitions[:2] == wanted
    assert subject.ends.replica.snapshot() == state.snapshot()
    known = state.snapshot()
    subject.restart()
    assert sorted(map(repr, subject.store.state.snapshot())) == sorted(map(repr, known))


# Rows that a broker passes over, or in whose place something else stands.
ODD_ROWS: dict[str, tuple[str, bytes]] = {
    "of no topic": (f"parts/{id_text(bytes(15) + b'9')}/0", b"[1,1,0,2,0,[1],[1],[],[],-1]"),
    "no such index": (f"parts/{id_text(ORDERS)}/7", b"[1,1,0,2,0,[1],[1],[],[],-1]"),
    "damaged": (f"parts/{id_text(ORDERS)}/1", b"[1,"),
    "damaged topic": (f"topics/{id_text(ORDERS)}", b"nothing"),
    "topic of no name": (f"topics/{id_text(bytes(15) + b'7')}", b"nothing"),
    "damaged name": ("names/other", b"{"),
    "damaged life": ("lives/2", b"{"),
    "no broker": ("brokers/one", b"{}"),
    "damaged broker": ("brokers/2", b"{"),
    "damaged settings": ("configs/1", b"{"),
    "damaged deletion": (f"deleted/{id_text(bytes(15) + b'8')}", b"{"),
}


# A broker begins with them, and with none of the others.
READ_AT_FIRST = ("no broker",)


@pytest.mark.parametrize(
    ("odd", "is_read"),
    [*((odd, False) for odd in ODD_ROWS), *((odd, True) for odd in READ_AT_FIRST)],
)
def test_odd_rows_are_tallied_as_they_are(
    subject: EtcdSubject, caplog: pytest.LogCaptureFixture, odd: str, is_read: bool
) -> None:
    key, value = ODD_ROWS[odd]
    before = subject.etcd.row(subject.keys.prefix + key.encode())
    put: list[Operation] = [Put(subject.keys.prefix + key.encode(), value)]
    subject.etcd.transact([], put)
    if is_read:
        subject.restart()

    pass_ms(subject, 2 * TALLY_MS + 1_000)
    full_key = subject.keys.prefix + key.encode()
    mended = Remove(full_key) if before is None else Put(full_key, before.value)
    subject.etcd.transact([], [mended])
    pass_ms(subject, 2 * TALLY_MS)

    assert "has not told" not in caplog.text
    assert subject.failures == []
    lose(subject, ConfigChanged(topic_id=BILLS, configs={"retention.ms": "5"}))
    pass_ms(subject, 2 * TALLY_MS)
    assert "has not told" in caplog.text


def test_an_etcd_that_is_away_is_asked_again(
    subject: EtcdSubject, caplog: pytest.LogCaptureFixture
) -> None:
    subject.door.go_away()
    pass_ms(subject, 3 * TALLY_MS)
    subject.door.come_back()
    pass_ms(subject, 10_000)
    assert "has not told" not in caplog.text

    lose(subject, ConfigChanged(topic_id=BILLS, configs={"retention.ms": "5"}))
    pass_ms(subject, 2 * TALLY_MS)

    assert caplog.text.count("has not told") == 1


@pytest.mark.parametrize("seed", range(40))
def test_a_change_ends_whose_rows_are_read_before_its_answer_comes(seed: int) -> None:
    """The tally finds what is missing while a transaction is under way: no watch tells it again."""
    subject = with_topics(EtcdSubject(seed))
    pass_ms(subject, TALLY_MS // 2)
    lose(subject, ConfigChanged(topic_id=BILLS, configs={"retention.ms": "5"}))

    def ask() -> None:
        if not subject.store.is_changing:
            subject.store.change(ReserveProducerIds())

    pass_ms(subject, TALLY_MS, ask)
    began_ms = subject.etcd.now_ms
    subject.settle()

    assert subject.etcd.now_ms - began_ms < 1_000
    assert subject.store.state.topics["bills"].configs == {"retention.ms": "5"}


def test_many_rows_are_tallied_a_part_at_a_time(caplog: pytest.LogCaptureFixture) -> None:
    subject = with_topics(EtcdSubject())
    rows = 2 * TALLIED_MAX + 500
    for begin in range(0, rows, 100):
        keys = [f"configs/{number}" for number in range(begin, begin + 100)]
        row = encode_row(ConfigsRow(ROW_FORMAT, {}))
        puts: list[Operation] = [Put(subject.keys.prefix + key.encode(), row) for key in keys]
        subject.etcd.transact([], puts)
    lose(subject, ConfigChanged(topic_id=BILLS, configs={"retention.ms": "5"}))

    pass_ms(subject, TALLY_MS + 1_000)

    assert caplog.text.count("has not told") == 1
    assert subject.store.state.topics["bills"].configs == {"retention.ms": "5"}


def test_a_start_while_etcd_is_away_tallies_nothing(caplog: pytest.LogCaptureFixture) -> None:
    subject = with_topics(EtcdSubject())
    subject.door = SimulatedEtcdDoor(subject.etcd, subject.random, subject.events.append)
    subject.door.go_away()
    subject.store = EtcdStore(subject.door, subject.keys, subject.turn, subject.timer, print)
    subject.store.begin()
    pass_ms(subject, 3 * TALLY_MS)
    subject.door.come_back()

    pass_ms(subject, 3 * TALLY_MS)

    assert subject.store.is_ready
    assert "has not told" not in caplog.text
