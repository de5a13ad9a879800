"""What a producer does about leaders that move and about each error code."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.consumer_scene import by_default
from tests.support.client.producer_scene import flush, producer, refusing, send, sent_batches
from tests.support.client.scripted_cluster import CUT, ScriptedCluster, Seen

from tarry.base import errors
from tarry.client.core.metadata import LeaderHint
from tarry.client.errors import ProducerFailed, RecordTooLarge
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.messages.init_producer_id import InitProducerIdResponse
from tarry.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

# --- The way there


def test_a_moved_leader_is_found_by_a_refresh() -> None:
    cluster = ScriptedCluster(brokers=2)
    topic = cluster.topic("t")
    producer(cluster)
    send(cluster, b"1")
    flush(cluster)
    topic.logs[0].leader_id = 2
    topic.logs[0].leader_epoch = 1

    receipt = send(cluster, b"2")
    cluster.run_until(lambda: receipt.is_done, 5_000)

    assert receipt.offset == 1
    assert [seen.broker_id for seen in cluster.requests(api_keys.PRODUCE)] == [1, 1, 2]


def test_nothing_goes_to_a_new_leader_while_the_old_one_may_still_take_a_batch() -> None:
    cluster = ScriptedCluster(brokers=2)
    topic = cluster.topic("t")
    core = producer(cluster, enable_idempotence=False)
    send(cluster, b"0")
    flush(cluster)

    def slow(cluster: ScriptedCluster, seen: Seen) -> Any:
        return 2_000, cluster.default(seen)

    cluster.script(api_keys.PRODUCE, slow)
    first = send(cluster, b"1")
    cluster.run_until(lambda: len(cluster.requests(api_keys.PRODUCE)) == 2)
    topic.logs[0].leader_id = 2
    topic.logs[0].leader_epoch = 1
    assert core.metadata.set_leader(LeaderHint("t", 0, 2, 1, None))
    send(cluster, b"2")
    cluster.run_for(500)

    assert not first.is_done
    assert len(cluster.requests(api_keys.PRODUCE)) == 2
    flush(cluster)
    assert topic.logs[0].values() == [b"0", b"1", b"2"]


def test_a_leader_named_in_the_answer_is_followed_at_once() -> None:
    cluster = ScriptedCluster(brokers=2)
    topic = cluster.topic("t")
    producer(cluster)
    send(cluster, b"1")
    flush(cluster)
    topic.logs[0].leader_id = 2
    topic.logs[0].leader_epoch = 1

    def pointing(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = refusing(errors.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(2, 1))(
            cluster, seen
        )
        response.node_endpoints = [NodeEndpoint(2, "10.0.0.2", 9092, None)]
        return response

    cluster.script(api_keys.PRODUCE, pointing)
    metadata_before = len(cluster.requests(api_keys.METADATA))
    receipt = send(cluster, b"2")
    started_ms = cluster.now_ms
    cluster.run_until(lambda: receipt.is_done, 5_000)

    assert receipt.offset == 1
    assert cluster.now_ms - started_ms < 50
    assert len(cluster.requests(api_keys.METADATA)) == metadata_before


def test_a_batch_that_is_too_large_is_sent_in_halves() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)
    cluster.script(
        api_keys.PRODUCE, refusing(errors.MESSAGE_TOO_LARGE), refusing(errors.MESSAGE_TOO_LARGE)
    )

    receipts = [send(cluster, b"%d" % number) for number in range(8)]
    flush(cluster)

    assert log.values() == [b"%d" % number for number in range(8)]
    assert [receipt.offset for receipt in receipts] == list(range(8))
    assert sent_batches(cluster) == [(0, 8, 0), (0, 4, 0), (0, 2, 0), (2, 2, 0), (4, 4, 0)]
    assert core.accumulator.buffered_bytes == 0


def test_a_single_record_that_is_too_large_says_so() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster)
    sentence = "the limit is 10 bytes"
    cluster.script(api_keys.PRODUCE, refusing(errors.MESSAGE_TOO_LARGE, error_message=sentence))

    receipt = send(cluster, b"x" * 100)
    cluster.run_until(lambda: receipt.is_done)

    error = receipt.error
    assert isinstance(error, RecordTooLarge)
    assert sentence in str(error)


def test_after_a_refused_batch_the_sequence_goes_on_without_a_gap() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster)
    cluster.script(api_keys.PRODUCE, by_default, refusing(errors.MESSAGE_TOO_LARGE), by_default)

    for value in (b"1", b"too large", b"2"):
        send(cluster, value)
        flush(cluster)

    assert log.values() == [b"1", b"2"]
    assert sent_batches(cluster) == [(0, 1, 0), (1, 1, 0), (1, 1, 0)]
    assert len(cluster.requests(api_keys.INIT_PRODUCER_ID)) == 1


def test_a_broker_that_lost_count_gets_a_new_producer_id_and_every_record_once() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, batch_size=150)
    send(cluster, b"before")
    flush(cluster)
    log.producers = {pid: (epoch, [(500, 1, 0)]) for pid, (epoch, _) in log.producers.items()}

    receipts = [send(cluster, b"%d" % number + b"x" * 100) for number in range(6)]
    flush(cluster)

    assert [(value or b"")[:1] for value in log.values()[1:]] == [b"%d" % n for n in range(6)]
    assert all(receipt.error is None for receipt in receipts)
    assert len(cluster.requests(api_keys.INIT_PRODUCER_ID)) == 2


def test_an_unknown_producer_id_is_answered_with_a_new_one() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster)
    cluster.script(api_keys.PRODUCE, refusing(errors.UNKNOWN_PRODUCER_ID))

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert receipt.error is None
    assert log.values() == [b"x"]


def test_a_failed_record_in_the_middle_does_not_hold_up_those_behind_it() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, batch_size=150)
    cluster.script(api_keys.PRODUCE, by_default, refusing(errors.TOPIC_AUTHORIZATION_FAILED))

    receipts = [send(cluster, b"%d" % number + b"x" * 100) for number in range(6)]
    flush(cluster)

    failed = [receipt.error is not None for receipt in receipts]
    assert failed == [False, True, False, False, False, False]
    assert [(value or b"")[:1] for value in log.values()] == [b"0", b"2", b"3", b"4", b"5"]


def test_a_duplicate_counts_as_written_without_an_offset() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster)
    cluster.script(api_keys.PRODUCE, refusing(errors.DUPLICATE_SEQUENCE_NUMBER))

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert (receipt.error, receipt.offset) == (None, -1)
    assert not receipt.is_parked


def parking(cluster: ScriptedCluster, seen: Seen) -> ProduceResponse:
    """Answer as a broker that has the batch and keeps it until it is due."""
    answer = PartitionProduceResponse(0, errors.NONE, -1, s_offset=40)
    topic_id = cluster.topics["t"].topic_id
    return ProduceResponse([TopicProduceResponse("t", topic_id, [answer])])


def test_a_record_whose_place_in_the_companion_log_is_told_is_parked() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster)
    cluster.script(api_keys.PRODUCE, parking)

    parked = send(cluster, b"later")
    assert not parked.is_parked
    cluster.run_until(lambda: parked.is_done)
    stored = send(cluster, b"now")
    cluster.run_until(lambda: stored.is_done)

    assert [one.is_parked for one in (parked, stored)] == [True, False]
    assert [one.offset for one in (parked, stored)] == [-1, 0]
    assert [one.s_offset for one in (parked, stored)] == [40, -1]
    assert repr(parked) == "<Receipt t [0] is parked until it is due>"


def test_a_record_that_was_taken_without_an_offset_may_be_anywhere() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster)

    def silent(cluster: ScriptedCluster, seen: Seen) -> ProduceResponse:
        response = parking(cluster, seen)
        response.responses[0].partition_responses[0].s_offset = -1
        return response

    cluster.script(api_keys.PRODUCE, silent)
    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert (receipt.offset, receipt.is_parked) == (-1, False)


def test_without_acknowledgements_nothing_is_known_to_be_parked() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster, acks="0", enable_idempotence=False)

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert (receipt.offset, receipt.is_parked) == (-1, False)


@pytest.mark.parametrize("code", [errors.INVALID_PRODUCER_EPOCH, errors.PRODUCER_FENCED])
def test_a_fenced_producer_fails_everything_and_takes_nothing_more(code: int) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t", partitions=2)
    core = producer(cluster, linger_ms=1_000)
    send(cluster, b"0")
    flush(cluster)
    cluster.script(api_keys.PRODUCE, refusing(code))
    first = send(cluster, b"1")
    core.begin_wait(first, 300_000, cluster.now_ms)
    second = send(cluster, b"2", partition=1)

    cluster.run_until(lambda: first.is_done)

    assert isinstance(first.error, ProducerFailed)
    assert isinstance(second.error, ProducerFailed)
    with pytest.raises(ProducerFailed):
        send(cluster, b"3")


def test_single_records_that_are_refused_do_not_take_their_neighbours_along() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)
    flaws = [BatchIndexAndErrorMessage(1, "no key"), BatchIndexAndErrorMessage(3, None)]
    cluster.script(
        api_keys.PRODUCE,
        refusing(errors.INVALID_RECORD, record_errors=flaws, error_message="compacted topic"),
    )

    receipts = [send(cluster, b"%d" % number) for number in range(5)]
    flush(cluster)

    assert log.values() == [b"0", b"2", b"4"]
    assert [receipt.offset for receipt in receipts] == [0, -1, 1, -1, 2]
    assert "no key" in str(receipts[1].error)
    assert "compacted topic" in str(receipts[3].error)
    assert core.take_failure() is None


def test_records_behind_refused_ones_are_counted_on_correctly() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster)
    flaws = [BatchIndexAndErrorMessage(0, "bad")]
    cluster.script(api_keys.PRODUCE, refusing(errors.INVALID_TIMESTAMP, record_errors=flaws))

    send(cluster, b"0")
    send(cluster, b"1")
    flush(cluster)
    send(cluster, b"2")
    flush(cluster)

    assert log.values() == [b"1", b"2"]
    assert len(cluster.requests(api_keys.INIT_PRODUCER_ID)) == 1


def test_a_producer_id_that_is_refused_ends_the_producer() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    cluster.script(
        api_keys.INIT_PRODUCER_ID,
        lambda cluster, seen: InitProducerIdResponse(0, errors.CLUSTER_AUTHORIZATION_FAILED),
    )
    producer(cluster)

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert "CLUSTER_AUTHORIZATION_FAILED" in str(receipt.error)
    assert "enable.idempotence=false" in str(receipt.error)


def test_a_producer_id_that_is_not_there_yet_is_asked_again() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    cluster.script(
        api_keys.INIT_PRODUCER_ID,
        lambda cluster, seen: InitProducerIdResponse(0, errors.COORDINATOR_LOAD_IN_PROGRESS),
        lambda cluster, seen: CUT,
    )
    producer(cluster)

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert receipt.error is None


@pytest.mark.parametrize("code", sorted(errors.ERRORS))
def test_every_error_code_ends_in_a_delivery_or_in_an_error(code: int) -> None:
    """No code hangs, and none is taken for success that is not."""
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster)
    if code != errors.NONE:
        cluster.script(api_keys.PRODUCE, refusing(code))

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done, 10_000)

    if receipt.error is None and code != errors.DUPLICATE_SEQUENCE_NUMBER:
        assert log.values() == [b"x"]
        assert receipt.offset == 0
    elif receipt.error is not None:
        assert isinstance(receipt.error, ClientError)
        assert errors.error_name(code) in str(receipt.error)
        assert not errors.ERRORS[code].refreshes


def test_a_lost_connection_without_idempotence_is_repeated_as_well() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, enable_idempotence=False)
    cluster.script(api_keys.PRODUCE, lambda cluster, seen: CUT)

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert receipt.offset == 0
    assert log.values() == [b"x"]


def test_sequences_begin_again_at_zero_after_the_largest_number() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)
    send(cluster, b"0")
    flush(cluster)
    queue = core.accumulator.queue("t", 0)
    queue.next_sequence = 0x7FFF_FFFF
    epoch = log.producers[queue.producer_id][0]
    log.producers[queue.producer_id] = (epoch, [(0x7FFF_FFFE, 1, 0)])

    for value in (b"1", b"2"):
        send(cluster, value)
    flush(cluster)
    send(cluster, b"3")
    flush(cluster)

    assert log.values() == [b"0", b"1", b"2", b"3"]
    assert sent_batches(cluster)[-2:] == [(0x7FFF_FFFF, 2, 0), (1, 1, 0)]


def test_a_refusal_that_may_pass_is_told_as_trouble_until_a_batch_is_taken() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster)
    cluster.rule(api_keys.PRODUCE, refusing(errors.NOT_ENOUGH_REPLICAS))
    receipt = send(cluster, b"a")

    cluster.run_for(5_000)

    assert not receipt.is_done
    assert "NOT_ENOUGH_REPLICAS" in core.trouble(cluster.now_ms)
    assert core.sender.settled == 0

    cluster.rule(api_keys.PRODUCE, None)
    flush(cluster)

    assert core.trouble(cluster.now_ms) == ""
    assert core.sender.settled == 1


@pytest.mark.parametrize(
    ("code", "leader_id"), [(errors.NONE, 1), (errors.LEADER_NOT_AVAILABLE, -1)]
)
def test_a_broker_that_knows_no_newer_leader_is_not_the_only_one_that_is_asked(
    code: int, leader_id: int
) -> None:
    """One that is cut off from the others names itself, and refuses what it leads, or nobody."""
    cluster = ScriptedCluster(brokers=3)
    log = cluster.topic("t", leader_id=2).logs[0]
    log.leader_epoch = 1

    def metadata(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.metadata(seen)
        if seen.broker_id == 1:
            partition = answer.topics[0].partitions[0]
            partition.leader_id, partition.leader_epoch = leader_id, 0
            partition.error_code = code
        return answer

    cluster.rule(api_keys.METADATA, metadata)
    producer(cluster)

    receipt = send(cluster, b"a")
    cluster.run_until(lambda: receipt.is_done, 10_000)

    assert receipt.error is None
    assert log.values() == [b"a"]
