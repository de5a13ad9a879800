"""Real cores around a real broker core in simulated time."""

from __future__ import annotations

import pytest

from tarry.base.ids import TopicPartition
from tarry.client import ClientClosed, Consumer, Listener
from tarry.testing import TarryWorld


class Places(Listener):
    """Listener that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[TopicPartition]]] = []

    def on_assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self.told.append(("assigned", places))

    def on_revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self.told.append(("revoked", places))
        consumer.commit()

    def on_lost(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self.told.append(("lost", places))


def test_records_survive_a_loss_of_power() -> None:
    world = TarryWorld()
    world.topic("orders", partitions=2)
    world.send("orders", b"one", b"two")

    world.lose_power()

    assert sorted(record.value or b"" for record in world.records("orders")) == [b"one", b"two"]
    world.close()


def test_two_members_share_partitions_and_a_killed_one_gives_them_up() -> None:
    world = TarryWorld()
    world.topic("orders", partitions=2)
    world.send("orders", *[b"%d" % number for number in range(10)])
    places = Places()
    first = world.consumer("orders", group_id="readers", listener=places)
    assert len(first.read(10)) == 10

    second = world.consumer("orders", group_id="readers")
    while len(first.assignment()) != 1 or len(second.assignment()) != 1:
        first.poll(0.5)
        second.poll(0.5)
    second.kill()
    while len(first.assignment()) != 2:
        first.poll(0.5)

    assert places.told[:2] == [
        ("assigned", [("orders", 0), ("orders", 1)]),
        ("revoked", [("orders", 0), ("orders", 1)]),
    ]
    world.close()


def test_minutes_pass_without_waiting() -> None:
    world = TarryWorld()
    world.topic("orders", retention_ms=60_000)
    world.send("orders", b"one")

    world.run("6m")

    assert world.records("orders") == []
    world.close()


def test_faults_are_those_of_a_broker_in_a_thread() -> None:
    world = TarryWorld()
    world.topic("orders")
    fault = world.fail("Produce", code="NOT_LEADER_OR_FOLLOWER", times=2)
    producer = world.producer()

    producer.send("orders", b"one")
    producer.flush()
    world.cut()
    world.delay("Produce", 200)
    receipt = producer.send("orders", b"two")

    assert fault.count == 2
    # The producer gave the slow answer up after 30 s and asked again.
    assert producer.result(receipt).offset == 1
    assert [record.value for record in world.records("orders")] == [b"one", b"two"]
    world.close()


def test_a_seed_gives_the_same_run() -> None:
    def run(seed: int) -> tuple[int, str]:
        world = TarryWorld(seed=seed)
        world.send("orders", b"one")
        world.kill_broker()
        world.pause_broker("5s")
        world.send("orders", b"two")
        return world.now_ms, world.world.trace.digest()

    assert run(7) == run(7)
    assert run(7) != run(8)


def test_a_consumer_commits_closes_and_another_goes_on() -> None:
    world = TarryWorld()
    world.send("orders", b"one", b"two", b"three")
    first = world.consumer("orders", group_id="readers", enable_auto_commit=False)
    (read,) = first.read(1)
    first.commit(read)
    first.close()

    second = world.consumer("orders", group_id="readers")

    assert [record.value for record in second.read(2)] == [b"two", b"three"]
    listed = world.admin.ask(world.admin.requests.list_topics())
    assert [topic.name for topic in listed] == ["__consumer_offsets", "orders"]
    with pytest.raises(ClientClosed, match="consumer2 is closed or killed"):
        first.poll()
    world.close()


def test_a_stopped_process_loses_its_session_and_is_told() -> None:
    world = TarryWorld()
    world.set_delay("50ms")
    world.send("orders", b"one")
    places = Places()
    consumer = world.consumer("orders", group_id="readers", listener=places)
    consumer.read(1)

    consumer.stall(60_000)
    world.run("61s")
    while len(places.told) < 3:
        consumer.poll()

    assert [what for what, _ in places.told] == ["assigned", "lost", "assigned"]
    world.close()


def test_what_does_not_happen_is_told() -> None:
    world = TarryWorld()
    world.send("orders", b"one")
    consumer = world.consumer("orders", group_id="readers")

    with pytest.raises(AssertionError, match="1 of 2 records came within 5 s"):
        consumer.read(2, timeout=5)
    with pytest.raises(AssertionError, match="it did not happen within 2s"):
        world.run_until(lambda: False, "2s")
    world.close()
