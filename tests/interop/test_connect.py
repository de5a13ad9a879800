"""Kafka Connect with one worker: from a file by a topic to a file, over kills of both sides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.interop.confluent_face import confluent_admin, confluent_kafka, missing
from tests.support.interop.connect_worker import CONNECT_POM, DISTRIBUTED, ConnectWorker
from tests.support.interop.group_admin_faces import KafkaPythonGroupAdmin
from tests.support.interop.group_broker import GroupBroker
from tests.support.interop.kafka_server import KafkaUnavailable, class_path
from tests.support.patience import PATIENCE_S, tries

pytestmark = [
    pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}"),
    pytest.mark.slow,
    # Sockets that kafka-python leaves to the collector.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CLASSES = "org.apache.kafka.connect.file.FileStream"


@pytest.fixture(params=["distributed", "standalone"])
def worker(
    request: pytest.FixtureRequest, group_broker: GroupBroker, tmp_path: Path
) -> Iterator[ConnectWorker]:
    try:
        class_path(CONNECT_POM)
    except KafkaUnavailable as reason:
        pytest.skip(f"Kafka Connect cannot run here: {reason}")
    worker = ConnectWorker(request.param, group_broker.address, tmp_path)
    worker.start()
    yield worker
    worker.close()


class Files:
    """Lines go into one file and come out of the other."""

    def __init__(self, directory: Path) -> None:
        self.source = directory / "in"
        self.sink = directory / "out"
        self.source.touch()
        self.lines: list[str] = []

    def write(self, count: int) -> None:
        more = [f"line {len(self.lines) + number}" for number in range(count)]
        self.lines += more
        with self.source.open("a") as file:
            file.writelines(f"{line}\n" for line in more)

    def arrived(self) -> list[str]:
        return self.sink.read_text().splitlines() if self.sink.exists() else []


def test_lines_pass_through_a_topic_once_over_kills_of_broker_and_worker(
    worker, group_broker, tmp_path
):
    files = Files(tmp_path)
    topic = f"lines-{worker.mode}"
    admin = confluent_admin.AdminClient({"bootstrap.servers": group_broker.address, "log_level": 0})
    admin.create_topics([confluent_admin.NewTopic(topic, 1)])[topic].result(PATIENCE_S)
    source = {"connector.class": f"{CLASSES}SourceConnector", "topic": topic}
    sink = {"connector.class": f"{CLASSES}SinkConnector", "topics": topic}

    def wait_until_all_passed_and_is_committed() -> None:
        worker.wait_for(lambda: files.arrived() == files.lines, "the lines")
        size = files.source.stat().st_size
        worker.wait_for(lambda: worker.committed(f"from-{topic}") == size, "the source's offset")
        count = len(files.lines)
        worker.wait_for(lambda: worker.committed(f"to-{topic}") == count, "the sink's offset")

    files.write(20)
    worker.put_connector(f"from-{topic}", file=str(files.source), **source)
    worker.put_connector(f"to-{topic}", file=str(files.sink), **sink)
    wait_until_all_passed_and_is_committed()
    group_broker.kill()
    files.write(20)
    group_broker.start()
    wait_until_all_passed_and_is_committed()
    worker.kill()
    files.write(20)
    worker.start()
    if worker.mode == "standalone":
        # It keeps its offsets in a file, and its connectors nowhere.
        worker.put_connector(f"from-{topic}", file=str(files.source), **source)
        worker.put_connector(f"to-{topic}", file=str(files.sink), **sink)
    wait_until_all_passed_and_is_committed()

    assert files.arrived() == files.lines
    if worker.mode == "distributed":
        assert_workers_and_internal_topics_are_in_order(admin, group_broker.address)


def assert_workers_and_internal_topics_are_in_order(admin: Any, address: str) -> None:
    topics = [DISTRIBUTED[f"{what}.storage.topic"] for what in ("config", "offset", "status")]
    kind = confluent_admin.ConfigResource.Type.TOPIC
    asked = [confluent_admin.ConfigResource(kind, topic) for topic in topics]
    # librdkafka lists only groups of consumers.
    with_protocols = KafkaPythonGroupAdmin(address)
    configs = [one.result(PATIENCE_S) for one in admin.describe_configs(asked).values()]
    for _ in tries():
        found = {one["group_id"]: one for one in with_protocols.admin.list_groups()}
        workers = found[DISTRIBUTED["group.id"]]
        # A worker that stood still for longer than its session joins once more.
        if workers["group_state"] == "Stable":
            break
    with_protocols.close()

    assert [each["cleanup.policy"].value for each in configs] == ["compact"] * 3
    assert (workers["protocol_type"], workers["group_state"]) == ("connect", "Stable")
