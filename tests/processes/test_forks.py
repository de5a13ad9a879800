"""Clients that a fork copies: the child is refused whatever it asks, the parent notices nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, Consumer, NewTopic

PROGRAMS = Path(__file__).resolve().parents[1] / "support" / "processes"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    process.start({"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"})
    yield process
    process.close()


def run(program: str, *words: str) -> str:
    """What a program of `tests/support/processes` prints; it ends well and complains of nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAMS / program), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def values_of(broker: BrokerProcess, topic: str) -> list[bytes]:
    """All values of partition 0."""
    found: list[bytes] = []
    with Consumer(bootstrap_servers=broker.address) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([(topic, 0)])[topic, 0]
        while consumer.position(topic, 0) < end:
            for group in consumer.poll(1.0):
                found += [record.value or b"" for record in group.records]
    return found


def test_forks_while_all_clients_work_cost_no_record_and_give_the_child_nothing(
    broker: BrokerProcess,
) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_topics([NewTopic("busy", 1)])

    told = run("fork_while_clients_work.py", broker.address, "busy").split()

    values = values_of(broker, "busy")
    sent = [[b"%d-%04d" % (thread, number) for number in range(300)] for thread in range(8)]
    assert [[one for one in values if one.startswith(b"%d-" % thread)] for thread in range(8)] == (
        sent
    )
    assert len(values) == 2_400
    # The reader has seen each record once, in order, and its last commit is behind all of them.
    assert told == ["2400", "in", "order,", "committed", "2400"]


def test_workers_of_every_kind_work_with_clients_of_their_own(broker: BrokerProcess) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_topics([NewTopic("workers", 1)])

    assert run("workers.py", broker.address, "workers") == "[0, 0, 0, 0, 0]"

    values = values_of(broker, "workers")
    numbers = [one for one in values if one.isdigit()]
    assert numbers == [b"%d" % number for number in range(len(numbers))]
    assert (values[0], values[-1]) == (b"first", b"last")
    assert sorted(set(values[1:-1]) - set(numbers)) == [
        b"fork, refused",
        b"forkserver",
        b"preforked 0, refused",
        b"preforked 1, refused",
        b"spawn",
    ]


def test_a_child_that_was_forked_inside_a_call_is_refused_when_the_call_goes_on(
    broker: BrokerProcess,
) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_topics([NewTopic("inside", 1)])

    # In a callback of the group, in the body of an iteration, in the handler of a signal while a
    # poll waits, in a callback of the producer.
    assert run("fork_inside_calls.py", broker.address, "inside") == "7 7 7 7"

    assert values_of(broker, "inside") == [b"%d" % number for number in range(11)]
