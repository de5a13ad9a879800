"""The clock of a broker in a thread, moved on by hand."""

from __future__ import annotations

import threading

import pytest

from tarry.client import Consumer, Listener
from tarry.testing import Tarry
from tarry.testing.settings import duration_ms


def first_offset(broker: Tarry, topic: str) -> int:
    with broker.consumer() as consumer:
        return consumer.beginning_offsets([(topic, 0)])[topic, 0]


def test_old_records_go_when_the_calendar_goes_on() -> None:
    with Tarry() as broker:
        topic = broker.topic("old", **{"retention.ms": "3600000", "segment.ms": "60000"})
        broker.send(topic, b"one")

        broker.clock.advance("30m")
        kept = first_offset(broker, topic)
        broker.clock.advance("8h")

        assert (kept, first_offset(broker, topic)) == (0, 1)


def test_a_clock_that_was_set_deletes_nothing() -> None:
    with Tarry() as broker:
        topic = broker.topic("old", **{"retention.ms": "3600000"})
        broker.send(topic, b"one")
        before_ms = broker.clock.now_ms

        broker.clock.jump("7d")
        broker.clock.advance("1s")

        assert broker.clock.now_ms - before_ms >= 7 * 86_400_000
        assert len(broker.records(topic)) == 1


def test_a_scheduled_record_comes_when_the_calendar_goes_on() -> None:
    with Tarry() as broker:
        topic = broker.topic("later", **{"delay.enable": "true", "delay.source": "timestamp"})
        with broker.producer() as producer:
            producer.send_and_wait(topic, b"one", timestamp=broker.clock.now_ms + 3_600_000)

        broker.clock.advance("59m")
        before = broker.records(topic)
        broker.clock.advance("1m")

        assert before == []
        assert [record.value for record in broker.records(topic)] == [b"one"]


def end_of(broker: Tarry, topic: str) -> int:
    """Return where the topic ends now, without waiting for anything."""
    with broker.consumer() as consumer:
        return consumer.end_offsets([(topic, 0)])[topic, 0]


def test_all_that_fell_due_is_there_when_the_clock_has_moved() -> None:
    with Tarry() as broker:
        topic = broker.topic("later", **{"delay.enable": "true", "delay.source": "header"})
        # A batch each, more than the broker releases in ten turns.
        with broker.producer(batch_size=1) as producer:
            for number in range(1_200):
                producer.send(topic, b"%d" % number, deliver_after=(number % 12 + 1) * 60_000)

        ends = []
        for _ in range(14):
            broker.clock.advance("1m")
            ends.append(end_of(broker, topic))

        # The broker's clock has gone on by itself as well, by less than a minute.
        assert ends[-1] == ends[-2] == 1_200
        assert all(end % 100 == 0 for end in ends)
        assert ends[:12] == [100 * (number + 1) for number in range(12)]


def test_one_long_way_of_the_clock_releases_records_in_their_order() -> None:
    with Tarry() as broker:
        # Retention would take what was released long ago, as on a day in a year.
        kept = {"retention.ms": "-1"}
        topic = broker.topic("later", **kept, **{"delay.enable": "true", "delay.source": "header"})
        with broker.producer() as producer:
            for days in (40, 3, 365, 1):
                producer.send_and_wait(topic, b"%d" % days, deliver_after=f"{days}d")

        broker.clock.advance("400d")

        assert [record.value for record in broker.records(topic)] == [b"1", b"3", b"40", b"365"]


def test_a_consumer_that_waits_hears_of_what_is_released() -> None:
    with Tarry() as broker:
        topic = broker.topic("later", **{"delay.enable": "true", "delay.default.ms": "3600000"})
        broker.send(topic, b"one")
        consumer = broker.consumer(topic, group_id="g", auto_offset_reset="earliest")
        assert consumer.poll(0) == []

        broker.clock.advance("1h")

        assert next(iter(consumer)).value == b"one"


class Losses(Listener):
    """Listener that notes what was lost."""

    def __init__(self) -> None:
        self.lost = threading.Event()

    def on_lost(self, consumer: Consumer, places: list[tuple[str, int]]) -> None:
        self.lost.set()


def test_a_session_expires_without_waiting() -> None:
    with Tarry() as broker:
        broker.send("orders", b"one")
        losses = Losses()
        consumer = broker.consumer("orders", group_id="readers", listener=losses)
        assert next(iter(consumer)).value == b"one"

        broker.clock.advance_sessions("46s")
        (described,) = broker.admin.describe_groups(["readers"]).values()
        while not losses.lost.is_set():
            consumer.poll(1.0)

        assert getattr(described, "state", "") == "Empty"


@pytest.mark.parametrize("duration", ["45", "1 year", "", "-1s", 0, -1.0, float("nan")])
def test_a_time_that_is_none_is_refused(duration: str | float) -> None:
    with pytest.raises(ValueError, match="is no time to move on by"):
        duration_ms(duration)


def test_times_are_texts_or_seconds() -> None:
    written = ["500ms", "45s", "1.5h", " 7d ", 0.25]

    assert [duration_ms(one) for one in written] == [500, 45_000, 5_400_000, 604_800_000, 250]
