"""Tallies of etcd's rows, once a minute: what a watch has lost is found, and nothing else is."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.support.metadata_stores import EtcdSubject

from tarry.base.etcd import Operation, Put, Remove
from tarry.base.ids import id_text
from tarry.cluster.etcd_store import TALLY_MS
from tarry.cluster.records import (
    ConfigChanged,
    MetadataRecord,
    PartitionRow,
    TopicCreated,
    TopicDeleted,
)

ORDERS = bytes(15) + b"\1"
BILLS = bytes(15) + b"\2"


def creation(topic_id: bytes, name: str) -> TopicCreated:
    row = PartitionRow(1, 0, 0, [1], [1], broker_epoch=2)
    return TopicCreated(topic_id=topic_id, name=name, partitions=[row] * 3, configs={})


@pytest.fixture
def subject() -> EtcdSubject:
    subject = EtcdSubject()
    subject.interfere(creation(ORDERS, "orders"), creation(BILLS, "bills"))
    subject.run(lambda: "bills" in subject.store.state.topics)
    return subject


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


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("is_removal", [False, True])
def test_what_a_watch_has_lost_is_found_within_two_minutes(
    subject: EtcdSubject, caplog: pytest.LogCaptureFixture, *, is_removal: bool, is_busy: bool
) -> None:
    lost = (
        TopicDeleted(topic_id=BILLS)
        if is_removal
        else ConfigChanged(topic_id=BILLS, configs={"retention.ms": "5"})
    )
    drawn = random.Random(3)

    def change() -> None:
        if is_busy and drawn.random() < 0.2:
            value = str(drawn.randrange(10**6))
            subject.interfere(ConfigChanged(topic_id=ORDERS, configs={"retention.ms": value}))

    lose(subject, lost)
    pass_ms(subject, 2 * TALLY_MS, change)

    assert caplog.text.count("has not told") == 1
    bills = subject.store.state.topics.get("bills")
    assert (bills is None) if is_removal else (bills is not None and len(bills.configs) == 1)


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


# A broker does not begin with them.
REFUSED_AT_FIRST = ("topic of no name", "damaged settings")


@pytest.mark.parametrize(
    ("odd", "is_read"),
    [
        (odd, is_read)
        for odd in ODD_ROWS
        for is_read in (False, True)
        if not (is_read and odd in REFUSED_AT_FIRST)
    ],
)
def test_odd_rows_are_tallied_as_they_are(
    subject: EtcdSubject, caplog: pytest.LogCaptureFixture, odd: str, is_read: bool
) -> None:
    key, value = ODD_ROWS[odd]
    put: list[Operation] = [Put(subject.keys.prefix + key.encode(), value)]
    subject.etcd.transact([], put)
    if is_read:
        subject.restart()

    pass_ms(subject, 2 * TALLY_MS + 1_000)
    subject.etcd.transact([], [Remove(subject.keys.prefix + key.encode())])
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
