"""Applications of others on Tarry and on Apache Kafka, whose broker is killed in the middle.

Each is given a first half of the records, then the broker is killed and started again, then comes
the second half.  What the application has made of them in the end is compared with what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.interop import applications
from tests.support.interop.applications import KEYS, Application, Traffic, read_until
from tests.support.interop.client_face import ClientMissing
from tests.support.interop.group_broker import GroupBroker, KafkaBroker, TarryBroker
from tests.support.interop.kafka_server import KafkaUnavailable, free_port

pytestmark = pytest.mark.slow

BROKERS = {"tarry": TarryBroker, "kafka": KafkaBroker}


@pytest.fixture(scope="module", params=BROKERS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GroupBroker]:
    """One broker of each kind for all applications."""
    try:
        broker = BROKERS[request.param](tmp_path_factory.mktemp(request.param))
    except KafkaUnavailable as reason:
        pytest.skip(f"Apache Kafka cannot run here: {reason}")
    yield broker
    broker.close()


class Runs:
    """Starts applications, skips what is missing, and ends all of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.running: list[Application] = []

    def start(self, make: Any, *arguments: Any) -> Application:
        try:
            command = make(*arguments)
        except ClientMissing as reason:
            pytest.skip(str(reason))
        self.running.append(Application(command, self.directory / "output"))
        return self.running[-1]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    for application in runs.running:
        application.close()


def test_kafka_streams_counts_each_record_once(broker, runs, tmp_path):
    traffic = Traffic(broker, "values", "counts")
    application = runs.start(
        applications.streams_command, broker.address, "values", "counts", tmp_path
    )

    def is_all_counted(found: dict[str, list[str]]) -> bool:
        return sum(int(counts[-1]) for counts in found.values()) >= traffic.sent

    traffic.write("values")
    read_until(broker.address, "counts", is_all_counted, application)
    traffic.kill_broker()
    traffic.write("values")
    found = read_until(broker.address, "counts", is_all_counted, application)

    # Ten last digits, each as often as any other.
    assert {digit: int(counts[-1]) for digit, counts in found.items()} == {
        str(digit): traffic.sent // 10 for digit in range(10)
    }


def test_a_faststream_application_passes_every_record_on(broker, runs):
    traffic = Traffic(broker, "orders", "orders-done")
    application = runs.start(
        applications.faststream_command, broker.address, "orders", "orders-done"
    )

    traffic.write("orders")
    read_until(broker.address, "orders-done", traffic.is_all_in, application)
    traffic.kill_broker()
    traffic.write("orders")
    found = read_until(broker.address, "orders-done", traffic.is_all_in, application)

    assert {key: set(values) for key, values in found.items()} == traffic.wanted


def test_a_processor_of_goka_keeps_every_number_in_its_table(broker, runs):
    # A processor that has failed starts anew, with what its table has for each key of a partition.
    traffic = Traffic(
        broker,
        "numbers",
        "gather-table",
        compacted=["gather-table"],
        partitioner=applications.partition_of_goka,
    )
    application = runs.start(applications.goka_command, broker.address, "numbers", "gather")

    def is_all_in_table(found: dict[str, list[str]]) -> bool:
        return {key: set(values[-1].split(",")) for key, values in found.items()} == traffic.wanted

    traffic.write("numbers")
    read_until(broker.address, "gather-table", is_all_in_table, application)
    traffic.kill_broker()
    traffic.write("numbers")
    found = read_until(broker.address, "gather-table", is_all_in_table, application)

    assert len(found) == KEYS


def test_avro_passes_by_a_schema_registry_that_has_its_schemas_on_the_broker(broker, runs):
    registry = pytest.importorskip(
        "tests.support.interop.schema_registry",
        reason="pip install 'confluent-kafka[avro]'",
        exc_type=ImportError,
    )
    traffic = Traffic(broker, "avro-orders")
    port = free_port()
    first = runs.start(registry.registry_command, broker.address, port)
    topic = registry.AvroTopic(broker.address, port, "avro-orders")
    sent = [{"number": number} for number in range(500)]
    topic.write(registry.schema_of("number"), sent)

    traffic.kill_broker()
    sent += [{"number": number, "price": 2 * number} for number in range(500, 1_000)]
    topic.write(registry.schema_of("number", "price"), sent[500:])
    first.close()
    runs.start(registry.registry_command, broker.address, port)

    assert topic.versions() == [1, 2]
    assert sorted(topic.read(len(sent)), key=lambda value: value["number"]) == sent


@pytest.fixture
def both_kinds(tmp_path: Path) -> Iterator[tuple[GroupBroker, GroupBroker]]:
    """A Tarry and an Apache Kafka of one test's own."""
    (tmp_path / "tarry").mkdir()
    tarry = TarryBroker(tmp_path / "tarry")
    try:
        kafka = KafkaBroker(tmp_path / "kafka")
    except KafkaUnavailable as reason:
        tarry.close()
        pytest.skip(f"Apache Kafka cannot run here: {reason}")
    yield tarry, kafka
    tarry.close()
    kafka.close()


def test_mirror_maker_copies_both_ways(both_kinds, runs, tmp_path):
    tarry, kafka = both_kinds
    here = Traffic(tarry, "events", "second.events")
    there = Traffic(kafka, "events", "first.events")
    application = runs.start(
        applications.mirror_command, tarry.address, kafka.address, "events", tmp_path
    )

    def pass_a_half() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        here.write("events")
        there.write("events")
        return (
            read_until(kafka.address, "first.events", here.is_all_in, application),
            read_until(tarry.address, "second.events", there.is_all_in, application),
        )

    pass_a_half()
    here.kill_broker()
    to_kafka, to_tarry = pass_a_half()

    assert {key: set(values) for key, values in to_kafka.items()} == here.wanted
    assert {key: set(values) for key, values in to_tarry.items()} == there.wanted
