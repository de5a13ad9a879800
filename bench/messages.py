"""Time to decode and to encode headers, produce and fetch messages.

    python bench/messages.py        the compiled form if it is built; TARRY_PURE=1: interpreted

One topic, one partition, a batch of 170 bytes; best of seven rounds; each figure includes the four
or five calls from this interpreted file.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import tarry
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_request, encode_response
from tarry.protocol.headers import decode_request_header
from tarry.protocol.message import ZERO_UUID, Message
from tarry.protocol.messages.fetch import (
    FetchableTopicResponse,
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
    TopicProduceResponse,
)
from tarry.protocol.registry import MESSAGES
from tarry.wire import ChunkList, Reader, window_of

ROUNDS = 7
TOPIC_ID = b"\x01" * 16
BATCH = window_of(bytes(170))
LARGE = bytes(100_000)


def best_ns(call: Callable[[], object], times: int) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, (time.perf_counter() - start) / times)
    return best * 1e9


def produce(name: str, topic_id: bytes) -> tuple[Message, Message]:
    data = TopicProduceData(name, topic_id, [PartitionProduceData(0, BATCH)])
    answer = TopicProduceResponse(name, topic_id, [PartitionProduceResponse(0, 0, 1234)])
    return ProduceRequest(None, -1, 30_000, [data]), ProduceResponse([answer])


def fetch(name: str, topic_id: bytes) -> tuple[Message, Message]:
    partition = FetchPartition(0, fetch_offset=123, partition_max_bytes=1 << 20)
    data = PartitionData(0, 0, 5, 5, 0, records=ChunkList([LARGE], len(LARGE)))
    return (
        FetchRequest(max_wait_ms=500, topics=[FetchTopic(name, topic_id, [partition])]),
        FetchResponse(responses=[FetchableTopicResponse(name, topic_id, [data])]),
    )


def main() -> None:
    times = 50_000 if tarry.FORM == "compiled" else 5_000
    print(f"{tarry.FORM}; ns per message")
    for key, by_id_from, versions, build in (
        (api_keys.PRODUCE, 13, (3, 7, 9, 13), produce),
        (api_keys.FETCH, 13, (4, 11, 12, 18), fetch),
    ):
        for version in versions:
            topic = ("", TOPIC_ID) if version >= by_id_from else ("topic-one", ZERO_UUID)
            request, response = build(*topic)
            frame = encode_request(key, version, 1, "client", request)
            decode_message = MESSAGES[key].decode_request

            def decode(
                frame: bytes = frame,
                version: int = version,
                decode_message: Callable[[Reader, int], Message] = decode_message,
            ) -> None:
                reader = Reader(frame, 4)
                decode_request_header(reader)
                decode_message(reader, version)
                reader.expect_end()

            def encode(
                key: int = key, version: int = version, response: Message = response
            ) -> None:
                encode_response(key, version, 1, response)

            print(
                f"{api_keys.APIS[key].name:8} v{version:<3}"
                f" request decoded {best_ns(decode, times):6.0f}"
                f"   response encoded {best_ns(encode, times):6.0f}"
            )


if __name__ == "__main__":
    main()
