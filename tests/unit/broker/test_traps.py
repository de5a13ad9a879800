"""Traps of the protocol that each have cost some broker or client a bug, by their numbers.

The numbers are those of docs/explanation/protocol-traps.md; KIPs, tickets and clients are named
there and in the tests' names.  Order of answers (16) and wholeness of batches (15) are tried
further in `test_produce_and_fetch`, order of requests (19) in `test_request_order`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka.protocol.broker_version_data import (
    BROKER_API_VERSIONS,
    BrokerVersionData,
)

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tarry.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from tarry.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from tarry.protocol.messages.fetch import FetchRequest, FetchResponse
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tarry.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tarry.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tarry.protocol.messages.produce import ProduceRequest, ProduceResponse
from tarry.simulation.by_hand import BrokerByHand, ClientByHand
from tarry.wire.reader import Window

Batch = Callable[..., bytes]
Produce = Callable[..., ProduceRequest]
Fetch = Callable[..., FetchRequest]

SOFTWARE = ApiVersionsRequest("librdkafka", "2.15.0")


def raw_api_versions(client: ClientByHand, version: int) -> bytes:
    """An ApiVersions request of any version, also one that we do not have; the raw answer."""
    frame = client.encode(api_keys.API_VERSIONS, 3, SOFTWARE)
    client.send_bytes(frame[:6] + version.to_bytes(2, "big") + frame[8:])
    return client.hand.transport.sent[client.connection_id]


def ranges(client: ClientByHand, version: int = 4) -> dict[int, tuple[int, int]]:
    answer = client.ask(api_keys.API_VERSIONS, version, SOFTWARE if version >= 3 else BARE)
    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == errors.NONE
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


BARE = ApiVersionsRequest()


@pytest.mark.parametrize("version", [6, 99])
def test_trap_01_an_unknown_version_of_api_versions_is_answered_in_version_0(
    hand: BrokerByHand, version: int
) -> None:
    answer = raw_api_versions(hand.connect(), version)

    # length, correlation id, error, then the one range that the client needs to ask lower
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    assert answer[4:8] == (1).to_bytes(4, "big")
    assert answer[8:10] == (35).to_bytes(2, "big")
    assert answer[10:] == bytes([0, 0, 0, 1, 0, 18, 0, 0, 0, 5])


def test_trap_01_the_response_header_never_has_tagged_fields(hand: BrokerByHand) -> None:
    answer = raw_api_versions(hand.connect(), 3)

    assert answer[4:8] == (1).to_bytes(4, "big")
    assert answer[8:10] == bytes(2), "the error code follows the correlation id at once"


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [("a", True), ("apache-kafka.java", True), ("", False), ("-a", False), ("a b", False)],
)
@pytest.mark.parametrize("version", [3, 4])
def test_trap_02_software_names_have_a_pattern(
    hand: BrokerByHand, version: int, name: str, is_valid: bool
) -> None:
    answer = hand.connect().ask(api_keys.API_VERSIONS, version, ApiVersionsRequest(name, "1.0"))

    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == (errors.NONE if is_valid else errors.INVALID_REQUEST)


def test_trap_03_no_feature_is_told_whose_minimum_old_clients_throw_on(hand: BrokerByHand) -> None:
    told = {
        version: hand.connect().ask(api_keys.API_VERSIONS, version, SOFTWARE) for version in (3, 4)
    }

    minima = {
        version: {each.min_version for each in answer.supported_features}
        for version, answer in told.items()
        if isinstance(answer, ApiVersionsResponse)
    }
    assert 0 not in minima[3]
    assert 0 in minima[4], "KAFKA-17011: version 4 may tell of them"


def test_trap_04_a_request_that_means_another_broker_is_sent_back_to_the_bootstrap_servers(
    hand: BrokerByHand,
) -> None:
    meant = ApiVersionsRequest("apache-kafka-java", "4.4.0", "another-cluster", 1)

    answer = hand.connect().ask(api_keys.API_VERSIONS, 5, meant)

    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == errors.REBOOTSTRAP_REQUIRED


def test_trap_05_telemetry_is_not_advertised(hand: BrokerByHand) -> None:
    assert not {71, 72} & set(ranges(hand.connect()))


@pytest.mark.parametrize("version", [0, 1])
def test_trap_06_the_new_group_protocol_is_advertised_and_refused(
    hand: BrokerByHand, version: int
) -> None:
    client = hand.connect()
    known = ranges(client)

    answer = client.ask(
        api_keys.CONSUMER_GROUP_HEARTBEAT, version, ConsumerGroupHeartbeatRequest("g", "m")
    )

    assert (known[68], known[69]) == ((0, 1), (0, 1))
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert answer.error_code == errors.UNSUPPORTED_VERSION
    assert "group.protocol=classic" in (answer.error_message or "")


def test_trap_06_groups_are_described_by_the_older_request(hand: BrokerByHand) -> None:
    answer = hand.connect().ask(
        api_keys.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(["g", "", "g"])
    )

    assert isinstance(answer, ConsumerGroupDescribeResponse)
    assert [(each.group_id, each.error_code) for each in answer.groups] == [
        ("g", errors.UNSUPPORTED_VERSION),
        ("", errors.UNSUPPORTED_VERSION),
    ]


def test_trap_07_librdkafka_finds_its_features(hand: BrokerByHand) -> None:
    known = ranges(hand.connect())

    assert known[api_keys.PRODUCE][0] == 0, "or gzip, snappy and lz4 are switched off"
    assert known[api_keys.PRODUCE][1] >= 7, "zstd and records of format v2"
    assert known[api_keys.FETCH][1] >= 10, "zstd and records of format v2"
    assert api_keys.INIT_PRODUCER_ID in known, "idempotence"


def test_trap_08_fetches_of_version_12_and_later_are_served(hand: BrokerByHand) -> None:
    assert ranges(hand.connect())[api_keys.FETCH] == (4, 18)


@pytest.mark.parametrize("version", range(4, 13))
def test_trap_09_an_empty_fetch_has_records_of_no_bytes_and_not_null(
    hand: BrokerByHand, fetch: Fetch, version: int
) -> None:
    answer = hand.connect().ask(api_keys.FETCH, version, fetch(0))

    assert isinstance(answer, FetchResponse)
    records = answer.responses[0].partitions[0].records
    assert isinstance(records, Window)
    assert records.size == 0


def test_trap_09_neither_has_a_refused_partition_null_records(
    hand: BrokerByHand, fetch: Fetch
) -> None:
    answer = hand.connect().ask(api_keys.FETCH, 12, fetch(7))

    assert isinstance(answer, FetchResponse)
    assert answer.responses[0].partitions[0].error_code == errors.OFFSET_OUT_OF_RANGE
    assert isinstance(answer.responses[0].partitions[0].records, Window)


def test_trap_10_no_preferred_read_replica_is_minus_one(hand: BrokerByHand, fetch: Fetch) -> None:
    client = hand.connect()
    answers: list[Message] = [
        client.ask(api_keys.FETCH, 12, fetch(0)),
        client.ask(api_keys.FETCH, 12, fetch(7)),
        client.ask(api_keys.FETCH, 12, fetch(0, "nobody")),
    ]

    for answer in answers:
        assert isinstance(answer, FetchResponse)
        assert answer.responses[0].partitions[0].preferred_read_replica == -1


def test_trap_11_kafka_python_takes_the_broker_for_a_kafka_of_today(hand: BrokerByHand) -> None:
    known = ranges(hand.connect())

    assert BrokerVersionData(api_versions=known).broker_version >= (4, 1)


def test_trap_11_every_range_is_that_of_a_release_of_kafka(hand: BrokerByHand) -> None:
    known = ranges(hand.connect())
    releases = [BROKER_API_VERSIONS[release] for release in ((4, 1), (4, 3))]
    # Of Kafka 4.4, which kafka-python does not know yet.
    newest = {api_keys.API_VERSIONS: (0, 5), api_keys.DELETE_GROUPS: (0, 3)}

    # Real brokers advertise Produce from 0 too since KAFKA-18659; the recorded tables may not.
    known[api_keys.PRODUCE] = (releases[0][api_keys.PRODUCE][0], known[api_keys.PRODUCE][1])
    strange = {
        key: span
        for key, span in known.items()
        if span not in [*(tuple(release.get(key, ())) for release in releases), newest.get(key)]
    }
    assert strange == {}


def test_trap_12_a_client_that_never_asks_for_versions_is_served(
    hand: BrokerByHand, batch: Batch, produce: Produce
) -> None:
    answer = hand.connect().ask(api_keys.PRODUCE, 3, produce(batch(b"a")))

    assert isinstance(answer, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == errors.NONE


def test_trap_13_the_highest_version_of_api_versions_may_come_first(hand: BrokerByHand) -> None:
    assert ranges(hand.connect(), version=4) == ranges(hand.connect(), version=0)


def test_trap_14_idempotent_producers_get_an_id(hand: BrokerByHand) -> None:
    answer = hand.connect().ask(
        api_keys.INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=None)
    )

    assert isinstance(answer, InitProducerIdResponse)
    assert (answer.error_code, answer.producer_epoch) == (errors.NONE, 0)
    assert answer.producer_id >= 0


def test_trap_15_a_batch_over_the_limit_is_returned_if_it_is_the_first(
    hand: BrokerByHand, batch: Batch, produce: Produce, fetch: Fetch
) -> None:
    client = hand.connect()
    first, second = batch(b"a" * 500, b"b"), batch(b"c")
    client.ask(api_keys.PRODUCE, 11, produce(first))
    client.ask(api_keys.PRODUCE, 11, produce(second))

    answer = client.ask(api_keys.FETCH, 12, fetch(1, max_bytes=1))

    assert isinstance(answer, FetchResponse)
    records = answer.responses[0].partitions[0].records
    assert isinstance(records, Window)
    assert records.size == len(first)


def test_trap_16_answers_come_in_the_order_of_correlation_ids(
    hand: BrokerByHand, batch: Batch, produce: Produce, fetch: Fetch
) -> None:
    client = hand.connect()
    frames = client.encode(api_keys.PRODUCE, 11, produce(batch(b"a")))
    frames += client.encode(api_keys.API_VERSIONS, 0, BARE)
    frames += client.encode(api_keys.FETCH, 12, fetch(0))
    client.send_bytes(frames)
    hand.settle()

    assert [type(answer) for answer in client.answers()] == [
        ProduceResponse,
        ApiVersionsResponse,
        FetchResponse,
    ]


def test_trap_17_an_accepted_batch_has_no_record_errors_and_a_refused_one_has_a_code(
    hand: BrokerByHand, batch: Batch, produce: Produce, topic: Callable[..., None]
) -> None:
    client = hand.connect()
    topic(client, "strict", message_timestamp_before_max_ms="0")
    hand.turn(after_ms=10)

    good = client.ask(api_keys.PRODUCE, 11, produce(batch(b"a")))
    bad = client.ask(api_keys.PRODUCE, 11, produce(batch(b"a", b"b"), "strict"))

    assert isinstance(good, ProduceResponse)
    assert isinstance(bad, ProduceResponse)
    accepted = good.responses[0].partition_responses[0]
    refused = bad.responses[0].partition_responses[0]
    assert (accepted.error_code, accepted.record_errors) == (errors.NONE, [])
    assert refused.error_code == errors.INVALID_TIMESTAMP
    assert [each.batch_index for each in refused.record_errors] == [0, 1]


def test_trap_18_only_bytes_that_changed_on_their_way_are_corrupt(
    hand: BrokerByHand, batch: Batch, produce: Produce
) -> None:
    client = hand.connect()
    whole = batch(b"abc")
    changed = whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:]
    never = whole[:16] + b"\x01" + whole[17:]

    codes = []
    for data in (changed, never, whole + whole, b""):
        answer = client.ask(api_keys.PRODUCE, 11, produce(data))
        assert isinstance(answer, ProduceResponse)
        codes.append(answer.responses[0].partition_responses[0].error_code)

    assert codes == [
        errors.CORRUPT_MESSAGE,
        errors.INVALID_RECORD,
        errors.INVALID_RECORD,
        errors.INVALID_RECORD,
    ]


def test_trap_19_a_lookup_behind_a_produce_sees_its_records(
    hand: BrokerByHand, batch: Batch, produce: Produce
) -> None:
    client = hand.connect()
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    lookup = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=[asked])])
    frames = client.encode(api_keys.PRODUCE, 11, produce(batch(b"a", b"b")))
    frames += client.encode(api_keys.LIST_OFFSETS, 10, lookup)
    client.send_bytes(frames)
    hand.settle()

    _, found = client.answers()
    assert isinstance(found, ListOffsetsResponse)
    assert found.topics[0].partitions[0].offset == 2


@pytest.mark.parametrize("version", range(1, 7))
def test_trap_20_who_looks_for_a_transactions_coordinator_is_not_told_to_look_again(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture, version: int
) -> None:
    request = FindCoordinatorRequest(key="payments", key_type=1)
    if version >= 4:
        request = FindCoordinatorRequest(coordinator_keys=["payments"], key_type=1)

    answer = hand.connect().ask(api_keys.FIND_COORDINATOR, version, request)

    assert isinstance(answer, FindCoordinatorResponse)
    found = answer if version < 4 else answer.coordinators[0]
    code = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if version < 4 else errors.INVALID_REQUEST
    assert found.error_code == code
    assert "no transactions yet" in (found.error_message or "")
    (warning,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert "payments" in warning
    assert "no transactions yet" in warning


def test_trap_20_nor_is_who_asks_for_the_id_of_a_transactional_producer(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    client = hand.connect()

    for _ in range(3):
        answer = client.ask(api_keys.INIT_PRODUCER_ID, 5, InitProducerIdRequest("payments"))

    assert isinstance(answer, InitProducerIdResponse)
    assert answer.error_code == errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    # Once; the others are summed up later.
    assert [one.levelname for one in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("minimum", ["2", "99"])
def test_trap_21_a_partition_needs_no_more_replicas_in_sync_than_it_has(
    hand: BrokerByHand,
    batch: Batch,
    produce: Produce,
    topic: Callable[..., None],
    minimum: str,
) -> None:
    client = hand.connect()
    topic(client, "safe", min_insync_replicas=minimum)

    answer = client.ask(api_keys.PRODUCE, 11, produce(batch(b"a"), "safe"))

    assert isinstance(answer, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == errors.NONE


def test_trap_22_a_group_that_nobody_knows_has_settings(hand: BrokerByHand) -> None:
    resource = DescribeConfigsResource(32, "nobody", ["consumer.session.timeout.ms"])

    answer = hand.connect().ask(api_keys.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest([resource]))

    assert isinstance(answer, DescribeConfigsResponse)
    assert answer.results[0].error_code == errors.NONE
    assert [each.value for each in answer.results[0].configs] == ["45000"]


def test_trap_23_synonyms_begin_where_the_key_itself_has_a_value() -> None:
    def told(settings: dict[str, str]) -> list[tuple[str, str | None]]:
        client = BrokerByHand(settings).connect()
        resource = DescribeConfigsResource(4, "1", ["log.retention.ms"])
        request = DescribeConfigsRequest([resource], include_synonyms=True)
        answer = client.ask(api_keys.DESCRIBE_CONFIGS, 4, request)
        assert isinstance(answer, DescribeConfigsResponse)
        return [(each.name, each.value) for each in answer.results[0].configs[0].synonyms]

    hours = {"log.retention.hours": "24"}

    assert told(hours) == []
    assert told({**hours, "log.retention.ms": "5000"}) == [
        ("log.retention.ms", "5000"),
        ("log.retention.hours", "24"),
        ("log.retention.hours", "168"),
    ]


def test_trap_24_the_oldest_list_of_resources_is_that_of_client_metrics(
    hand: BrokerByHand,
) -> None:
    client = hand.connect()

    answers = [
        client.ask(api_keys.LIST_CONFIG_RESOURCES, version, ListConfigResourcesRequest(types))
        for version, types in ((0, []), (1, []), (1, [2, 99]))
    ]

    told: list[tuple[int, list[int]]] = []
    for answer in answers:
        assert isinstance(answer, ListConfigResourcesResponse)
        told.append((answer.error_code, [each.resource_type for each in answer.config_resources]))
    assert told == [
        (errors.NONE, []),
        (errors.NONE, [8, 4, 2]),
        (errors.UNSUPPORTED_VERSION, []),
    ]


def test_trap_25_a_producer_without_transactions_has_minus_one_for_what_is_of_them(
    hand: BrokerByHand, batch: Batch, produce: Produce
) -> None:
    client = hand.connect()
    client.ask(api_keys.PRODUCE, 11, produce(batch(b"a", producer_id=7, sequence=0)))

    answer = client.ask(
        api_keys.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest([TopicRequest("orders", [0])])
    )

    assert isinstance(answer, DescribeProducersResponse)
    (producer,) = answer.topics[0].partitions[0].active_producers
    assert (producer.producer_id, producer.last_sequence) == (7, 0)
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)
