"""The asyncio face against Apache Kafka: a producer, a member of a group and an administrator."""

from __future__ import annotations

import asyncio

from tarry.client import NewTopic, aio

TOPIC = "aio-against-kafka"


async def produce_and_consume(address: str) -> tuple[list[int], list[bytes | None], int]:
    async with (
        aio.Admin(bootstrap_servers=address) as admin,
        aio.Producer(bootstrap_servers=address) as producer,
    ):
        await admin.create_topics([NewTopic(TOPIC, 1)])
        receipts = [await producer.send(TOPIC, b"%d" % number) for number in range(5)]
        offsets = [(await receipt).offset for receipt in receipts]
        found: list[bytes | None] = []
        async with aio.Consumer(
            TOPIC, bootstrap_servers=address, group_id=TOPIC, auto_offset_reset="earliest"
        ) as consumer:
            async for record in consumer:
                found.append(record.value)
                if len(found) == 5:
                    consumer.finish()
                    break
        committed = await admin.group_offsets([TOPIC])
        places = committed[TOPIC]
        assert isinstance(places, dict)
        return offsets, found, places[(TOPIC, 0)].offset


def test_records_go_through_kafka_and_the_end_is_committed(apache_kafka: str) -> None:
    offsets, found, committed = asyncio.run(produce_and_consume(apache_kafka))

    assert offsets == [0, 1, 2, 3, 4]
    assert found == [b"0", b"1", b"2", b"3", b"4"]
    assert committed == 5
