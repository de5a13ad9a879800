"""Apicurio Registry with its storage on the broker, and records in Avro by confluent-kafka.

The registry is Apicurio's own build out of Maven Central (110 MB, unpacked once into `build/`).
Its schemas lie in the topic `kafkasql-journal` and nowhere else: a registry that was killed reads
them from the broker.  Clients use the interface that is Confluent's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support.interop.client_face import ClientMissing
from tests.support.patience import PATIENCE_S, tries
from tests.support.places import BUILD

VERSION: Final = "3.0.9"
ARTIFACT: Final = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
DIRECTORY: Final = BUILD / f"apicurio-registry-{VERSION}"
DOWNLOAD_SECONDS_MAX: Final = 600
HEAP_MEGABYTES: Final = 384

Result = TypeVar("Result")


def registry_jar() -> Path:
    """The registry's program, fetched by Maven once."""
    jar = DIRECTORY / f"apicurio-registry-app-{VERSION}-runner.jar"
    if jar.exists():
        return jar
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise ClientMissing(f"{tool} is not installed")
    unfinished = DIRECTORY.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy"
    command = ["mvn", "-q", "-B", plugin, f"-Dartifact={ARTIFACT}", "-Dmdep.useBaseVersion=true"]
    command.append(f"-DoutputDirectory={unfinished}")
    for mode in (["-o"], []):
        done = subprocess.run(
            command + mode,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_SECONDS_MAX,
            check=False,
        )
        if done.returncode == 0:
            break
    else:
        raise ClientMissing(f"Maven could not fetch the registry: {done.stdout[-500:]}")
    (archive,) = unfinished.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(unfinished, filter="data")
    archive.unlink()
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    unfinished.rename(DIRECTORY)
    return jar


def registry_command(address: str, port: int) -> list[str]:
    """The command of a registry on this broker that answers at this port."""
    settings = {
        "apicurio.storage.kind": "kafkasql",
        "apicurio.kafkasql.bootstrap.servers": address,
        "apicurio.datasource.url": "jdbc:h2:mem:registry",
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(port),
    }
    options = [f"-D{key}={value}" for key, value in settings.items()]
    memory = [f"-Xmx{HEAP_MEGABYTES}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return ["java", *memory, *options, "-jar", str(registry_jar())]


def schema_of(*fields: str) -> str:
    """A schema of numbers; fields but the first one have a default."""
    described: list[dict[str, Any]] = [{"name": fields[0], "type": "long"}]
    described += [{"name": name, "type": "long", "default": 0} for name in fields[1:]]
    return json.dumps({"type": "record", "name": "Order", "fields": described})


class AvroTopic:
    """A topic whose values are in Avro, by way of the registry."""

    def __init__(self, address: str, port: int, topic: str) -> None:
        self.settings = {"url": f"http://127.0.0.1:{port}/apis/ccompat/v7"}
        self.address = address
        self.topic = topic

        self._context = SerializationContext(topic, MessageField.VALUE)

    def _registry(self) -> SchemaRegistryClient:
        """Make a client, which has cached nothing."""
        return SchemaRegistryClient(self.settings)

    def write(self, schema: str, values: list[dict[str, int]]) -> None:
        """Write the values, acknowledged; the schema is registered with the first one."""
        encoded = until_answered(lambda: self._encoded(schema, values))
        producer = Producer({"bootstrap.servers": self.address})
        failures: list[Any] = []
        for data in encoded:
            producer.produce(
                self.topic,
                data,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert producer.flush(PATIENCE_S) == 0
        assert failures == []

    def _encoded(self, schema: str, values: list[dict[str, int]]) -> list[bytes]:
        with self._registry() as registry:
            serializer = AvroSerializer(registry, schema)
            return [serializer(value, self._context) for value in values]

    def read(self, count: int) -> list[dict[str, int]]:
        """Read so many values from the beginning, by the schemas that the registry has."""
        settings = {"group.id": f"of-{self.topic}", "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": self.address, **settings})
        consumer.subscribe([self.topic])
        values: list[dict[str, int]] = []
        with self._registry() as registry:
            deserializer = AvroDeserializer(registry)
            for _ in tries():
                for record in consumer.consume(500, 1.0):
                    if record.error() is None:
                        values.append(deserializer(record.value(), self._context))
                if len(values) >= count:
                    break
        consumer.close()
        return values

    def versions(self) -> list[int]:
        """The versions of the schema that the registry has."""
        return until_answered(self._versions)

    def _versions(self) -> list[int]:
        with self._registry() as registry:
            return list(registry.get_versions(f"{self.topic}-value"))


def until_answered(ask: Callable[[], Result]) -> Result:
    """Ask the registry until it answers: it starts, or its broker has just been killed."""
    for _ in tries():
        try:
            return ask()
        except Exception as error:
            last = error
            time.sleep(0.2)  # another process does it
    raise AssertionError(f"the registry did not answer: {last}")
