"""Peers that are no sound brokers: each wait ends in its time, and its error says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.client.hand_face import perform
from tests.support.client.scripted_cluster import SILENCE, ScriptedCluster, Seen, seeded_random

from tarry.client.core.admin.core import AdminCore
from tarry.client.core.consumer.lookup import LATEST
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.operation import Operation
from tarry.client.core.producer.core import ProducerCore
from tarry.client.settings import ClientSettings, ConsumerSettings, ProducerSettings
from tarry.link.errors import ClientError, TimedOut
from tarry.link.events import Address
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_response

SERVERS = "10.0.0.1:9092"
TIMEOUT_MS = 2_000
QUICK: dict[str, Any] = {
    "bootstrap_servers": SERVERS,
    "request_timeout_ms": 700,
    "socket_connection_setup_timeout_ms": 600,
}

Begin = Callable[[ScriptedCluster], Operation[Any]]


def producer(cluster: ScriptedCluster) -> ProducerCore:
    settings = ProducerSettings(**QUICK, delivery_timeout_ms=TIMEOUT_MS)
    core: ProducerCore = cluster.attach(ProducerCore(settings, seeded_random(), cluster.now_ms))
    return core


def consumer(cluster: ScriptedCluster) -> GroupConsumerCore:
    settings = ConsumerSettings(**QUICK, group_id="g")
    core = GroupConsumerCore(settings, seeded_random(), cluster.now_ms)
    made: GroupConsumerCore = cluster.attach(core)
    return made


def admin(cluster: ScriptedCluster) -> AdminCore:
    core = AdminCore(ClientSettings(**QUICK), seeded_random(), cluster.now_ms)
    made: AdminCore = cluster.attach(core)
    return made


def sending(cluster: ScriptedCluster) -> Operation[Any]:
    record = ("t", -1, 0, None, b"x", None)
    return producer(cluster).begin_send(record, TIMEOUT_MS, cluster.now_ms)


def flushing(cluster: ScriptedCluster) -> Operation[Any]:
    """Wait for a record of a topic that was known before."""
    core = producer(cluster)
    core.track("t")
    cluster.run_until(lambda: core.metadata.topic("t") is not None)
    core.append("t", -1, 0, None, b"x", None, now_ms=cluster.now_ms)
    return core.begin_flush(2 * TIMEOUT_MS, cluster.now_ms)


def waiting_for_a_record(cluster: ScriptedCluster) -> Operation[Any]:
    core = producer(cluster)
    core.track("t")
    cluster.run_until(lambda: core.metadata.topic("t") is not None)
    receipt = core.append("t", -1, 0, None, b"x", None, now_ms=cluster.now_ms)
    assert receipt is not None
    return core.begin_wait(receipt, 1_000, cluster.now_ms)


def looking_up(cluster: ScriptedCluster) -> Operation[Any]:
    return consumer(cluster).begin_offsets({("t", 0): LATEST}, TIMEOUT_MS, cluster.now_ms)


def asking_the_coordinator(cluster: ScriptedCluster) -> Operation[Any]:
    return consumer(cluster).begin_committed([("t", 0)], TIMEOUT_MS, cluster.now_ms)


def administering(cluster: ScriptedCluster) -> Operation[Any]:
    core = admin(cluster)
    return core.begin_errand(core.requests.describe_cluster(), TIMEOUT_MS, cluster.now_ms)


def error_of(cluster: ScriptedCluster, begin: Begin) -> ClientError:
    """The error in which a wait ends, in its time."""
    operation = begin(cluster)
    began_ms = cluster.now_ms
    with pytest.raises(ClientError) as raised:
        perform(cluster, operation)
    assert cluster.now_ms - began_ms <= 2 * TIMEOUT_MS
    return raised.value


# --- Another protocol

PEERS: dict[str, tuple[bytes, str]] = {
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the peer answers in HTTP"),
    "a TLS alert": (b"\x15\x03\x03\x00\x02\x02\x46", "name a listener without it"),
    "a TLS handshake": (b"\x16\x03\x01\x02\x00\x01\x00\x01", "the peer answers in TLS"),
    "SSH": (b"SSH-2.0-OpenSSH_9.6\r\n", "this is not a Kafka port"),
    "a frame of 2 GiB": (b"\x7f\xff\xff\xff" + bytes(100), "an answer of 2147483647 bytes"),
    "a negative length": (b"\x80\0\0\0" + bytes(100), "this is not a Kafka port"),
    "half an answer": (b"\0\0\1\x2c" + bytes(24), "only 24 of the 300 bytes of an answer came"),
    "half a length": (b"\0\0", "only 2 bytes came"),
    "the answer to another request": (
        b"\0\0\0\x0c\0\0\0\x63" + bytes(8),
        "it answered request 99",
    ),
}


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize(
    "begin",
    [sending, looking_up, asking_the_coordinator, administering],
    ids=lambda one: one.__name__,
)
def test_a_peer_that_is_no_broker_is_told_in_time(begin: Begin, peer: str) -> None:
    said, sentence = PEERS[peer]
    cluster = ScriptedCluster()
    cluster.topic("t")
    cluster.rule(api_keys.API_VERSIONS, lambda cluster, seen: said)

    error = error_of(cluster, begin)

    assert isinstance(error, TimedOut)
    assert SERVERS in str(error)
    assert sentence in str(error)
    assert str(error).count(SERVERS) == 1, "said once"


def test_an_answer_that_cannot_be_read_is_told_with_the_name_of_its_request() -> None:
    cluster = ScriptedCluster()

    def garbage(cluster: ScriptedCluster, seen: Seen) -> bytes:
        frame = seen.correlation_id.to_bytes(4, "big") + b"\xff" * 36
        return len(frame).to_bytes(4, "big") + frame

    cluster.rule(api_keys.API_VERSIONS, garbage)

    error = error_of(cluster, administering)

    assert "its answer to ApiVersions cannot be read" in str(error)


def test_a_peer_that_hangs_up_before_its_first_answer_may_want_tls() -> None:
    cluster = ScriptedCluster()
    cluster.rule(api_keys.API_VERSIONS, lambda cluster, seen: "cut")

    error = error_of(cluster, administering)

    assert "before its first answer, as one that wants TLS does" in str(error)


def test_polls_go_on_and_the_client_says_why_they_bring_nothing() -> None:
    cluster = ScriptedCluster()
    cluster.rule(api_keys.API_VERSIONS, lambda cluster, seen: PEERS["HTTP"][0])
    core = consumer(cluster)
    core.subscribe(["t"])

    groups = perform(cluster, core.begin_poll(None, 3_000, cluster.now_ms))

    assert groups == []
    assert "the peer answers in HTTP" in core.trouble(cluster.now_ms)


# --- Brokers that were good once


@pytest.mark.parametrize("answer", ["half", "unasked", "silence"])
@pytest.mark.parametrize("begin", [flushing, waiting_for_a_record], ids=lambda one: one.__name__)
def test_a_broker_that_answers_no_produce_any_more_is_told(begin: Begin, answer: str) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")

    def broken(cluster: ScriptedCluster, seen: Seen) -> Any:
        if answer == "silence":
            return SILENCE
        wrong = seen.correlation_id + (1 if answer == "unasked" else 0)
        chunks = encode_response(seen.api_key, seen.version, wrong, cluster.produce(seen))
        frame = b"".join(bytes(chunk) for chunk in chunks)
        return frame[:20] if answer == "half" else frame

    cluster.rule(api_keys.PRODUCE, broken)

    error = str(error_of(cluster, begin))

    assert "not acknowledged" in error
    sentence = {
        "half": "bytes of an answer came",
        "unasked": "was due",
        "silence": "did not answer Produce within",
    }
    assert sentence[answer] in error


# --- Addresses


@pytest.mark.parametrize("refusal", ["connection refused", SILENCE])
@pytest.mark.parametrize(
    "begin",
    [sending, looking_up, asking_the_coordinator, administering],
    ids=lambda one: one.__name__,
)
def test_an_address_that_nobody_reaches_is_named(begin: Begin, refusal: str) -> None:
    cluster = ScriptedCluster()
    cluster.refused[cluster.brokers[1]] = refusal

    error = error_of(cluster, begin)

    assert "cannot connect to 10.0.0.1:9092" in str(error)


def creating_a_topic(cluster: ScriptedCluster) -> Operation[Any]:
    core = admin(cluster)
    steps = core.requests.delete_topics(["t"])
    return core.begin_errand(steps, TIMEOUT_MS, cluster.now_ms)


@pytest.mark.parametrize(
    "begin",
    [flushing, waiting_for_a_record, looking_up, creating_a_topic],
    ids=lambda one: one.__name__,
)
def test_an_advertised_address_that_nobody_reaches_is_named_with_its_source(begin: Begin) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    listening = cluster.brokers[1]
    advertised = Address("10.9.9.9", 9092)
    cluster.refused[advertised] = "connection refused"

    def advertise(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.metadata(seen)
        answer.controller_id = 1
        answer.brokers[0].host, answer.brokers[0].port = advertised
        return answer

    cluster.rule(api_keys.METADATA, advertise)

    error = str(error_of(cluster, begin))

    assert f"cannot connect to {advertised}, which bootstrap server {listening} named" in error
    assert "(advertised.listeners): connection refused" in error
