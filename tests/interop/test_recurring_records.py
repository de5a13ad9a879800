"""Recurring records of a real client, and the broker's clock moved on."""

from __future__ import annotations

import confluent_kafka

from tarry.testing import Tarry

MINUTE_MS = 60_000


def test_a_recurring_record_comes_each_minute_until_it_is_taken_back():
    with Tarry() as broker:
        topic = broker.topic("tasks", delay_enable=True, delay_source="header")
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})

        def send(value: bytes, *headers: tuple[str, bytes]) -> None:
            producer.produce(topic, value, partition=0, headers=list(headers))
            assert producer.flush(10) == 0

        send(b"a", ("x-sched-cron", b"* * * * *"), ("x-sched-id", b"one"))
        for _ in range(3):
            broker.clock.advance("1m")
        send(b"", ("x-sched-id", b"one"), ("x-sched-cancel", b"1"))
        broker.clock.advance("1m")
        send(b"last")

        records = broker.wait_for_records(topic, 4)

    assert [record.value for record in records] == [b"a", b"a", b"a", b"last"]
    times = [record.timestamp for record in records[:3]]
    assert [time % MINUTE_MS for time in times] == [0, 0, 0]
    assert [time - times[0] for time in times] == [0, MINUTE_MS, 2 * MINUTE_MS]


def test_a_bad_expression_is_told_to_the_producer():
    with Tarry() as broker:
        topic = broker.topic("tasks", delay_enable=True, delay_source="header")
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        told: list[object] = []

        producer.produce(
            topic,
            b"a",
            headers=[("x-sched-cron", b"every day")],
            on_delivery=lambda error, _: told.append(error),
        )
        producer.flush(10)

    assert "INVALID_RECORD" in str(told[0]) or told[0].code() == 87
