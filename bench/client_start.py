"""One client from its import to its first acknowledged record, in a process that does nothing else.

    client_start.py CLIENT ADDRESS TOPIC

`bench/client.py` runs it.  Nothing is imported beside the client, so that the process is as lean as
a user's; what a bare Python costs is in the figures, alike for all.
"""

from __future__ import annotations

import sys
import time

# A module for each client would be loaded by Python too; functions cost next to nothing.


def tarry(address: str, topic: str) -> int:
    from tarry.client import Producer

    with Producer(bootstrap_servers=address) as producer:
        producer.send(topic, b"x").result()
        return threads_here()


def tarry_aio(address: str, topic: str) -> int:
    import asyncio

    from tarry.client.aio import Producer

    async def run() -> int:
        async with Producer(bootstrap_servers=address) as producer:
            await (await producer.send(topic, b"x"))
            return threads_here()

    return asyncio.run(run())


def confluent(address: str, topic: str) -> int:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    producer.produce(topic, b"x")
    producer.flush()
    return threads_here()


def aiokafka(address: str, topic: str) -> int:
    import asyncio

    from aiokafka import AIOKafkaProducer

    async def run() -> int:
        async with AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True) as producer:
            await producer.send_and_wait(topic, b"x")
            return threads_here()

    return asyncio.run(run())


def kafka_python(address: str, topic: str) -> int:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=address, acks="all", enable_idempotence=True)
    producer.send(topic, b"x").get()
    threads = threads_here()
    producer.close()
    return threads


def threads_here() -> int:
    """Threads of this process, on Linux also those that no Python made."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("Threads:")).split()[1])
    except OSError:
        import threading

        return threading.active_count()


CLIENTS = {
    "tarry": tarry,
    "tarry-aio": tarry_aio,
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}


def main() -> None:
    client, address, topic = sys.argv[1:]
    begun = time.perf_counter()
    threads = CLIENTS[client](address, topic)
    wall_ms = (time.perf_counter() - begun) * 1e3
    cpu_ms = time.process_time() * 1e3
    print(f'{{"threads": {threads}, "cpu_ms": {cpu_ms}, "wall_ms": {wall_ms}}}')


if __name__ == "__main__":
    main()
