"""Memory of a group at its coordinator: members that joined and left, and how long the group stood
still.

Kafka has no request for it.  Tarry's broker answers DescribeConfigs for the resource type GROUP
with read-only settings: one holds the time since when the broker remembers, and each other one a
note; if there are no notes because of an error, one setting holds its code.  Apache Kafka answers
the same request without these settings.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from tarry.base.errors import GROUP_ID_NOT_FOUND, NONE
from tarry.client.core.admin.coordinators import GroupsCall, at_coordinators
from tarry.client.core.admin.groups import not_found
from tarry.client.core.connections import Connections
from tarry.client.errors import BrokerError
from tarry.link.errand import Steps
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    decode_describe_configs_response,
)

RESOURCE_GROUP: Final = 32

# Name of the setting that requests the notes; other requests do not return them.
NOTES: Final = "tarry.notes"
SINCE: Final = "tarry.notes.since.ms"
NOTE_PREFIX: Final = "tarry.note."
NO_NOTES: Final = "tarry.notes.error.code"


class GroupNote(NamedTuple):
    """Note of one event in a group: its kind, its wall-clock time in ms, and its details."""

    kind: str
    at_ms: int
    fields: dict[str, Any]


class GroupMemory(NamedTuple):
    """Notes of one group, oldest first, and the time since when its coordinator takes notes."""

    group_id: str
    since_ms: int
    notes: list[GroupNote]


class RecallGroup(GroupsCall[DescribeConfigsResponse, GroupMemory | None]):
    """Result: the memory of the group, None if the broker keeps none, or an error."""

    def __init__(self, broker_id: int, group_id: str) -> None:
        decode = decode_describe_configs_response
        super().__init__(api_keys.DESCRIBE_CONFIGS, decode, broker_id, [group_id])
        self.group_id = group_id

    def build(self, version: int) -> Message:
        resource = DescribeConfigsResource(RESOURCE_GROUP, self.group_id, [NOTES])
        return DescribeConfigsRequest(resources=[resource])

    def interpret(
        self, response: DescribeConfigsResponse
    ) -> dict[str, GroupMemory | ClientError | None]:
        try:
            return {self.group_id: self._memory_of(response)}
        except (ValueError, LookupError, msgspec.DecodeError) as flaw:
            sentence = f"the coordinator tells the memory of group {self.group_id} in a form"
            return {self.group_id: ClientError(f"{sentence} that this client cannot read: {flaw}")}

    def _memory_of(self, response: DescribeConfigsResponse) -> GroupMemory | ClientError | None:
        result = response.results[0]
        told = {entry.name: entry.value or "" for entry in result.configs}
        error_code = result.error_code or int(told.get(NO_NOTES, NONE))
        if error_code == GROUP_ID_NOT_FOUND:
            return not_found(self.group_id, None)
        if error_code != NONE:
            sentence = result.error_message or f"the memory of group {self.group_id} cannot be read"
            return BrokerError(error_code, sentence)
        since = told.get(SINCE)
        if since is None:
            return None
        notes = [_note(told[name]) for name in sorted(told) if name.startswith(NOTE_PREFIX)]
        return GroupMemory(self.group_id, int(since), notes)


def _note(text: str) -> GroupNote:
    fields = msgspec.json.decode(text, type=dict[str, Any])
    kind, at_ms = fields.pop("kind"), fields.pop("at_ms")
    return GroupNote(kind, at_ms, fields)


def recall_group(
    connections: Connections, group_id: str
) -> Steps[dict[str, GroupMemory | ClientError | None]]:
    return at_coordinators(
        connections,
        [group_id],
        lambda coordinator, ids: [RecallGroup(coordinator.broker_id, group_id)],
    )
