"""A client without a client: requests as frames over one socket, for tests of a real broker."""

from __future__ import annotations

import socket
import struct

from tests.support.patience import PATIENCE_S

from tarry.protocol import api_keys
from tarry.protocol.frames import encode_request
from tarry.protocol.headers import decode_response_header
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tarry.protocol.registry import MESSAGES
from tarry.records import BatchBuilder
from tarry.wire.reader import Reader, Window, window_of

ANSWER_S_MAX = PATIENCE_S
PRODUCE_VERSION = 11
FETCH_VERSION = 12
CREATE_VERSION = 7
TIMESTAMP_MS = 1_700_000_000_000


def one_batch(*values: bytes) -> bytes:
    """A record batch of these values."""
    builder = BatchBuilder()
    for value in values:
        builder.append(TIMESTAMP_MS, None, value)
    return builder.build()


def produce_request(batch: bytes, topic: str, acks: int = -1) -> ProduceRequest:
    """One batch to partition 0."""
    data = [PartitionProduceData(index=0, records=window_of(batch))]
    return ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(topic, partition_data=data)]
    )


def fetch_request(
    offset: int, topic: str, *, max_wait_ms: int = 0, max_bytes: int = 1 << 20
) -> FetchRequest:
    """From partition 0."""
    partition = FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=-1
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


class RawClient:
    """One connection.  `ask` sends a request and reads its answer."""

    def __init__(
        self, port: int, *, receive_buffer_bytes: int | None = None, host: str = ""
    ) -> None:
        """Connect, from an address of this machine if `host` names one."""
        self.socket = socket.socket()
        if host:
            self.socket.bind((host, 0))
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(ANSWER_S_MAX)
        self.socket.connect(("127.0.0.1", port))
        self._correlation_id = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def encode(self, api_key: int, version: int, request: Message) -> bytes:
        """The frame of a request with the next correlation id."""
        self._correlation_id += 1
        return encode_request(api_key, version, self._correlation_id, "raw", request)

    def ask(self, api_key: int, version: int, request: Message) -> Message:
        self.socket.sendall(self.encode(api_key, version, request))
        return self.answer(api_key, version)

    def answer(self, api_key: int, version: int) -> Message:
        """The next answer, which must be to the last request encoded."""
        body = self.read_exactly(struct.unpack(">i", self.read_exactly(4))[0])
        reader = Reader(body)
        assert decode_response_header(reader, api_key, version) == self._correlation_id
        message = MESSAGES[api_key].decode_response(reader, version)
        assert reader.remaining() == 0
        return message

    def read_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self.socket.recv(min(size - len(data), 1 << 20))
            assert more, f"the broker closed after {len(data)} of {size} bytes"
            data += more
        return bytes(data)

    def is_ended(self) -> bool:
        """True if the broker closes the connection without a word."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    # --- What many tests ask.

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Keys of settings have underscores for dots."""
        settings = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=settings
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
        response = self.ask(api_keys.CREATE_TOPICS, CREATE_VERSION, request)
        assert isinstance(response, CreateTopicsResponse)
        assert response.topics[0].error_code == 0, response.topics[0].error_message

    def produce(self, batch: bytes, topic: str) -> PartitionProduceResponse:
        """Produce to partition 0 with acks=-1."""
        request = produce_request(batch, topic)
        response = self.ask(api_keys.PRODUCE, PRODUCE_VERSION, request)
        assert isinstance(response, ProduceResponse)
        return response.responses[0].partition_responses[0]

    def fetch(self, offset: int, topic: str, **terms: int) -> PartitionData:
        """Fetch from partition 0."""
        request = fetch_request(offset, topic, **terms)
        response = self.ask(api_keys.FETCH, FETCH_VERSION, request)
        assert isinstance(response, FetchResponse)
        return response.responses[0].partitions[0]


def record_bytes(partition: PartitionData) -> bytes:
    """The batches of a fetch's answer as they came."""
    assert isinstance(partition.records, Window)
    return partition.records.to_bytes()
