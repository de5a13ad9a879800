"""Clients in hard times, by each face: Ctrl-C, no descriptors, a process that is stopped."""

from __future__ import annotations

import signal
import subprocess

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.client.programs import (
    ENVIRONMENT,
    command_of,
    make_topic,
    run_program,
    values_of,
)
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, GroupDescription

by_face = pytest.mark.parametrize("face", ["sync", "asyncio", "arrow"])


@by_face
def test_interrupts_in_every_wait_lose_and_double_nothing(
    shared_broker: BrokerProcess, face: str
) -> None:
    topic = make_topic(shared_broker, f"interrupted-{face}")

    assert run_program("interrupted.py", shared_broker.address, topic, face) == "True 400"


def test_a_second_interrupt_while_the_first_one_comes_out_leaves_the_client_usable(
    shared_broker: BrokerProcess,
) -> None:
    topic = make_topic(shared_broker, "interrupted-twice")

    assert run_program("second_interrupt.py", shared_broker.address, topic) == "2 [0, 1]"


@by_face
def test_without_descriptors_calls_say_so_and_go_on_when_there_are_some(
    shared_broker: BrokerProcess, face: str
) -> None:
    topic = make_topic(shared_broker, f"descriptors-{face}")

    assert run_program("no_descriptors.py", shared_broker.address, topic, face) == "b'taken'"


@by_face
def test_a_process_that_is_stopped_for_longer_than_its_session_hears_that_it_has_lost(
    shared_broker: BrokerProcess, face: str
) -> None:
    topic = make_topic(shared_broker, f"stopped-{face}")
    process = subprocess.Popen(
        command_of("stopped.py", shared_broker.address, topic, face),
        stdout=subprocess.PIPE,
        bufsize=0,
        env=ENVIRONMENT,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"assigned\n"
        process.send_signal(signal.SIGSTOP)
        with Admin(bootstrap_servers=shared_broker.address) as admin:

            def state() -> str:
                group = admin.describe_groups([topic])[topic]
                assert isinstance(group, GroupDescription)
                return group.state

            wait_until(lambda: "yes" if state() == "Empty" else "", "the end of the session")
        process.send_signal(signal.SIGCONT)
        rest, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()

    *heard, count = rest.split()
    # More than once on a machine that stops all by itself.
    assert heard == [b"lost", b"assigned"] * (len(heard) // 2)
    assert heard
    assert values_of(shared_broker, topic) == [b"%d" % number for number in range(int(count))]
