"""Bad input over real sockets, while an honest client goes on undisturbed."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.patience import PATIENCE_S
from tests.support.raw_client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    RawClient,
    fetch_request,
    one_batch,
    produce_request,
    record_bytes,
)

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.api_names import api_name
from tarry.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tarry.records import decode_records

TOPIC = "orders"

HOST = "127.0.0.1"

# Linux has a whole network of addresses of its own; elsewhere each test has a broker of its own.
HAS_HOSTS = sys.platform == "linux"

# Largest growth of a broker under attack.
GROWTH_BYTES_MAX = 64 << 20


class Honest:
    """A client that behaves, on a connection that it keeps, and a host that strangers come from."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.client = RawClient(broker.port)
        self.client.create_topic(TOPIC)
        self.count = 0
        self.host = HOST
        self._strangers = 0
        self._log_begin = 0

    def begin(self) -> None:
        """Have strangers come from a host of their own, and forget the log so far."""
        self._strangers += 1
        self.host = f"127.0.1.{self._strangers}" if HAS_HOSTS else HOST
        self._log_begin = len(self.broker.log())

    def stranger(self, **options: int) -> RawClient:
        """A connection of somebody who does not behave."""
        return RawClient(self.broker.port, host=self.host, **options)

    def goes_on(self) -> None:
        """What it produces is acknowledged at its offset and read back."""
        value = f"record {self.count}".encode()
        produced = self.client.produce(one_batch(value), TOPIC)
        assert (produced.error_code, produced.base_offset) == (errors.NONE, self.count)
        fetched = self.client.fetch(self.count, TOPIC)
        (record,) = decode_records(record_bytes(fetched), size_max=1 << 20)
        assert (record.offset, record.value) == (self.count, value)
        self.count += 1

    def log(self) -> str:
        """The broker's log since the test began."""
        return self.broker.log()[self._log_begin :]

    def wait_for_log(self, words: str) -> None:
        wait_until(lambda: self.log() if words in self.log() else "", words)

    def warnings(self) -> list[str]:
        """Lines of the log that tell of this test's strangers, or of nobody."""
        lines = [line for line in self.log().splitlines() if " WARNING " in line]
        # Nobody's fault: the machine was busy.
        lines = [line for line in lines if "the process did not run for" not in line]
        return [line for line in lines if self.host in line or "127.0.1." not in line]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Honest]]:
    """The broker that the tests share, with its client: repeated faults are told by host."""
    kept: list[Honest] = []
    yield kept
    for honest in kept:
        honest.client.close()
        honest.broker.close()


@pytest.fixture
def honest(kept: list[Honest], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Honest]:
    if not kept or not HAS_HOSTS:
        broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
        broker.start({"socket.request.max.bytes": "1000000"})
        kept.append(Honest(broker))
    honest = kept[-1]
    honest.goes_on()
    honest.begin()
    yield honest
    honest.goes_on()


def assert_closed_with_one_line(honest: Honest, data: bytes, words: str) -> None:
    """Who sends this is closed; one line in the log says why."""
    with honest.stranger() as stranger:
        stranger.socket.sendall(data)
        honest.goes_on()
        assert stranger.is_ended()
    honest.wait_for_log(words)
    (line,) = honest.warnings()
    assert words in line
    assert f"{honest.host}:" in line


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(api_key: int, version: int, *, is_flexible: bool = False) -> bytes:
    return struct.pack(">hhih", api_key, version, 7, -1) + (b"\0" if is_flexible else b"")


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (1_000_001, "a frame of 1000001 bytes is over socket.request.max.bytes (1000000)"),
        (2**31 - 1, "over socket.request.max.bytes"),
        (-1, "a frame of -1 bytes is no request"),
        (-(2**31), "is no request"),
        (0, "a frame of 0 bytes is no request"),
        (7, "a frame of 7 bytes is no request"),
    ],
)
def test_a_length_that_no_request_has(honest: Honest, size: int, words: str) -> None:
    assert_closed_with_one_line(honest, struct.pack(">i", size) + bytes(100), words)


def test_http_on_the_port_is_named_in_the_log(honest: Honest) -> None:
    connection = http.client.HTTPConnection(
        HOST, honest.broker.port, timeout=PATIENCE_S, source_address=(honest.host, 0)
    )
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            connection.getresponse()

    honest.wait_for_log("these are HTTP bytes on a Kafka port")
    assert len(honest.warnings()) == 1


def test_tls_on_the_port_is_named_in_the_log(honest: Honest) -> None:
    context = ssl.create_default_context()
    with (
        socket.create_connection(
            (HOST, honest.broker.port), PATIENCE_S, source_address=(honest.host, 0)
        ) as plain,
        pytest.raises((ssl.SSLError, ConnectionResetError)),
    ):
        context.wrap_socket(plain, server_hostname="localhost")

    honest.wait_for_log("these are TLS bytes on a Kafka port")
    assert len(honest.warnings()) == 1


@pytest.mark.parametrize(
    ("api_key", "name"),
    [
        (4, "LeaderAndIsr (API key 4)"),
        (24, "AddPartitionsToTxn (API key 24)"),
        (26, "EndTxn (API key 26)"),
        (71, "GetTelemetrySubscriptions (API key 71)"),
        (999, "API key 999"),
        (-1, "API key -1"),
        (32_767, "API key 32767"),
    ],
)
def test_an_api_that_is_not_served(honest: Honest, api_key: int, name: str) -> None:
    assert_closed_with_one_line(
        honest, framed(header(api_key, 0) + bytes(20)), f"{name} is not served here; "
    )


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(api_keys.PRODUCE, 2), (api_keys.FETCH, 19), (api_keys.METADATA, 14), (api_keys.FETCH, -1)],
)
def test_a_version_that_is_not_served(honest: Honest, api_key: int, version: int) -> None:
    assert_closed_with_one_line(
        honest,
        framed(header(api_key, version) + bytes(20)),
        f"version {version} of {api_name(api_key)} is not served",
    )


def test_an_unknown_version_of_api_versions_is_answered_and_the_connection_stays(
    honest: Honest,
) -> None:
    with honest.stranger() as stranger:
        stranger.socket.sendall(framed(header(api_keys.API_VERSIONS, 99) + bytes(20)))
        (size,) = struct.unpack(">i", stranger.read_exactly(4))
        answer = stranger.read_exactly(size)
        again = stranger.ask(api_keys.API_VERSIONS, 0, ApiVersionsRequest())

    assert answer[:6] == struct.pack(">ih", 7, errors.UNSUPPORTED_VERSION)
    assert again is not None
    assert honest.warnings() == []


METADATA = header(api_keys.METADATA, 4)
METADATA_FLEXIBLE = header(api_keys.METADATA, 12, is_flexible=True)
CREATE = header(api_keys.CREATE_TOPICS, 2)
PRODUCE = header(api_keys.PRODUCE, 3) + struct.pack(">hhi", -1, 1, 1_000)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(METADATA + struct.pack(">i", 2**31 - 1), id="an array"),
        pytest.param(METADATA + struct.pack(">ih", 1, 32_767) + b"abc", id="a string"),
        pytest.param(METADATA + struct.pack(">ih", 1, -2), id="a negative string"),
        pytest.param(METADATA + struct.pack(">i", -2), id="a negative array"),
        pytest.param(METADATA_FLEXIBLE + b"\xff\xff\xff\xff\x0f", id="a compact array"),
        pytest.param(
            METADATA_FLEXIBLE + b"\x02" + bytes(16) + b"\xff\x7fab", id="a compact string"
        ),
        pytest.param(METADATA_FLEXIBLE + b"\xff" * 11, id="an overlong varint"),
        pytest.param(
            METADATA_FLEXIBLE + b"\x00\x00\x00" + b"\xff\xff\xff\xff\x0f", id="tagged fields"
        ),
        pytest.param(
            METADATA_FLEXIBLE + b"\x00\x00\x00" + b"\x01\x09\xff\xff\xff\xff\x0f",
            id="the size of a tagged field",
        ),
        pytest.param(
            struct.pack(">hhih", api_keys.METADATA, 12, 7, 32_767) + b"ab", id="the client id"
        ),
        pytest.param(
            PRODUCE
            + struct.pack(">ih6sii", 1, 6, b"orders", 1, 0)
            + struct.pack(">i", 2**31 - 1)
            + b"abc",
            id="records",
        ),
        pytest.param(header(api_keys.PRODUCE, 3)[:-2], id="a header without its client id"),
    ],
)
def test_a_count_or_length_beyond_the_bytes_left(honest: Honest, body: bytes) -> None:
    before = resident_bytes(honest.broker.pid)

    assert_closed_with_one_line(honest, framed(body), f"{honest.host}:")

    assert resident_bytes(honest.broker.pid) - before < GROWTH_BYTES_MAX


def test_text_that_is_no_utf_8(honest: Honest) -> None:
    body = METADATA + struct.pack(">ih2s", 1, 2, b"\xff\xfe") + b"\x00"

    assert_closed_with_one_line(honest, framed(body), "UTF-8")


def test_a_client_id_that_is_no_utf_8(honest: Honest) -> None:
    body = struct.pack(">hhih2s", api_keys.METADATA, 4, 7, 2, b"\xff\xfe") + b"\0\0\0\0\0"

    assert_closed_with_one_line(honest, framed(body), "UTF-8")


def test_what_a_peer_sends_writes_no_lines_of_its_own(honest: Honest) -> None:
    name = b"a\nWARNING forged\r\x1b[31m"
    with honest.stranger() as stranger:
        request = produce_request(one_batch(b"x"), name.decode(), acks=0)
        stranger.socket.sendall(stranger.encode(api_keys.PRODUCE, PRODUCE_VERSION, request))
        assert stranger.is_ended()

    honest.wait_for_log("acks=0 was refused")
    assert not any(line.startswith("WARNING") for line in honest.log().splitlines())
    assert "\x1b" not in honest.log()


def test_bytes_behind_a_request_are_passed_over_with_one_line(honest: Honest) -> None:
    with honest.stranger() as stranger:
        frame = stranger.encode(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
        stranger.socket.sendall(framed(frame[4:] + b"abcd"))
        honest.goes_on()

        answer = stranger.answer(api_keys.API_VERSIONS, 0)

    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == errors.NONE
    honest.wait_for_log("4 bytes follow a request")
    assert len(honest.warnings()) == 1


def test_librdkafkas_three_bytes_too_many_are_no_fault(honest: Honest) -> None:
    # librdkafka 2.16 asks for all topics with the placeholder of a longer array count.
    frame = header(api_keys.METADATA, 13, is_flexible=True) + bytes.fromhex("00000000010000")

    with honest.stranger() as kcat:
        kcat.socket.sendall(framed(frame))
        (size,) = struct.unpack(">i", kcat.read_exactly(4))
        kcat.read_exactly(size)

    assert honest.warnings() == []


def test_a_wrong_crc_is_answered_and_one_line_says_so(honest: Honest) -> None:
    batch = one_batch(b"abc")
    changed = batch[:-1] + bytes([batch[-1] ^ 1])

    with honest.stranger() as stranger:
        refused = stranger.produce(changed, TOPIC)
        honest.goes_on()
        kept = stranger.produce(batch, TOPIC)

    assert refused.error_code == errors.CORRUPT_MESSAGE
    assert (kept.error_code, kept.base_offset) == (errors.NONE, honest.count)
    honest.count += 1
    honest.wait_for_log("CRC")
    (line,) = honest.warnings()
    assert "orders-0" in line


@pytest.mark.parametrize("name", ["../../escaped", "", ".", "a b", "a/b", "x" * 250, "a\0b"])
def test_an_invalid_topic_name_is_refused_and_one_line_says_so(honest: Honest, name: str) -> None:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1)]
    request = CreateTopicsRequest(topics=topics, timeout_ms=1_000)

    with honest.stranger() as stranger:
        created = stranger.ask(api_keys.CREATE_TOPICS, 7, request)
        honest.goes_on()
        asked = stranger.ask(
            api_keys.METADATA,
            12,
            MetadataRequest(
                topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
            ),
        )

    assert isinstance(created, CreateTopicsResponse)
    assert isinstance(asked, MetadataResponse)
    assert created.topics[0].error_code == errors.INVALID_TOPIC_EXCEPTION
    assert asked.topics[0].error_code == errors.INVALID_TOPIC_EXCEPTION
    assert list(honest.broker.directory.parent.rglob("*escaped*")) == []
    honest.wait_for_log("invalid topic name")
    assert len(honest.warnings()) == 1


def test_a_frame_that_trickles_is_put_together(honest: Honest) -> None:
    with honest.stranger() as slow:
        for byte in slow.encode(api_keys.API_VERSIONS, 0, ApiVersionsRequest()):
            slow.socket.sendall(bytes([byte]))
            honest.goes_on()

        assert slow.answer(api_keys.API_VERSIONS, 0) is not None
    assert honest.warnings() == []


def test_many_peers_that_stop_in_the_middle_of_a_frame(honest: Honest) -> None:
    before = resident_bytes(honest.broker.pid)
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stranger = stack.enter_context(honest.stranger())
            stranger.socket.sendall(struct.pack(">i", 1_000_000) + b"abc")
        honest.goes_on()
        grown = resident_bytes(honest.broker.pid) - before
    honest.goes_on()

    assert grown < 8 << 20
    assert honest.warnings() == []


def test_a_peer_that_resets_in_the_middle_of_everything(honest: Honest) -> None:
    for size in (1, 4, 6, 40):
        stranger = honest.stranger()
        request = produce_request(one_batch(b"x" * 100), TOPIC)
        frame = stranger.encode(api_keys.PRODUCE, PRODUCE_VERSION, request)
        stranger.socket.sendall(frame[:size])
        linger = struct.pack("ii", 1, 0)
        stranger.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        stranger.close()
        honest.goes_on()

    assert honest.warnings() == []


def test_repeated_faults_of_a_peer_are_one_line_a_second(honest: Honest) -> None:
    began = time.monotonic()
    for _ in range(60):
        with honest.stranger() as stranger:
            stranger.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert stranger.is_ended()
    honest.goes_on()
    seconds = time.monotonic() - began

    honest.wait_for_log("these are HTTP bytes on a Kafka port")
    assert len(honest.warnings()) <= seconds + 1


def test_a_peer_that_never_reads_what_it_fetches(honest: Honest) -> None:
    big = one_batch(b"x" * 900_000)
    for _ in range(20):
        assert honest.client.produce(big, TOPIC).error_code == errors.NONE
        honest.count += 1
    request_size = 0
    before = resident_bytes(honest.broker.pid)

    with honest.stranger(receive_buffer_bytes=4096) as deaf:
        for _ in range(2_000):
            frame = fetch_frame(deaf)
            request_size += len(frame)
            deaf.socket.sendall(frame)
        honest.goes_on()
        stuck = send_until_stuck(deaf.socket, fetch_frame(deaf))
        honest.goes_on()
        grown = resident_bytes(honest.broker.pid) - before

    assert stuck, "the broker goes on reading from a peer that takes no answers"
    assert grown < GROWTH_BYTES_MAX


def test_a_peer_that_never_reads_answers_that_are_made_in_memory(honest: Honest) -> None:
    honest.client.create_topic("wide", partitions=200)
    before = resident_bytes(honest.broker.pid)

    with honest.stranger(receive_buffer_bytes=4096) as deaf:
        frame = deaf.encode(api_keys.METADATA, 12, MetadataRequest(topics=None))
        stuck = send_until_stuck(deaf.socket, frame)
        honest.goes_on()
        grown = resident_bytes(honest.broker.pid) - before

    assert stuck
    assert grown < GROWTH_BYTES_MAX


def fetch_frame(client: RawClient) -> bytes:
    return client.encode(api_keys.FETCH, FETCH_VERSION, fetch_request(1, TOPIC))


def send_until_stuck(peer: socket.socket, frame: bytes) -> bool:
    """Send frames without reading; True when for a second the broker takes nothing more."""
    peer.settimeout(1.0)
    end = time.monotonic() + PATIENCE_S
    with contextlib.suppress(TimeoutError):
        while time.monotonic() < end:
            peer.sendall(frame * 500)
        return False
    return True


def resident_bytes(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except FileNotFoundError:
        pytest.skip("no /proc here")
    return int(fields[1]) * 4096
