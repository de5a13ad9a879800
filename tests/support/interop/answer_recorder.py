"""A proxy between clients and a broker that notes which errors the broker told whom."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from tests.support.interop.request_recorder import RequestRecorder, end

from tarry.protocol import api_keys
from tarry.protocol.headers import decode_request_header, decode_response_header
from tarry.protocol.registry import MESSAGES
from tarry.wire.reader import Reader


class Asked(NamedTuple):
    """A request whose answer has not come yet."""

    client: str
    api_key: int
    version: int


class Told(NamedTuple):
    """An error of one partition, and who leads it as its answer says; -1: it does not."""

    client: str
    api_key: int
    error_code: int
    leader_id: int


def fetched(answer: Any) -> Iterator[Any]:
    return (part for topic in answer.responses for part in topic.partitions)


def produced(answer: Any) -> Iterator[Any]:
    return (part for topic in answer.responses for part in topic.partition_responses)


def listed(answer: Any) -> Iterator[Any]:
    return (part for topic in answer.topics for part in topic.partitions)


PARTS_OF: Final[dict[int, Callable[[Any], Iterator[Any]]]] = {
    api_keys.FETCH: fetched,
    api_keys.PRODUCE: produced,
    api_keys.LIST_OFFSETS: listed,
    api_keys.OFFSET_FOR_LEADER_EPOCH: listed,
    api_keys.METADATA: listed,
}


class AnswerRecorder(RequestRecorder):
    """Notes of every partition in an answer its error and the leader that it names.

    The broker may be away for a while: then who comes is sent away.
    """

    def __init__(self) -> None:
        self.asked: dict[socket.socket, dict[int, Asked]] = {}
        self.told: list[Told] = []
        # The last offset from which a client has fetched anything.
        self.fetched_from: dict[str, int] = {}
        super().__init__()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def is_fetching(self, client: str) -> bool:
        """Whether a fetch of this client is under way."""
        return any(
            (one.client, one.api_key) == (client, api_keys.FETCH)
            for asked in list(self.asked.values())
            for one in list(asked.values())
        )

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self.server.accept()[0]
                try:
                    broker = socket.create_connection(("127.0.0.1", self.broker_port))
                except OSError:
                    client.close()
                    continue
                self.sockets += [client, broker]
                self.asked[broker] = self.asked[client] = {}
                self.run(self.forward_requests, client, broker)
                self.run(self.forward_answers, broker, client)

    def forward_requests(self, client: socket.socket, broker: socket.socket) -> None:
        asked = self.asked[client]
        with contextlib.suppress(OSError), client.makefile("rb") as stream:
            while len(prefix := stream.read(4)) == 4:
                frame = stream.read(int.from_bytes(prefix, "big"))
                reader = Reader(frame)
                header = decode_request_header(reader)
                one = Asked(header.client_id or "", header.api_key, header.api_version)
                if one.api_key == api_keys.FETCH:
                    self._note_fetch(one, reader)
                asked[header.correlation_id] = one
                broker.sendall(prefix + frame)
        end(broker)

    def forward_answers(self, broker: socket.socket, client: socket.socket) -> None:
        asked = self.asked[broker]
        with contextlib.suppress(OSError), broker.makefile("rb") as stream:
            while len(prefix := stream.read(4)) == 4:
                frame = stream.read(int.from_bytes(prefix, "big"))
                self._note(asked.pop(int.from_bytes(frame[:4], "big")), frame)
                client.sendall(prefix + frame)
        asked.clear()
        end(client)

    def _note_fetch(self, asked: Asked, reader: Reader) -> None:
        request: Any = MESSAGES[asked.api_key].decode_request(reader, asked.version)
        for topic in request.topics:
            for part in topic.partitions:
                self.fetched_from[asked.client] = part.fetch_offset

    def _note(self, asked: Asked, frame: bytes) -> None:
        parts_of = PARTS_OF.get(asked.api_key)
        if parts_of is None:
            return
        reader = Reader(frame)
        decode_response_header(reader, asked.api_key, asked.version)
        answer = MESSAGES[asked.api_key].decode_response(reader, asked.version)
        for part in parts_of(answer):
            leader = getattr(part, "current_leader", None)
            leader_id = -1 if leader is None else leader.leader_id
            self.told.append(Told(asked.client, asked.api_key, part.error_code, leader_id))
