"""Real clients for `capture_frames.py`: each creates, describes, writes, reads and deletes.

Every function takes the listener's address and returns the client's name and version.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

TOPIC: Final = "golden"

# Long enough to be smaller when compressed: clients send small batches as they are.
VALUE: Final = b"golden value, " * 20


def run_confluent_kafka(address: str) -> str:
    library, library_admin = (
        import_module("confluent_kafka"),
        import_module("confluent_kafka.admin"),
    )
    resource = library_admin.ConfigResource(library_admin.ConfigResource.Type.TOPIC, TOPIC)
    topic = library_admin.NewTopic(TOPIC, 1, 1, config={"retention.ms": "1000"})
    partition = library.TopicPartition(TOPIC, 0)
    settings = {"bootstrap.servers": address}
    admin = library_admin.AdminClient(settings)
    futures = [
        *admin.create_topics([topic]).values(),
        *admin.describe_configs([resource]).values(),
        *admin.list_offsets({partition: library_admin.OffsetSpec.max_timestamp()}).values(),
        *admin.describe_topics(library.TopicCollection([TOPIC])).values(),
        admin.describe_cluster(),
    ]
    producer = library.Producer(
        {**settings, "enable.idempotence": True, "compression.type": "zstd"}
    )
    producer.produce(TOPIC, VALUE, b"key", headers={"name": b"header"}, timestamp=1000)
    producer.flush(5)
    consumer = library.Consumer({**settings, "group.id": "golden"})
    consumer.assign([library.TopicPartition(TOPIC, 0, 0)])
    consumer.poll(1)
    consumer.offsets_for_times([library.TopicPartition(TOPIC, 0, 1000)], timeout=5)
    consumer.close()
    for future in [*futures, *admin.delete_topics([TOPIC]).values()]:
        with contextlib.suppress(Exception):
            future.result(5)
    inner = library.libversion()[0]
    return f"confluent-kafka {version('confluent-kafka')} (librdkafka {inner})"


def run_kafka_python(address: str) -> str:
    library, library_admin = import_module("kafka"), import_module("kafka.admin")
    resource = library_admin.ConfigResource(library_admin.ConfigResourceType.TOPIC, TOPIC)
    admin = library.KafkaAdminClient(bootstrap_servers=address)
    for call in (
        lambda: admin.create_topics([library_admin.NewTopic(TOPIC, 1, 1)]),
        lambda: admin.describe_configs([resource]),
        admin.describe_cluster,
        lambda: admin.delete_topics([TOPIC]),
    ):
        with contextlib.suppress(Exception):
            call()
    producer = library.KafkaProducer(bootstrap_servers=address, compression_type="gzip")
    producer.send(TOPIC, VALUE, b"key", headers=[("name", b"header")], timestamp_ms=1000)
    producer.flush(5)
    consumer = library.KafkaConsumer(bootstrap_servers=address, group_id=None)
    partition = library.TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    consumer.offsets_for_times({partition: 1000})
    consumer.seek_to_beginning(partition)
    consumer.poll(1000)
    for client in (consumer, producer, admin):
        client.close()
    return f"kafka-python {version('kafka-python')}"


def run_aiokafka(address: str) -> str:
    library, library_admin = import_module("aiokafka"), import_module("aiokafka.admin")
    resources = import_module("aiokafka.admin.config_resource")

    async def run() -> None:
        admin = library_admin.AIOKafkaAdminClient(bootstrap_servers=address)
        await admin.start()
        resource = resources.ConfigResource(resources.ConfigResourceType.TOPIC, TOPIC)
        calls: list[Callable[[], Any]] = [
            lambda: admin.create_topics([library_admin.NewTopic(TOPIC, 1, 1)]),
            lambda: admin.describe_configs([resource]),
            lambda: admin.delete_topics([TOPIC]),
        ]
        for call in calls:
            with contextlib.suppress(Exception):
                await call()
        await admin.close()
        producer = library.AIOKafkaProducer(
            bootstrap_servers=address, enable_idempotence=True, compression_type="snappy"
        )
        await producer.start()
        await producer.send_and_wait(TOPIC, VALUE, b"key", timestamp_ms=1000)
        await producer.stop()
        consumer = library.AIOKafkaConsumer(bootstrap_servers=address, group_id=None)
        await consumer.start()
        partition = library.TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        await consumer.offsets_for_times({partition: 1000})
        await consumer.seek_to_beginning(partition)
        await consumer.getmany(partition, timeout_ms=500)
        await consumer.stop()

    asyncio.run(run())
    return f"aiokafka {version('aiokafka')}"


def run_kcat(address: str) -> str:
    def kcat(*arguments: str, text: bytes = b"") -> bytes:
        done = subprocess.run(
            ["kcat", "-b", address, *arguments],
            input=text,
            capture_output=True,
            timeout=15,
            check=False,
        )
        return done.stdout + done.stderr

    kcat("-P", "-t", TOPIC, "-K", ":", "-z", "zstd", text=b"key:" + VALUE + b"\n")
    kcat("-C", "-t", TOPIC, "-p", "0", "-o", "beginning", "-e")
    kcat("-Q", "-t", f"{TOPIC}:0:1000")
    named = re.search(rb"Version (\S+) .*?librdkafka ([\d.]+)", kcat("-V"), re.DOTALL)
    assert named is not None
    return f"kcat {named[1].decode()} (librdkafka {named[2].decode()})"


def run_java(address: str) -> str:
    classpath = os.environ["CAPTURE_CLASSPATH"]
    source = Path(__file__).with_name("CaptureFrames.java")
    subprocess.run(["java", "-cp", classpath, str(source), address], timeout=90, check=True)
    named = re.search(r"kafka-clients-([\d.]+)\.jar", classpath)
    assert named is not None
    return f"Java kafka-clients {named[1]}"


CLIENTS: Final[dict[str, Callable[[str], str]]] = {
    "confluent-kafka": run_confluent_kafka,
    "kafka-python": run_kafka_python,
    "aiokafka": run_aiokafka,
    "kcat": run_kcat,
    "java": run_java,
}
