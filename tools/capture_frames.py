"""Record the requests of real clients as golden frames: `tests/wire/golden/<client>.hex`.

    python tools/capture_frames.py [CLIENT ...]     confluent-kafka kafka-python aiokafka kcat java

A listener answers each request just well enough that the client goes on (one broker, one topic,
every write accepted, nothing ever to read) and keeps the first request of each API and version.
For Java, CAPTURE_CLASSPATH names kafka-clients and slf4j-api jars.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from capture_clients import CLIENTS, TOPIC
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_response
from tarry.protocol.headers import RequestHeader, decode_request_header
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tarry.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from tarry.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tarry.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from tarry.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tarry.protocol.messages.init_producer_id import InitProducerIdResponse
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tarry.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tarry.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tarry.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from tarry.protocol.registry import MESSAGES
from tarry.wire import ChunkList, Reader

GOLDEN: Final = Path(__file__).resolve().parent.parent / "tests" / "wire" / "golden"
TOPIC_ID: Final = bytes(range(1, 17))
CLUSTER_ID: Final = "Z29sZGVuLWZyYW1lcy0wMQ"


class Listener:
    """Answers clients and keeps their first frame of each API and version."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.frames: dict[tuple[int, int], bytes] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self.server.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        with contextlib.suppress(OSError):
            while len(prefix := stream.read(4)) == 4:
                frame = stream.read(int.from_bytes(prefix, "big"))
                reader = Reader(frame)
                header = decode_request_header(reader)
                key = (header.api_key, header.api_version)
                self.frames.setdefault(key, frame)
                answer = self._answer(header, reader)
                if answer is not None:
                    connection.sendall(answer)

    def _answer(self, header: RequestHeader, reader: Reader) -> bytes | None:
        api = api_keys.APIS.get(header.api_key)
        api_version = header.api_version
        if api is None:
            raise OSError(f"key {header.api_key} is not advertised")
        if header.api_key == api_keys.API_VERSIONS and api_version > api.version_max:
            message: Message = self._api_versions(None)
            message.error_code, api_version = 35, 0  # type: ignore[attr-defined]
        else:
            request = MESSAGES[header.api_key].decode_request(reader, api_version)
            if header.api_key == api_keys.PRODUCE and request.acks == 0:  # type: ignore[attr-defined]
                return None
            message = getattr(self, f"_{snake(api.name)}")(request)
        pieces = encode_response(header.api_key, api_version, header.correlation_id, message)
        return b"".join(pieces)  # type: ignore[arg-type]

    def _api_versions(self, request: Any) -> ApiVersionsResponse:
        rows = [
            ApiVersion(api.key, 0 if api.key == 0 else api.version_min, api.version_max)
            for api in api_keys.APIS.values()
        ]
        return ApiVersionsResponse(0, rows)

    def _metadata(self, request: Any) -> MetadataResponse:
        partitions = [MetadataResponsePartition(0, 0, 0, 0, [0], [0])]
        topics = [MetadataResponseTopic(0, TOPIC, TOPIC_ID, False, partitions)]
        brokers = [MetadataResponseBroker(0, "127.0.0.1", self.port)]
        return MetadataResponse(0, brokers, CLUSTER_ID, 0, topics)

    def _produce(self, request: Any) -> ProduceResponse:
        return ProduceResponse(
            [
                TopicProduceResponse(
                    topic.name,
                    topic.topic_id,
                    [PartitionProduceResponse(p.index, 0, 0) for p in topic.partition_data],
                )
                for topic in request.topic_data
            ]
        )

    def _fetch(self, request: Any) -> FetchResponse:
        time.sleep(0.05)
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic.topic,
                    topic.topic_id,
                    [
                        PartitionData(p.partition, 0, 0, 0, 0, records=ChunkList([], 0))
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _list_offsets(self, request: Any) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            0,
            [
                ListOffsetsTopicResponse(
                    topic.name,
                    [
                        ListOffsetsPartitionResponse(p.partition_index, 0, -1, 0)
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )

    def _create_topics(self, request: Any) -> CreateTopicsResponse:
        return CreateTopicsResponse(
            0, [CreatableTopicResult(topic.name, TOPIC_ID) for topic in request.topics]
        )

    def _delete_topics(self, request: Any) -> DeleteTopicsResponse:
        names = request.topic_names or [topic.name for topic in request.topics]
        return DeleteTopicsResponse(0, [DeletableTopicResult(name) for name in names])

    def _init_producer_id(self, request: Any) -> InitProducerIdResponse:
        return InitProducerIdResponse(0, 0, 7, 0)

    def _offset_for_leader_epoch(self, request: Any) -> OffsetForLeaderEpochResponse:
        return OffsetForLeaderEpochResponse(
            0,
            [
                OffsetForLeaderTopicResult(
                    topic.topic, [EpochEndOffset(0, p.partition, 0, 0) for p in topic.partitions]
                )
                for topic in request.topics
            ],
        )

    def _describe_configs(self, request: Any) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            0,
            [
                DescribeConfigsResult(0, None, resource.resource_type, resource.resource_name)
                for resource in request.resources
            ],
        )

    def _describe_cluster(self, request: Any) -> DescribeClusterResponse:
        brokers = [DescribeClusterBroker(0, "127.0.0.1", self.port)]
        return DescribeClusterResponse(0, 0, None, 1, CLUSTER_ID, 0, brokers)

    def _describe_topic_partitions(self, request: Any) -> DescribeTopicPartitionsResponse:
        partitions = [DescribeTopicPartitionsResponsePartition(0, 0, 0, 0, [0], [0])]
        topic = DescribeTopicPartitionsResponseTopic(0, TOPIC, TOPIC_ID, False, partitions)
        return DescribeTopicPartitionsResponse(0, [topic])


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def main() -> int:
    today = datetime.datetime.now(tz=datetime.UTC).date()
    for name in sys.argv[1:] or list(CLIENTS):
        listener = Listener()
        origin = CLIENTS[name](listener.address)
        lines = [f"# origin: {origin}, recorded {today} by tools/capture_frames.py"]
        for (key, api_version), frame in sorted(listener.frames.items()):
            lines += ["", f"# {api_keys.APIS[key].name} v{api_version}", frame.hex()]
        (GOLDEN / f"{name}.hex").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{name}: {len(listener.frames)} frames of {origin}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
