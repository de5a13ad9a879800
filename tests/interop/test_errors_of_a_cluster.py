"""What a client is told whose partition moves, rests or loses records, and how it goes on.

Recorders before the brokers say what real clients were told; every test waits for just that.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
from tests.support.broker_process import wait_until
from tests.support.interop.answer_recorder import Told
from tests.support.interop.confluent_face import confluent_kafka, missing
from tests.support.interop.java_face import JavaFace, JavaProducer, JavaProgram, record_of
from tests.support.interop.records_sent import SentRecord
from tests.support.interop.watched_cluster import IMPATIENT, WatchedCluster
from tests.support.patience import PATIENCE_S, tries
from tests.support.raw_client import RawClient, one_batch, produce_request

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tarry.protocol.messages.produce import ProduceResponse

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}"),
]

ALL: Final = [1, 2, 3]
LATEST: Final = -1
# A port at which nobody listens.
NOBODY: Final = 1
# Nobody asks for metadata by itself within a test.
AN_HOUR: Final = 3_600_000
NEVER: Final = {"metadata.max.age.ms": str(AN_HOUR)}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedCluster]:
    with WatchedCluster(tmp_path_factory.mktemp("cluster")) as made:
        made.make_coordinators()
        yield made


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as made:
        yield made


def of_librdkafka(cluster: WatchedCluster, client: str, **more: Any) -> dict[str, Any]:
    """Settings of a client of librdkafka that asks for metadata only when it has to."""
    return {
        "bootstrap.servers": cluster.watched,
        "client.id": client,
        "log_level": 0,
        "metadata.max.age.ms": AN_HOUR,
        "topic.metadata.refresh.interval.ms": -1,
        "reconnect.backoff.max.ms": 200,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def reader_of(cluster: WatchedCluster, client: str, topic: str, begin: int = 0, **more: Any) -> Any:
    """A consumer of librdkafka at the beginning of the partition, or elsewhere."""
    reader = confluent_kafka.Consumer(
        of_librdkafka(cluster, client, group_id="none", fetch_wait_max_ms=100, **more)
    )
    reader.assign([confluent_kafka.TopicPartition(topic, 0, begin)])
    return reader


def take(reader: Any, count: int) -> list[bytes]:
    """The values of so many records; an error is raised."""
    found: list[bytes] = []
    for _ in tries():
        if len(found) >= count:
            break
        for message in reader.consume(count - len(found), 1.0):
            if message.error() is not None:
                raise confluent_kafka.KafkaException(message.error())
            found.append(message.value())
    return found


def all_of(cluster: WatchedCluster, topic: str, count: int) -> list[bytes]:
    """The values of so many records from the beginning, read by a client that knows nothing."""
    reader = reader_of(cluster, "c-all", topic)
    try:
        return take(reader, count)
    finally:
        reader.close()


def java_read(
    cluster: WatchedCluster, java_program: JavaProgram, client: str, topic: str, count: int
) -> list[tuple[int, bytes | None]]:
    """Offsets and values from the beginning, read without a refresh of metadata by time."""
    face = JavaFace(cluster.watched, java_program)
    settings = {"client.id": client, "auto.offset.reset": "earliest", **NEVER}
    found = face.ask("read", topic=topic, partition=0, offset=0, count=count, settings=settings)
    return [(one.offset, one.record.value) for one in map(record_of, found)]


# -- KIP-951: who asks the wrong broker is told the right one.


def test_an_old_leader_names_the_new_one_and_its_address(cluster: WatchedCluster) -> None:
    cluster.create("named", ALL)
    cluster.have_lead(1, "named", 3)
    topic_id = cluster.topic(1, "named").topic_id
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    fetch = FetchRequest(
        max_bytes=1_000, topics=[FetchTopic(topic_id=topic_id, partitions=[asked])]
    )

    with RawClient(cluster.brokers[1].port) as client:
        produced = client.ask(api_keys.PRODUCE, 11, produce_request(one_batch(b"x"), "named"))
        fetched = client.ask(api_keys.FETCH, 16, fetch)

    assert isinstance(produced, ProduceResponse)
    assert isinstance(fetched, FetchResponse)
    answers = [
        (produced.responses[0].partition_responses[0], produced.node_endpoints),
        (fetched.responses[0].partitions[0], fetched.node_endpoints),
    ]
    for part, endpoints in answers:
        assert part.error_code == errors.NOT_LEADER_OR_FOLLOWER
        assert part.current_leader is not None
        assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (3, 1)
        assert [(one.node_id, one.host, one.port) for one in endpoints] == [
            (3, "127.0.0.1", cluster.recorders[3].port)
        ]


def test_producers_go_on_by_the_hint_alone(
    cluster: WatchedCluster, java_program: JavaProgram
) -> None:
    cluster.create("hinted", ALL)
    # Without a hint it would wait for an hour before it asks or sends again.
    slow = {"retry.backoff.ms": str(AN_HOUR), "retry.backoff.max.ms": str(AN_HOUR), **NEVER}
    one = JavaProducer(java_program, cluster.watched, {"client.id": "java-hinted", **slow})
    other = confluent_kafka.Producer(of_librdkafka(cluster, "c-hinted"))
    one.send("hinted", 0, SentRecord(b"1"))
    one.flush()
    other.produce("hinted", b"2", partition=0)
    assert other.flush(PATIENCE_S) == 0

    cluster.have_lead(1, "hinted", 3)
    one.send("hinted", 0, SentRecord(b"3"))
    offsets = one.flush()
    other.produce("hinted", b"4", partition=0)
    left = other.flush(PATIENCE_S)
    one.close()

    assert (offsets, left) == ([2], 0)
    told = cluster.was_told("java-hinted", api_keys.PRODUCE, errors.NOT_LEADER_OR_FOLLOWER)
    assert {each.leader_id for each in told} == {3}
    # librdkafka may have asked for metadata just then.
    told = cluster.was_told("c-hinted", api_keys.PRODUCE, errors.NOT_LEADER_OR_FOLLOWER)
    assert {each.leader_id for each in told} <= {3}
    with RawClient(cluster.brokers[3].port) as client:
        assert client.fetch(0, "hinted").high_watermark == 4


def test_readers_go_on_by_the_hint(
    cluster: WatchedCluster, java_program: JavaProgram, pool: ThreadPoolExecutor
) -> None:
    cluster.create("followed", ALL)
    cluster.write(1, "followed", b"0", b"1")
    reading = pool.submit(java_read, cluster, java_program, "java-reader", "followed", 4)
    reader = reader_of(cluster, "c-reader", "followed")
    found = take(reader, 2)
    cluster.wait_until_fetched_from("java-reader", 2)

    cluster.have_lead(1, "followed", 3)
    cluster.write(3, "followed", b"2", b"3")
    found += take(reader, 2)
    reader.close()

    assert found == [b"0", b"1", b"2", b"3"]
    assert reading.result(PATIENCE_S) == [(number, b"%d" % number) for number in range(4)]
    told = cluster.was_told("java-reader", api_keys.FETCH, errors.NOT_LEADER_OR_FOLLOWER)
    assert {each.leader_id for each in told} == {3}
    told = cluster.was_told("c-reader", api_keys.FETCH, errors.NOT_LEADER_OR_FOLLOWER)
    assert {each.leader_id for each in told} <= {3}


# -- KIP-320: epochs of leaders.


def test_who_knows_an_older_epoch_is_fenced_and_told_the_new_one(cluster: WatchedCluster) -> None:
    cluster.create("fenced", ALL)
    cluster.write(1, "fenced", b"0")
    reader = reader_of(cluster, "c-fenced", "fenced")
    place = confluent_kafka.TopicPartition("fenced", 0)
    found = take(reader, 1)
    told: list[Told] = []

    # Once, unless it asks for metadata just then.
    while not told:
        reader.pause([place])
        wait_until(
            lambda: "" if cluster.recorders[1].is_fetching("c-fenced") else "yes", "the last fetch"
        )
        # The same broker leads as before, in a later epoch.
        cluster.have_lead(1, "fenced", 3)
        cluster.have_lead(1, "fenced", 1)
        cluster.write(1, "fenced", b"%d" % len(found))
        reader.resume([place])
        found += take(reader, 1)
        told = cluster.was_told("c-fenced", api_keys.FETCH, errors.FENCED_LEADER_EPOCH)
    reader.close()

    assert found == [b"%d" % number for number in range(len(found))]
    assert {each.leader_id for each in told} == {1}


def test_a_leader_that_has_not_heard_of_its_epoch_says_so(cluster: WatchedCluster) -> None:
    cluster.create("unknown", [3, 1, 2])
    cluster.write(3, "unknown", b"0", b"1")
    cluster.prefer(1, "unknown", 1)
    # From now on broker 3 believes that it leads in the first epoch.
    cluster.stores[3].cut()
    try:
        cluster.elect(1, "unknown", 1)
        cluster.prefer(1, "unknown", 3)
        cluster.elect(1, "unknown", 3)
        reader = confluent_kafka.Consumer(
            of_librdkafka(cluster, "c-unknown", group_id="none")
            | {"bootstrap.servers": cluster.recorders[1].address}
        )
        reader.assign([confluent_kafka.TopicPartition("unknown", 0, 0)])
        cluster.wait_until_told("c-unknown", api_keys.FETCH, errors.UNKNOWN_LEADER_EPOCH)
    finally:
        cluster.stores[3].heal()
    found = take(reader, 2)
    reader.close()

    assert found == [b"0", b"1"]


def test_readers_of_records_that_are_lost_hear_of_it_by_the_epoch(
    cluster: WatchedCluster, java_program: JavaProgram, pool: ThreadPoolExecutor
) -> None:
    kept, lost, new = ([word + b"-%d" % n for n in range(3)] for word in (b"kept", b"lost", b"new"))
    cluster.create("cut-off", [1, 2], min_insync_replicas="1")
    cluster.write(1, "cut-off", *kept)
    cluster.brokers[2].stop_cleanly()
    cluster.write(1, "cut-off", *lost)
    reading = pool.submit(java_read, cluster, java_program, "java-cut", "cut-off", 9)
    reader = reader_of(cluster, "c-cut", "cut-off", auto_offset_reset="error")
    found = take(reader, 6)
    cluster.wait_until_fetched_from("java-cut", 6)

    # The other one comes back without what it has missed, and has to lead.
    cluster.peers[1].cut()
    cluster.start_broker(2)
    cluster.brokers[1].stop_cleanly()
    cluster.elect(2, "cut-off", 2, unclean=True)
    cluster.peers[1].heal()
    with pytest.raises(confluent_kafka.KafkaException) as told:
        take(reader, 1)
    cluster.write(2, "cut-off", *new)
    reader.close()
    cluster.start_broker(1)
    cluster.wait_for_row(2, "cut-off", 2, [1, 2])

    assert found == kept + lost
    sentence = "truncation detected at offset 6 (leader epoch 0): broker end offset is 3"
    assert sentence in told.value.args[0].str()
    # Java's goes on where the logs part, and does not begin anew.
    assert reading.result(PATIENCE_S) == [
        *enumerate(kept + lost),
        *enumerate(new, start=len(kept)),
    ]
    for client in ("c-cut", "java-cut"):
        assert cluster.was_told(client, api_keys.OFFSET_FOR_LEADER_EPOCH, errors.NONE), client
    cluster.have_lead(2, "cut-off", 1)
    assert all_of(cluster, "cut-off", 6) == kept + new


# -- KIP-207: a new leader does not know yet what was committed.


def test_the_end_of_a_new_leader_is_told_once_it_is_sure(
    cluster: WatchedCluster, java_program: JavaProgram, pool: ThreadPoolExecutor
) -> None:
    cluster.create("not-yet", ALL)
    cluster.prefer(1, "not-yet", 3)
    sleeper = cluster.brokers[2]
    sleeper.send_signal(signal.SIGSTOP)
    # No client waits for an answer of the one that sleeps.
    way = cluster.recorders[2].broker_port
    cluster.recorders[2].broker_port = NOBODY
    try:
        with RawClient(cluster.brokers[1].port) as client:
            request = produce_request(one_batch(*[b"x"] * 5), "not-yet", acks=1)
            client.ask(api_keys.PRODUCE, 11, request)
        written = cluster.log_bytes(1, "not-yet")
        wait_until(
            lambda: "yes" if cluster.log_bytes(3, "not-yet") == written else "", "a whole copy"
        )
        cluster.elect(1, "not-yet", 3)
        cluster.wait_for_row(3, "not-yet", 3, ALL)
        codes = [end_of(cluster, 3, "not-yet", version)[0] for version in (4, 5)]
        face = JavaFace(cluster.watched, java_program)
        of_java = pool.submit(
            face.ask,
            "end offset",
            topic="not-yet",
            partition=0,
            settings={"client.id": "java-end", **NEVER},
        )
        reader = reader_of(cluster, "c-end", "not-yet", begin=confluent_kafka.OFFSET_END)
        for client in ("java-end", "c-end"):
            cluster.wait_until_told(client, api_keys.LIST_OFFSETS, errors.OFFSET_NOT_AVAILABLE)
    finally:
        cluster.recorders[2].broker_port = way
        sleeper.send_signal(signal.SIGCONT)
    assert of_java.result(PATIENCE_S) == 5
    cluster.wait_until_fetched_from("c-end", 5)
    cluster.write(3, "not-yet", b"new")

    assert take(reader, 1) == [b"new"]
    assert end_of(cluster, 3, "not-yet", 5) == (errors.NONE, 6)
    assert codes == [errors.LEADER_NOT_AVAILABLE, errors.OFFSET_NOT_AVAILABLE]
    reader.close()


def end_of(cluster: WatchedCluster, leader: int, topic: str, version: int) -> tuple[int, int]:
    """Error and end offset as a client of this version is told."""
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=LATEST)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(topic, [asked])])
    with RawClient(cluster.brokers[leader].port) as client:
        answer = client.ask(api_keys.LIST_OFFSETS, version, request)
    assert isinstance(answer, ListOffsetsResponse)
    part = answer.topics[0].partitions[0]
    return part.error_code, part.offset


# -- Too few brokers.


def test_while_a_broker_is_away_producers_wait_and_nothing_is_appended(
    cluster: WatchedCluster, java_program: JavaProgram
) -> None:
    cluster.create("led-by-nobody", [3])
    cluster.create("too-few", [1, 3], min_insync_replicas="2")
    cluster.brokers[3].stop_cleanly()
    # A batch that is appended before the leader learns of it is not refused but waits.
    wait_until(lambda: is_refused(cluster, 1, "too-few"), "a refusal before the append")
    producer = confluent_kafka.Producer(of_librdkafka(cluster, "c-few"))
    one = JavaProducer(java_program, cluster.watched, {"client.id": "java-few", **NEVER})
    for topic in ("led-by-nobody", "too-few"):
        producer.produce(topic, b"1", partition=0)
        one.send(topic, 0, SentRecord(b"2"))
    for client in ("c-few", "java-few"):
        cluster.wait_until_told(client, api_keys.METADATA, errors.LEADER_NOT_AVAILABLE)
        cluster.wait_until_told(client, api_keys.PRODUCE, errors.NOT_ENOUGH_REPLICAS)
    told = producer.list_topics("led-by-nobody", PATIENCE_S).topics["led-by-nobody"].partitions[0]
    without = cluster.log_bytes(1, "too-few")
    cluster.start_broker(3)
    left = producer.flush(PATIENCE_S)
    offsets = one.flush()
    one.close()

    assert (told.leader, told.error.code()) == (-1, errors.LEADER_NOT_AVAILABLE)
    assert without == b""
    assert left == 0
    for topic, offset in zip(("led-by-nobody", "too-few"), offsets, strict=True):
        values = all_of(cluster, topic, 2)
        assert sorted(values) == [b"1", b"2"]
        assert values[offset] == b"2"


def test_records_that_too_few_have_are_not_acknowledged_but_stay_once(
    cluster: WatchedCluster, pool: ThreadPoolExecutor
) -> None:
    cluster.create("appended", [IMPATIENT, 1], min_insync_replicas="2")
    delivered: dict[bytes, tuple[Any, int]] = {}

    def hear(error: Any, message: Any) -> None:
        delivered[message.value()] = (error, message.offset())

    hasty = confluent_kafka.Producer(of_librdkafka(cluster, "c-hasty", retries=0, linger_ms=0))
    patient = confluent_kafka.Producer(
        of_librdkafka(cluster, "c-patient", enable_idempotence=True, linger_ms=0)
    )
    # The replica in sync gets nothing any more, and lags after a second.
    cluster.peers[IMPATIENT].cut()
    try:
        for producer, value in ((hasty, b"once"), (patient, b"again")):
            producer.produce("appended", value, partition=0, on_delivery=hear)
        flushing = pool.submit(hasty.flush, PATIENCE_S), pool.submit(patient.flush, PATIENCE_S)
        wait_until(
            lambda: "yes" if cluster.log_bytes(IMPATIENT, "appended").count(b"aga") else "",
            "both records",
        )
        wait_until(
            lambda: is_refused(cluster, IMPATIENT, "appended"), "a refusal before the append"
        )
    finally:
        cluster.peers[IMPATIENT].heal()
    assert [each.result(PATIENCE_S) for each in flushing] == [0, 0]
    values = all_of(cluster, "appended", 2)

    for client in ("c-hasty", "c-patient"):
        assert cluster.was_told(
            client, api_keys.PRODUCE, errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        ), client
    assert delivered[b"once"][0].code() == errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert delivered[b"again"][0] is None
    assert sorted(values) == [b"again", b"once"]
    assert values[delivered[b"again"][1]] == b"again"
    with RawClient(cluster.brokers[IMPATIENT].port) as client:
        assert client.fetch(0, "appended").high_watermark == 2


def is_refused(cluster: WatchedCluster, leader: int, topic: str) -> str:
    """Whether a produce is refused for too few replicas, not for its batch, which has no bytes."""
    with RawClient(cluster.brokers[leader].port) as client:
        answer = client.produce(b"", topic)
    return "yes" if answer.error_code == errors.NOT_ENOUGH_REPLICAS else ""
