"""`delay.replace=key`: the key of a record that waits is its id."""

from __future__ import annotations

import pytest
from tests.support.broker.admin_user import TOPIC, Operator
from tests.support.broker.broker_user import ORDERS, records_in
from tests.support.broker.schedule_user import ScheduleUser

from tarry.base import errors
from tarry.base.limits import SCHEDULE_ID_BYTES_MAX
from tarry.protocol.messages.produce import PartitionProduceResponse
from tarry.records import BatchBuilder
from tarry.records.builder import Headers
from tarry.wire.compression import GZIP

LATER_MS = 3_000

Sent = tuple[bytes | None, bytes, int]


class KeyUser(ScheduleUser):
    """A user of a topic that names what waits by its keys."""

    def __init__(self, source: str = "header", **topic: str) -> None:
        settings = {"delay_source": source, "delay_replace": "key", **topic}
        if source == "none":
            settings["delay_default_ms"] = str(LATER_MS)
        super().__init__(**settings)
        self.source = source

    def send(
        self, *records: Sent, codec: int = 0, headers: Headers | None = None
    ) -> PartitionProduceResponse:
        """One batch: key, value, and after how long each record is due."""
        builder = BatchBuilder()
        for key, value, after_ms in records:
            found = list(headers or [])
            if self.source == "header" and after_ms:
                found.append(("x-deliver-after", b"%d" % after_ms))
            at_ms = self.hand.now_wall_ms + after_ms
            builder.append(at_ms, key, value, found)
        return self.produce(builder.build(codec))

    def cancel_key(self, key: bytes, after_ms: int = 0) -> PartitionProduceResponse:
        """Take back what has this key, by a record that never appears."""
        return self.send((key, b"back", after_ms), headers=[("x-sched-cancel", b"1")])


SOURCES = pytest.mark.parametrize("source", ["header", "timestamp", "none"])
ENDS = pytest.mark.parametrize("ends", ["", "stop", "crash", "fail-over"])


@SOURCES
@ENDS
def test_a_record_that_is_to_wait_replaces_the_one_with_its_key(source: str, ends: str):
    user = KeyUser(source)
    user.send((b"k", b"first", LATER_MS), (b"other", b"other", LATER_MS))
    user.end(ends)

    answer = user.send((b"k", b"second", LATER_MS))
    user.end(ends)
    user.pass_time(LATER_MS)

    assert (answer.error_code, answer.base_offset) == (errors.NONE, -1)
    assert sorted(value or b"" for value in user.values()) == [b"other", b"second"]


@SOURCES
@pytest.mark.parametrize("codec", [0, GZIP])
def test_of_the_same_key_twice_in_a_batch_the_later_record_wins(source: str, codec: int):
    user = KeyUser(source)
    records = [(b"k", b"a", LATER_MS), (b"j", b"b", LATER_MS), (b"k", b"c", LATER_MS)]

    user.send(*records, codec=codec)
    user.pass_time(LATER_MS)

    assert user.values() == [b"b", b"c"]


@SOURCES
@ENDS
def test_a_record_is_taken_back_by_its_key(source: str, ends: str):
    user = KeyUser(source)
    user.send((b"k", b"a", LATER_MS))
    user.end(ends)

    answer = user.cancel_key(b"k")
    unknown = user.cancel_key(b"nobody")
    user.end(ends)
    user.pass_time(LATER_MS)

    assert (answer.error_code, unknown.error_code) == (errors.NONE, errors.NONE)
    assert user.values() == []


@pytest.mark.parametrize("source", ["header", "timestamp"])
def test_a_record_that_is_due_at_once_replaces_nothing(source: str):
    user = KeyUser(source)
    user.send((b"k", b"waits", LATER_MS))

    answer = user.send((b"k", b"now", 0))
    user.pass_time(LATER_MS)

    assert answer.base_offset == 0
    assert user.values() == [b"now", b"waits"]


@SOURCES
@pytest.mark.parametrize("key", [None, b""])
def test_records_without_a_key_replace_nothing(source: str, key: bytes | None):
    user = KeyUser(source)

    for value in (b"a", b"b"):
        user.send((key, value, LATER_MS))
    user.pass_time(LATER_MS)

    assert user.values() == [b"a", b"b"]


@SOURCES
def test_a_key_that_is_too_long_for_an_id_is_refused(source: str):
    user = KeyUser(source)
    longest = b"k" * SCHEDULE_ID_BYTES_MAX

    taken = user.send((longest, b"a", LATER_MS))
    refused = user.send((b"k", b"a", LATER_MS), (longest + b"k", b"a", LATER_MS))

    assert taken.error_code == errors.NONE
    assert refused.error_code == errors.INVALID_RECORD
    assert [each.batch_index for each in refused.record_errors] == [1]
    assert "delay.replace=key" in str(refused.error_message)


def test_an_id_of_a_record_counts_in_place_of_its_key():
    user = KeyUser()
    user.send((b"k", b"a", LATER_MS), headers=[("x-sched-id", b"one")])

    user.send((b"k", b"b", LATER_MS))
    user.send((b"j", b"c", LATER_MS), headers=[("x-sched-id", b"one")])
    user.pass_time(LATER_MS)

    assert user.values() == [b"b", b"c"]


@SOURCES
def test_what_waits_is_listed_and_cancelled_by_its_key(source: str):
    user = KeyUser(source)
    user.send((b"k", b"a", LATER_MS), (b"j", b"b", LATER_MS))

    listed = user.waiting()
    outcomes = [user.cancel("k"), user.cancel("k")]
    user.pass_time(LATER_MS)

    assert sorted(schedule_id or b"" for _, schedule_id in listed) == [b"j", b"k"]
    assert outcomes == ["cancelled", "unknown"]
    assert user.values() == [b"b"]


@SOURCES
def test_what_waits_is_taken_back_by_its_key_though_nothing_more_is_delayed(source: str):
    user = KeyUser(source)
    user.send((b"k", b"a", LATER_MS))
    operator = Operator(user.hand)
    operator.set(TOPIC, ORDERS, delay_enable="false", delay_source="none", delay_replace="key")

    user.cancel_key(b"k")
    user.pass_time(LATER_MS)

    assert user.values() == []


def test_a_cancelled_key_can_be_used_again():
    user = KeyUser()
    user.send((b"k", b"a", LATER_MS))
    user.cancel_key(b"k")

    user.send((b"k", b"b", LATER_MS))
    user.pass_time(LATER_MS)

    assert [each.value for each in records_in(user.fetch(0))] == [b"b"]
