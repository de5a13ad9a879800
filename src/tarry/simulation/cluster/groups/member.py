"""Member of a group whose requests to coordinators, and their answers, are observed."""

from __future__ import annotations

from typing import Any, Final

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import decode_assignment
from tarry.client.settings import SettingValue
from tarry.protocol import api_keys
from tarry.protocol.headers import decode_request_header, decode_response_header
from tarry.protocol.registry import MESSAGES
from tarry.simulation.clients.context import RunContext
from tarry.simulation.cluster.groups.history import MovedGroup
from tarry.simulation.product.member import MemberNode
from tarry.simulation.world import World
from tarry.wire.reader import Reader

_LENGTH_BYTES: Final = 4
_OVERHEARD: Final = (
    api_keys.JOIN_GROUP,
    api_keys.SYNC_GROUP,
    api_keys.HEARTBEAT,
    api_keys.OFFSET_COMMIT,
)


class _Overheard:
    """Request of a member on its way."""

    def __init__(self, api_key: int, version: int, request: Any, sent_ms: int) -> None:
        self.api_key = api_key
        self.version = version
        self.request = request
        self.sent_ms = sent_ms


class OverheardMember(MemberNode):
    """Member of the group; each answer of a coordinator is noted."""

    def __init__(
        self,
        world: World,
        context: RunContext,
        name: str,
        settings: dict[str, SettingValue],
        group: MovedGroup,
        work_ms_max: int,
    ) -> None:
        self._group = group
        # Requests on their way, by connection and correlation id.
        self._asked: dict[tuple[int, int], _Overheard] = {}
        # Bytes of an answer that is not complete yet, by connection.
        self._buffers: dict[int, bytearray] = {}
        super().__init__(world, context, name, settings, group.product_history, work_ms_max)

    def on_frame(self, connection_id: int, frame: bytes) -> None:
        reader = Reader(frame, _LENGTH_BYTES)
        api_key = int.from_bytes(frame[4:6], "big")
        if api_key not in _OVERHEARD:
            return
        header = decode_request_header(reader)
        version = int(header.api_version)
        request = MESSAGES[api_key].decode_request(reader, version)
        key = (connection_id, int(header.correlation_id))
        self._asked[key] = _Overheard(api_key, version, request, self.clock.now_ms)

    def on_data(self, connection_id: int, data: bytes) -> None:
        buffer = self._buffers.setdefault(connection_id, bytearray())
        buffer += data
        while len(buffer) >= _LENGTH_BYTES:
            end = _LENGTH_BYTES + int.from_bytes(buffer[:_LENGTH_BYTES], "big")
            if len(buffer) < end:
                return
            body = bytes(buffer[_LENGTH_BYTES:end])
            del buffer[:end]
            correlation_id = int.from_bytes(body[:4], "big")
            asked = self._asked.pop((connection_id, correlation_id), None)
            if asked is not None:
                self._overhear(asked, body)

    def _overhear(self, asked: _Overheard, body: bytes) -> None:
        reader = Reader(body)
        decode_response_header(reader, asked.api_key, asked.version)
        answer: Any = MESSAGES[asked.api_key].decode_response(reader, asked.version)
        request = asked.request
        if asked.api_key == api_keys.OFFSET_COMMIT:
            codes = [each.error_code for topic in answer.topics for each in topic.partitions]
            if any(code == errors.NONE for code in codes):
                generation = int(request.generation_id_or_member_epoch)
                self._group.on_committed(self.name, generation, asked.sent_ms)
            return
        if answer.error_code != errors.NONE:
            return
        if asked.api_key == api_keys.JOIN_GROUP:
            self._group.on_joined(self.name, int(answer.generation_id), asked.sent_ms)
        elif asked.api_key == api_keys.HEARTBEAT:
            generation = int(request.generation_id)
            self._group.on_heartbeat(self.name, generation, asked.sent_ms, self.clock.now_ms)
        else:
            generation = int(request.generation_id)
            places = _places(bytes(answer.assignment))
            self._group.on_synced(self.name, generation, places, self.clock.now_ms)


def _places(assignment: bytes) -> list[TopicPartition]:
    return sorted(decode_assignment(assignment)) if assignment else []
