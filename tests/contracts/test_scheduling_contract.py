"""Scheduled records as users of the client send them, in every face that has records."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.support.client.faces import SyncFace as Face

from tarry.base import errors
from tarry.client import SET, BrokerError, BufferFull, ConfigChange, SchedulingUnsupported
from tarry.client.core.producer.partitioner import partition_for_key
from tarry.testing import Tarry

HOUR_MS = 3_600_000
BY_HEADER = {"delay.enable": "true", "delay.source": "header"}
BY_TIMESTAMP = {"delay.enable": "true", "delay.source": "timestamp"}
ALL_ALIKE = {"delay.enable": "true", "delay.default.ms": "1000"}


class Delayed:
    """A producer of one face, and a topic."""

    def __init__(self, face: Face, broker: Tarry) -> None:
        self.face = face
        self.broker = broker
        self.run = face.run
        self.clients: list[Any] = []
        self.producer = self.make()

    def make(self, **settings: Any) -> Any:
        self.clients.append(self.face.Producer(bootstrap_servers=self.broker.bootstrap, **settings))
        return self.clients[-1]

    def topic(self, configs: dict[str, str], partitions: int = 1) -> str:
        return self.broker.topic("later", partitions, **configs)

    def send(self, topic: str, value: bytes, **arguments: Any) -> Any:
        """Send a record and wait until the broker has it."""
        return self.run(self.producer.send_and_wait(topic, value, **arguments))

    def cancel(self, topic: str, **arguments: Any) -> Any:
        return self.face.outcome(self.run(self.producer.cancel(topic, **arguments)))

    def cancel_by(self, receipt: Any, **arguments: Any) -> Any:
        return self.run(self.producer.cancel(receipt, **arguments))

    def alter(self, topic: str, configs: dict[str, str]) -> None:
        changes = [ConfigChange(key, SET, value) for key, value in configs.items()]
        self.broker.admin.change_topic_configs(topic, changes)

    def values(self, topic: str) -> list[bytes | None]:
        return [record.value for record in self.broker.records(topic)]


@pytest.fixture
def delayed(face: Face, broker: Tarry) -> Iterator[Delayed]:
    made = Delayed(face, broker)
    yield made
    for client in made.clients:
        face.run(client.close())


@pytest.mark.parametrize("configs", [BY_HEADER, BY_TIMESTAMP], ids=["header", "timestamp"])
@pytest.mark.parametrize("duration", ["1h", timedelta(hours=1), HOUR_MS])
def test_a_record_appears_after_its_time(
    delayed: Delayed, configs: dict[str, str], duration: str | int | timedelta
) -> None:
    topic = delayed.topic(configs)

    receipt = delayed.send(topic, b"one", deliver_after=duration)
    delayed.broker.clock.advance("59m")
    before = delayed.values(topic)
    delayed.broker.clock.advance("2m")

    assert (receipt.offset, receipt.is_parked) == (-1, True)
    assert before == []
    assert delayed.values(topic) == [b"one"]


@pytest.mark.parametrize("configs", [BY_HEADER, BY_TIMESTAMP], ids=["header", "timestamp"])
@pytest.mark.parametrize("is_number", [True, False])
def test_a_record_appears_at_its_time(
    delayed: Delayed, configs: dict[str, str], *, is_number: bool
) -> None:
    topic = delayed.topic(configs)
    due_ms = delayed.broker.clock.now_ms + HOUR_MS
    # A summer's clock somewhere else.
    zone = timezone(timedelta(hours=5, minutes=45))
    due = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=due_ms)

    delayed.send(topic, b"one", deliver_at=due_ms if is_number else due.astimezone(zone))
    delayed.broker.clock.advance("59m")
    before = delayed.values(topic)
    delayed.broker.clock.advance("2m")

    assert before == []
    (record,) = delayed.broker.records(topic)
    assert record.value == b"one"
    if configs is BY_TIMESTAMP:
        assert record.timestamp == due_ms
    else:
        assert record.headers == [("x-deliver-at", b"%d" % due_ms)]


def test_headers_and_timestamp_of_the_user_stay(delayed: Delayed) -> None:
    topic = delayed.topic(BY_HEADER)

    delayed.send(topic, b"", headers={"kind": b"new"}, timestamp=5, deliver_after="1m")
    delayed.broker.clock.advance("1m")

    (record,) = delayed.broker.records(topic)
    assert not delayed.send(topic, b"").is_parked
    assert record.headers == [("kind", b"new"), ("x-deliver-after", b"60000")]
    assert record.timestamp == 5


def test_a_record_is_taken_back_by_its_receipt(delayed: Delayed) -> None:
    topic = delayed.topic(BY_HEADER)
    kept = delayed.send(topic, b"kept", deliver_after="1m")
    gone = delayed.send(topic, b"gone", deliver_after="1m")

    outcome = delayed.cancel_by(gone)
    again = delayed.cancel_by(gone)
    delayed.broker.clock.advance("2m")

    assert (outcome.outcome, outcome.partition, outcome.s_offset) == ("cancelled", 0, gone.s_offset)
    assert again.outcome == "unknown"
    assert gone.s_offset > kept.s_offset >= 0
    assert delayed.values(topic) == [b"kept"]


def test_a_record_that_has_come_is_not_taken_back_by_its_receipt(delayed: Delayed) -> None:
    topic = delayed.topic(BY_HEADER)
    direct = delayed.send(topic, b"direct")
    parked = delayed.send(topic, b"parked", deliver_after="1m")
    delayed.broker.clock.advance("1m")

    outcomes = [delayed.cancel_by(each) for each in (direct, parked)]

    assert [(each.outcome, each.offset) for each in outcomes] == [
        ("already_released", 0),
        ("already_released", 1),
    ]


def test_a_receipt_names_a_record_alone(delayed: Delayed) -> None:
    topic = delayed.topic(BY_HEADER)
    receipt = delayed.send(topic, b"one", deliver_after="1m")

    with pytest.raises(TypeError, match="a receipt alone"):
        delayed.cancel_by(receipt, schedule_id="call-7")


def test_a_record_is_taken_back_by_its_id(delayed: Delayed) -> None:
    topic = delayed.topic(BY_HEADER, 5)
    delayed.send(topic, b"kept", deliver_after="1m", schedule_id="call-6")
    sent = delayed.send(topic, b"gone", deliver_after="1m", schedule_id="call-7")

    cancelled = delayed.cancel(topic, schedule_id="call-7")
    delayed.broker.clock.advance("2m")

    assert sent.partition == cancelled.partition == partition_for_key(b"call-7", 5)
    assert delayed.values(topic) == [b"kept"]


@pytest.mark.parametrize("place", [{"key": b"k"}, {"partition": 3}])
def test_a_key_or_a_partition_goes_before_the_id(delayed: Delayed, place: dict[str, Any]) -> None:
    topic = delayed.topic(BY_HEADER, 5)

    sent = delayed.send(topic, b"gone", deliver_after="1m", schedule_id=b"\xff", **place)
    cancelled = delayed.cancel(topic, schedule_id=b"\xff", **place)
    delayed.broker.clock.advance("2m")

    assert (
        sent.partition == cancelled.partition == place.get("partition", partition_for_key(b"k", 5))
    )
    assert delayed.values(topic) == []


def test_a_partitioner_of_the_users_own_is_asked_with_the_id(delayed: Delayed) -> None:
    topic = delayed.topic(BY_HEADER, 5)
    asked: list[bytes | None] = []

    def fourth(topic: str, key: bytes | None, partition_count: int) -> int:
        asked.append(key)
        return 4

    delayed.producer = delayed.make(partitioner=fourth)
    sent = delayed.send(topic, b"gone", deliver_after="1m", schedule_id="id")
    cancelled = delayed.cancel(topic, schedule_id="id")
    delayed.broker.clock.advance("2m")

    assert (sent.partition, cancelled.partition) == (4, 4)
    assert asked == [b"id", b"id"]
    assert delayed.values(topic) == []


def test_the_same_id_gives_a_record_another_time(delayed: Delayed) -> None:
    topic = delayed.topic(BY_HEADER, 5)
    delayed.send(topic, b"early", deliver_after="1m", schedule_id="one")

    delayed.send(topic, b"late", deliver_after="3m", schedule_id="one")
    delayed.broker.clock.advance("2m")
    before = delayed.values(topic)
    delayed.broker.clock.advance("2m")

    assert (before, delayed.values(topic)) == ([], [b"late"])


@pytest.mark.parametrize(
    ("configs", "arguments", "sentence"),
    [
        ({}, {"deliver_after": "1m"}, "set delay.enable=true and delay.source=header"),
        (ALL_ALIKE, {"deliver_at": 5}, r"delays all its records alike \(delay.default.ms\)"),
        (BY_TIMESTAMP, {"deliver_at": 5, "schedule_id": "x"}, "set delay.source=header on it"),
    ],
)
def test_a_topic_that_cannot_do_it_is_refused_with_what_to_set(
    delayed: Delayed, configs: dict[str, str], arguments: dict[str, Any], sentence: str
) -> None:
    topic = delayed.topic(configs)

    with pytest.raises(SchedulingUnsupported, match=sentence):
        delayed.run(delayed.producer.send(topic, b"x", **arguments))
    with pytest.raises(SchedulingUnsupported, match=r"delay\.source=header"):
        delayed.run(delayed.producer.cancel(topic, schedule_id="x"))
    delayed.broker.clock.advance("1m")

    assert delayed.values(topic) == []


def test_a_topic_that_was_altered_takes_the_next_record(delayed: Delayed) -> None:
    topic = delayed.topic({})
    with pytest.raises(SchedulingUnsupported):
        delayed.send(topic, b"", deliver_after="1m")

    delayed.alter(topic, BY_HEADER)
    delayed.send(topic, b"one", deliver_after="1m")
    delayed.broker.clock.advance("1m")

    assert delayed.values(topic) == [b"one"]


def test_a_timestamp_and_a_due_time_cannot_both_be_the_timestamp(delayed: Delayed) -> None:
    topic = delayed.topic(BY_TIMESTAMP)

    with pytest.raises(ValueError, match="give timestamp or deliver_at, not both"):
        delayed.send(topic, b"", deliver_at=5, timestamp=5)


def test_what_is_due_too_late_is_refused_and_its_neighbours_are_not(delayed: Delayed) -> None:
    topic = delayed.topic({**BY_HEADER, "delay.max.ms": "60000"})

    late, soon = [
        delayed.run(delayed.producer.send(topic, value, deliver_after=after))
        for value, after in ((b"late", "2m"), (b"soon", "1m"))
    ]
    with pytest.raises(BrokerError, match=r"delay\.max\.ms is 60000") as caught:
        delayed.face.outcome(late)
    delayed.face.outcome(soon)
    delayed.broker.clock.advance("3m")

    assert caught.value.code == errors.INVALID_TIMESTAMP
    assert delayed.values(topic) == [b"soon"]


def test_a_batch_of_different_times_comes_record_by_record(delayed: Delayed) -> None:
    topic = delayed.topic(BY_HEADER)
    delayed.producer = delayed.make(linger_ms=60_000, delivery_timeout_ms=120_000)

    for minutes in (3, 1, 2):
        value = b"%d" % minutes
        delayed.run(delayed.producer.send(topic, value, deliver_after=f"{minutes}m"))
    delayed.run(delayed.producer.send(topic, b"now"))
    delayed.run(delayed.producer.flush())
    delayed.broker.clock.advance("5m")

    assert delayed.values(topic) == [b"now", b"1", b"2", b"3"]


@pytest.mark.parametrize("face", ["asyncio", "uvloop"], indirect=True)
def test_send_nowait_does_not_wait_for_a_topics_settings(delayed: Delayed) -> None:
    topic = delayed.topic(BY_HEADER)
    delayed.send(topic, b"known")

    async def send_without_waiting(value: bytes) -> None:
        delayed.producer.send_nowait(topic, value, deliver_after="1m", schedule_id=value)

    with pytest.raises(BufferFull, match="await send for the first record that is due later"):
        delayed.run(send_without_waiting(b"early"))
    delayed.send(topic, b"asked", deliver_after="1m")
    delayed.run(send_without_waiting(b"nowait"))
    delayed.run(delayed.producer.flush())
    delayed.broker.clock.advance("2m")

    assert sorted(delayed.values(topic)) == [b"asked", b"known", b"nowait"]


BAD_ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"deliver_at": datetime(2027, 3, 1)}, ValueError, r"2027-03-01T00:00:00 has no time zone"),
    ({"deliver_at": "2027-03-01"}, TypeError, "deliver_at is of type str, not a time"),
    ({"deliver_at": 1.5}, TypeError, "deliver_at is of type float"),
    ({"deliver_at": True}, TypeError, "deliver_at is of type bool"),
    ({"deliver_at": -1}, ValueError, "deliver_at=-1 is not between 1970 and"),
    ({"deliver_at": 2**60}, ValueError, "is not between 1970 and the year 10000"),
    ({"deliver_at": datetime(1969, 1, 1, tzinfo=UTC)}, ValueError, "is not between 1970"),
    ({"deliver_at": 5, "deliver_after": 5}, ValueError, "both say when the record is due"),
    ({"deliver_after": "soon"}, ValueError, "deliver_after='soon' is no duration"),
    ({"deliver_after": "1m30h"}, ValueError, "from the largest to the smallest"),
    ({"deliver_after": ""}, ValueError, "deliver_after='' is no duration"),
    ({"deliver_after": "\ud800"}, ValueError, "is no duration"),
    ({"deliver_after": -1}, ValueError, "deliver_after=-1 is not between 0 and"),
    ({"deliver_after": timedelta(seconds=-1)}, ValueError, "is not between 0 and"),
    ({"deliver_after": timedelta.max}, ValueError, "is not between 0 and"),
    ({"deliver_after": False}, TypeError, "deliver_after is of type bool, not a duration"),
    ({"deliver_after": 1.5}, TypeError, "deliver_after is of type float"),
    ({"schedule_id": ""}, ValueError, "schedule_id has 0 bytes, not 1 to 1024"),
    ({"schedule_id": b"x" * 1025}, ValueError, "schedule_id has 1025 bytes"),
    ({"schedule_id": "\ud800"}, ValueError, "cannot be encoded as UTF-8"),
    ({"schedule_id": 7}, TypeError, "schedule_id is of type int, not a str or bytes"),
    (
        {"schedule_id": "x", "headers": {"x-deliver-at": b"5"}},
        ValueError,
        "headers holds x-deliver-at",
    ),
    (
        {"deliver_after": 5, "headers": {"x-sched-cron": b"@daily"}},
        ValueError,
        "headers holds x-sched-cron",
    ),
]


@pytest.mark.parametrize(("arguments", "error", "sentence"), BAD_ARGUMENTS)
def test_what_says_no_time_is_refused_before_anything_is_sent(
    delayed: Delayed, arguments: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        delayed.run(delayed.producer.send("no-topic", b"x", **arguments))

    assert delayed.producer.metrics().connections.made == 0
