"""Quota of what waits: in one partition by its topic, in all of a broker by its own setting."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch
from tests.support.broker.schedule_user import ScheduleUser, cancel

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.api_versions import ApiVersionsRequest
from tarry.protocol.messages.produce import ProduceResponse
from tarry.records.batch import LENGTH
from tarry.simulation.by_hand import BrokerByHand

LARGE = b"." * 1_000
# Room for four batches, and no more.
QUOTA = "5000"


def in_an_hour(schedule_id: str = "") -> bytes:
    headers: list[tuple[str, bytes | None]] = [("x-deliver-after", b"1h")]
    if schedule_id:
        headers.append(("x-sched-id", schedule_id.encode()))
    return a_batch(LARGE, headers=(headers,))


def full(**topic: str) -> ScheduleUser:
    """A user of a topic in which nothing more may wait."""
    user = ScheduleUser(**{"delay_pending_max_bytes": QUOTA, **topic})
    for number in range(4):
        user.produce(in_an_hour(f"id-{number}"))
        user.pass_time(1_000)
    return user


def test_a_batch_beyond_the_quota_is_refused_with_its_setting():
    user = full()

    answer = user.produce(in_an_hour())

    assert answer.error_code == errors.POLICY_VIOLATION
    assert answer.error_message is not None
    assert "delay.pending.max.bytes is 5000" in answer.error_message
    assert user.list(due_until_ms=2**63 - 1).entry_count == 4


def test_what_is_due_at_once_is_taken_as_ever():
    user = full()

    answer = user.produce(a_batch(LARGE))

    assert (answer.error_code, answer.base_offset) == (errors.NONE, 0)


@pytest.mark.parametrize("ends", ["", "stop", "crash", "fail-over"])
def test_the_quota_holds_over_the_ends_of_brokers(ends: str):
    user = full()

    user.end(ends)
    code = user.produce(in_an_hour()).error_code
    user.pass_time(3_600_000)
    user.pass_time(1_000)
    code_later = user.produce(in_an_hour()).error_code

    assert code == errors.POLICY_VIOLATION
    assert code_later == errors.NONE


def test_a_cancel_makes_room():
    user = full()

    user.change(cancel("id-1"))

    assert user.produce(in_an_hour()).error_code == errors.NONE


def test_what_waits_is_taken_back_and_replaced_at_the_quota():
    user = full()
    headers = [("x-sched-id", b"id-1"), ("x-sched-cancel", b"1")]

    replaced = user.produce(in_an_hour("id-0"))
    user.pass_time(1_000)
    cancelled = user.produce(a_batch(b"", headers=(headers,)))

    assert (replaced.error_code, cancelled.error_code) == (errors.NONE, errors.NONE)
    assert user.produce(in_an_hour()).error_code == errors.NONE


def test_a_batch_of_several_times_counts_by_what_waits_of_it():
    user = ScheduleUser(delay_pending_max_bytes=QUOTA)

    few = user.produce_scheduled(*[(LARGE, 60_000 + n, "") for n in range(4)])
    many = user.produce_scheduled(*[(LARGE, 60_000 + n, "") for n in range(4)])

    assert (few.error_code, many.error_code) == (errors.NONE, errors.POLICY_VIOLATION)


def test_before_what_waits_is_read_the_size_of_its_log_counts():
    user = full()
    user.hand.crash()
    user.client = user.hand.connect()

    user.send_produce(in_an_hour())
    (answer,) = user.answers()
    user.hand.settle()

    assert isinstance(answer, ProduceResponse)
    (row,) = answer.responses[0].partition_responses
    # Its client sends it again.
    assert row.error_code == errors.KAFKA_STORAGE_ERROR
    assert user.produce(in_an_hour()).error_code == errors.POLICY_VIOLATION


def test_the_quota_of_a_broker_is_that_of_all_its_partitions():
    user = User(BrokerByHand({"delay.pending.total.max.bytes": QUOTA}))
    user.create(ORDERS, delay_enable="true", delay_source="header")
    user.create("others", delay_enable="true", delay_source="header")
    codes = []

    for topic in (ORDERS, "others", ORDERS, "others", ORDERS):
        answer = user.produce(in_an_hour(), topic=topic)
        codes.append(answer.error_code)
        user.hand.turn(after_ms=1_000)
        user.hand.settle()
    user.delete("others")
    freed = user.produce(in_an_hour())

    assert codes == [errors.NONE] * 4 + [errors.POLICY_VIOLATION]
    assert answer.error_message is not None
    assert "delay.pending.total.max.bytes is 5000" in answer.error_message
    assert freed.error_code == errors.NONE


def test_a_partition_that_cannot_be_read_takes_no_room_from_others():
    user = User(BrokerByHand({"delay.pending.total.max.bytes": QUOTA}))
    user.create(ORDERS, delay_enable="true", delay_source="header")
    user.create("others", delay_enable="true", delay_source="header")
    soon: list[tuple[str, bytes | None]] = [("x-deliver-after", b"1s")]
    user.produce(a_batch(b"soon", headers=(soon,)))
    for _ in range(3):
        user.produce(in_an_hour())
    user.hand.turn(after_ms=1_000)
    user.hand.settle()
    user.hand.stop()
    user.hand.disk.flip_bit("orders-0/00000000000000000000.log", LENGTH + 2)
    user.hand.start()
    user.client = user.hand.connect()
    user.hand.settle()

    refused = user.produce(in_an_hour())
    codes = []
    for _ in range(5):
        codes.append(user.produce(in_an_hour(), topic="others").error_code)
        user.hand.turn(after_ms=1_000)
        user.hand.settle()

    assert refused.error_code == errors.KAFKA_STORAGE_ERROR
    assert codes == [errors.NONE] * 4 + [errors.POLICY_VIOLATION]


def test_near_the_quota_answers_ask_for_a_pause_and_the_connection_has_one():
    user = ScheduleUser(delay_pending_max_bytes="4500")
    throttled = []
    for _ in range(4):
        user.send_produce(in_an_hour())
        user.hand.settle()
        (answer,) = user.answers()
        assert isinstance(answer, ProduceResponse)
        throttled.append(answer.throttle_time_ms)

    user.client.send(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
    answers = []
    for after_ms in (0, throttled[-1] - 1, 1):
        user.hand.turn(after_ms=after_ms)
        user.hand.settle()
        answers.append(len(user.answers()))

    assert throttled[:3] == [0, 0, 0]
    assert 0 < throttled[3] <= 1_000
    assert answers == [0, 0, 1]
