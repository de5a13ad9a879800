"""Clients that a fork copies: the child is refused whatever it asks, the parent notices nothing."""

from __future__ import annotations

from tests.support.broker_process import BrokerProcess
from tests.support.client.programs import make_topic, run_program, values_of


def test_forks_while_all_clients_work_cost_no_record_and_give_the_child_nothing(
    shared_broker: BrokerProcess,
) -> None:
    make_topic(shared_broker, "busy")

    told = run_program("fork_while_clients_work.py", shared_broker.address, "busy").split()

    values = values_of(shared_broker, "busy")
    sent = [[b"%d-%04d" % (thread, number) for number in range(300)] for thread in range(8)]
    assert [[one for one in values if one.startswith(b"%d-" % thread)] for thread in range(8)] == (
        sent
    )
    assert len(values) == 2_400
    # The reader has seen each record once, in order, and its last commit is behind all of them.
    assert told == ["2400", "in", "order,", "committed", "2400"]


def test_workers_of_every_kind_work_with_clients_of_their_own(shared_broker: BrokerProcess) -> None:
    make_topic(shared_broker, "workers")

    assert run_program("workers.py", shared_broker.address, "workers") == "[0, 0, 0, 0, 0]"

    values = values_of(shared_broker, "workers")
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
    shared_broker: BrokerProcess,
) -> None:
    make_topic(shared_broker, "inside")

    # In a callback of the group, in the body of an iteration, in the handler of a signal while a
    # poll waits, in a callback of the producer.
    assert run_program("fork_inside_calls.py", shared_broker.address, "inside") == "7 7 7 7"

    assert values_of(shared_broker, "inside") == [b"%d" % number for number in range(11)]
