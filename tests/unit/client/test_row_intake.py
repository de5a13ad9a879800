"""Rows of tables on their way: batches, receipts for runs of rows, and what goes wrong."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client import producer_scene
from tests.support.client.producer_scene import flush
from tests.support.client.scripted_cluster import ScriptedCluster, Seen

from tarry.base import errors
from tarry.client.core.producer.batch import ProducerBatch
from tarry.client.core.producer.core import ProducerCore
from tarry.client.core.producer.row_intake import (
    APART,
    APART_BY_TIME,
    WITH_OTHERS,
    RowIntake,
    SentRows,
)
from tarry.client.errors import BrokerError, ClientClosed
from tarry.protocol import api_keys
from tarry.protocol.messages.produce import BatchIndexAndErrorMessage
from tarry.records.from_columns import BytesColumn, RecordRows


def rows_of(*values: bytes, times: bytes | None = None) -> RecordRows:
    ends = [0]
    for value in values:
        ends.append(ends[-1] + len(value))
    places = b"".join(end.to_bytes(8, "little") for end in ends)
    column = BytesColumn(b"".join(values), places, 0, None, 0)
    return RecordRows(
        len(values), None, column, None, bytes(8 * len(values)) if times is None else times, None
    )


def numbers(rows: RecordRows) -> bytes:
    return b"".join(row.to_bytes(4, "little") for row in range(rows.row_count))


def producer(cluster: ScriptedCluster, **settings: Any) -> ProducerCore:
    core = producer_scene.producer(cluster, **settings)
    query = core.begin_topic_query("t", 5_000, cluster.now_ms)
    cluster.run_until(lambda: query.is_ready)
    query.end(cluster.now_ms)
    return core


def send(
    cluster: ScriptedCluster, rows: RecordRows, partition: int = 0, company: int = WITH_OTHERS
) -> list[SentRows]:
    """Take all rows, waiting for room as a face does."""
    core = cluster.core
    intake = RowIntake(core, "t", rows, company)
    places = numbers(rows)
    sent: list[SentRows] = []
    first = 0
    while first < rows.row_count:
        taken = intake.append(partition, places, first, cluster.now_ms)
        if taken is None:
            core.accumulator.close_all()
            buffered = core.accumulator.buffered_bytes
            cluster.run_until(lambda limit=buffered: core.accumulator.buffered_bytes < limit)
            continue
        sent.append(taken)
        first += taken.row_count
    return sent


def refused(code: int, *flawed: int) -> Any:
    def answer(cluster: ScriptedCluster, seen: Seen) -> Any:
        log = cluster.topics["t"].logs[0]
        saved = list(log.batches), log.end_offset, dict(log.producers)
        response = cluster.default(seen)
        log.batches, log.end_offset, log.producers = saved
        partition = response.responses[0].partition_responses[0]
        partition.error_code = code
        partition.record_errors = [BatchIndexAndErrorMessage(place, "flawed") for place in flawed]
        return response

    return answer


def test_rows_fill_batches_in_their_order():
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, batch_size=300)
    values = [b"%03d" % number * 10 for number in range(40)]

    sent = send(cluster, rows_of(*values))
    assert cluster.core.metrics(cluster.now_ms).buffered == 40
    flush(cluster)

    assert cluster.core.metrics(cluster.now_ms).buffered == 0
    assert log.values() == values
    assert len(sent) == len(log.batches)
    assert max(len(batch) for batch in log.batches) <= 300
    assert [rows.offset for rows in sent] == [
        sum(one.row_count for one in sent[:place]) for place in range(len(sent))
    ]
    assert cluster.core.accumulator.buffered_bytes == 0


def test_rows_go_on_in_the_batch_that_is_open():
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)

    core.append("t", 0, 1_700, None, b"before", None, now_ms=cluster.now_ms)
    (sent,) = send(cluster, rows_of(b"one", b"two"))
    flush(cluster)

    assert log.values() == [b"before", b"one", b"two"]
    assert len(log.batches) == 1
    assert (sent.offset, sent.row_count, sent.is_done) == (1, 2, True)


@pytest.mark.parametrize("company", [APART, APART_BY_TIME])
def test_rows_apart_share_no_batch_with_others(company: int):
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)
    times = b"".join(time.to_bytes(8, "little") for time in (5, 5, 6))

    core.append("t", 0, 1_700, None, b"before", None, now_ms=cluster.now_ms)
    sent = send(cluster, rows_of(b"one", b"two", b"three", times=times), company=company)
    send(cluster, rows_of(b"after"))
    flush(cluster)

    assert log.values() == [b"before", b"one", b"two", b"three", b"after"]
    assert [rows.row_count for rows in sent] == ([3] if company == APART else [2, 1])
    assert [rows.offset for rows in sent] == ([1] if company == APART else [1, 3])
    assert len(log.batches) == len(sent) + 2


def test_rows_of_many_times_wait_for_room_too():
    cluster = ScriptedCluster()
    logs = cluster.topic("t", partitions=4).logs
    core = producer(cluster, buffer_memory=1_024)
    values = [b"%03d" % number * 30 for number in range(50)]
    times = b"".join((number // 2).to_bytes(8, "little") for number in range(50))

    sent = send(cluster, rows_of(*values, times=times), -1, APART_BY_TIME)
    flush(cluster)

    assert sorted(value or b"" for log in logs for value in log.values()) == values
    assert {rows.row_count for rows in sent} <= {1, 2}
    assert len([log for log in logs if log.batches]) > 1
    assert core.accumulator.buffered_bytes == 0


class CountedTimes(bytes):
    """Timestamps of rows that count how often one of them is read."""

    reads = 0

    def __getitem__(self, place: Any) -> Any:
        CountedTimes.reads += 1
        return super().__getitem__(place)


def test_a_due_time_is_read_once_for_each_row_however_many_batches_it_fills():
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, batch_size=200)
    CountedTimes.reads = 0

    rows = rows_of(*[b"x" * 60] * 400, times=CountedTimes(bytes(8 * 400)))
    sent = send(cluster, rows, company=APART_BY_TIME)
    flush(cluster)

    assert len(log.values()) == 400
    assert len(sent) > 100
    assert CountedTimes.reads <= 2 * 400


def test_batches_of_many_times_take_room_themselves():
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster, buffer_memory=64 * 1_024)
    times = b"".join(number.to_bytes(8, "little") for number in range(1_000))
    intake = RowIntake(core, "t", rows_of(*[b""] * 1_000, times=times), APART_BY_TIME)
    places = numbers(intake.rows)

    taken = 0
    while taken < 1_000 and intake.append(0, places, taken, cluster.now_ms) is not None:
        taken += 1

    assert 0 < taken <= 64
    flush(cluster)
    assert core.accumulator.buffered_bytes == 0


def test_rows_that_may_go_anywhere_fill_one_partition_after_the_other():
    cluster = ScriptedCluster()
    logs = cluster.topic("t", partitions=4).logs
    producer(cluster, batch_size=200)
    values = [b"%03d" % number * 10 for number in range(60)]

    send(cluster, rows_of(*values), partition=-1)
    flush(cluster)

    assert sorted(value or b"" for log in logs for value in log.values()) == values
    assert len([log for log in logs if log.batches]) > 1


def test_rows_wait_for_room():
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster, batch_size=500, buffer_memory=1_024)
    values = [b"%03d" % number * 30 for number in range(50)]

    send(cluster, rows_of(*values))
    flush(cluster)

    assert log.values() == values
    assert core.accumulator.buffered_bytes == 0


def test_a_row_that_is_larger_than_a_batch_has_one_of_its_own():
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, batch_size=200)

    sent = send(cluster, rows_of(b"a", b"b" * 1_000, b"c"))
    flush(cluster)

    assert log.values() == [b"a", b"b" * 1_000, b"c"]
    assert [rows.row_count for rows in sent] == [1, 1, 1]


def test_a_batch_that_is_sent_in_halves_keeps_its_receipt():
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster)
    cluster.script(api_keys.PRODUCE, refused(errors.MESSAGE_TOO_LARGE))
    values = [b"%d" % number for number in range(8)]

    (sent,) = send(cluster, rows_of(*values))
    flush(cluster)

    assert log.values() == values
    assert (sent.is_done, sent.error, sent.offset, sent.open_place()) == (True, None, 0, -1)
    assert [count for _, _, count in sent.parts()] == [4, 4]


def test_rows_that_a_broker_refuses_are_told_and_the_others_are_sent():
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)
    cluster.script(api_keys.PRODUCE, refused(errors.INVALID_RECORD, 1, 3))

    (sent,) = send(cluster, rows_of(b"0", b"1", b"2", b"3", b"4"))
    flush(cluster)

    assert log.values() == [b"0", b"2", b"4"]
    assert isinstance(sent.error, BrokerError)
    # It was asked for, so no flush tells it again.
    assert core.take_failure() is None


def test_failed_rows_that_nobody_asked_for_are_counted():
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster)
    cluster.script(api_keys.PRODUCE, refused(errors.TOPIC_AUTHORIZATION_FAILED))

    send(cluster, rows_of(b"0", b"1", b"2"))
    flush(cluster)

    failure = core.take_failure()
    assert failure is not None
    assert failure.count == 3


def test_rows_that_failed_count_as_seen_once_though_others_are_still_under_way():
    batch = ProducerBatch("t", 0, (0,), 1_000)
    for _ in range(10):
        batch.append(0, None, b"x", None)
    first, second = SentRows(batch, 0, 7), SentRows(batch, 8, 9)
    _, half = batch.split()
    half.fail(BrokerError(errors.TOPIC_AUTHORIZATION_FAILED, "refused"))

    for _ in range(3):
        assert first.error is half.error

    assert not first.is_done
    # Those of the other receipt, which nobody asked.
    assert half.unseen_failures == second.row_count


def test_rows_on_both_sides_of_a_refused_one_count_as_seen_together():
    batch = ProducerBatch("t", 0, (0,), 1_000)
    for _ in range(10):
        batch.append(0, None, b"x", None)
    sent = SentRows(batch, 0, 9)
    rest = batch.without({4: BrokerError(errors.INVALID_RECORD, "refused")})
    assert rest is not None
    rest.fail(BrokerError(errors.TOPIC_AUTHORIZATION_FAILED, "refused"))

    assert sent.error is not None

    assert rest.unseen_failures == 0


def test_a_producer_that_failed_takes_no_rows():
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster)
    core.close(cluster.now_ms)

    with pytest.raises(ClientClosed):
        send(cluster, rows_of(b"0"))
