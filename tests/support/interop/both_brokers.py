"""Two brokers that are asked the same: an Apache Kafka that runs, and a Tarry by hand."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable
from typing import Final

from tests.support.patience import PATIENCE_S, tries

from tarry.protocol import api_keys
from tarry.protocol.frames import encode_request
from tarry.protocol.headers import decode_response_header
from tarry.protocol.message import Message
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tarry.protocol.registry import MESSAGES
from tarry.wire.reader import Reader

Ask = Callable[[int, int, Message], Message]

# The time that ListOffsets takes for the first record.
EARLIEST: Final = -2

# Names of this run, so that a Kafka that is used again has none of them.
RUN: Final = uuid.uuid4().hex[:8]

# How the names of settings begin that Kafka lacks.
TARRYS_OWN: Final = ("delay.", "tarry.")


class KafkaConnection:
    """One connection to a Kafka that runs."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        self.file = self.socket.makefile("rb")

    def ask(self, api_key: int, version: int, request: Message) -> Message:
        self.socket.sendall(encode_request(api_key, version, 1, "tarry-test", request))
        size = int.from_bytes(self.file.read(4), "big")
        reader = Reader(self.file.read(size))
        decode_response_header(reader, api_key, version)
        return MESSAGES[api_key].decode_response(reader, version)

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class Both:
    """Asks both and returns what each says, in the form that `shape` gives it."""

    def __init__(self, kafka: Ask, tarry: Ask) -> None:
        self.kafka = kafka
        self.tarry = tarry

    def answers(
        self, api_key: int, version: int, request: Callable[[Ask], Message]
    ) -> tuple[Message, Message]:
        return (
            self.kafka(api_key, version, request(self.kafka)),
            self.tarry(api_key, version, request(self.tarry)),
        )


def wait_until_led(ask: Ask, *names: str) -> None:
    """Return once the broker serves these topics.

    Kafka's controller answers their creation, and its broker hears of them a moment later.
    """
    assert any(_is_led(ask, names) for _ in tries()), f"no broker serves all of {names}"


def _is_led(ask: Ask, names: tuple[str, ...]) -> bool:
    topics = [MetadataRequestTopic(name=name) for name in names]
    told = ask(api_keys.METADATA, 12, MetadataRequest(topics, allow_auto_topic_creation=False))
    assert isinstance(told, MetadataResponse)
    if any(topic.error_code for topic in told.topics):
        return False
    asked = [
        ListOffsetsTopic(
            topic.name or "",
            [ListOffsetsPartition(one.partition_index, -1, EARLIEST) for one in topic.partitions],
        )
        for topic in told.topics
    ]
    answer = ask(api_keys.LIST_OFFSETS, 7, ListOffsetsRequest(-1, 0, asked))
    assert isinstance(answer, ListOffsetsResponse)
    return not any(one.error_code for topic in answer.topics for one in topic.partitions)
