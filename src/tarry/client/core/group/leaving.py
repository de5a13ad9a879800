"""Leaving: one request to the coordinator; only a close waits for its answer."""

from __future__ import annotations

from tarry.client.core.group.coordinator import CoordinatorFinder
from tarry.client.core.group.identity import GroupIdentity
from tarry.client.core.group.requests import leave_request
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import ClientError
from tarry.link.exchange import Exchange
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.leave_group import LeaveGroupResponse, decode_leave_group_response


class Leaving:
    """Request to leave the group; `is_answered` is false from `send` until it is answered or
    fails."""

    def __init__(self, settings: ConsumerSettings, coordinator: CoordinatorFinder) -> None:
        self.is_answered = True
        self._timeout_ms = settings.request_timeout_ms
        self._coordinator = coordinator

    def send(self, who: GroupIdentity, reason: str, now_ms: int) -> None:
        self.is_answered = False
        self._coordinator.send(_Leave(self, who, reason, self._timeout_ms), now_ms)


class _Leave(Exchange[LeaveGroupResponse]):
    def __init__(self, leaving: Leaving, who: GroupIdentity, reason: str, timeout_ms: int) -> None:
        super().__init__(api_keys.LEAVE_GROUP, decode_leave_group_response, timeout_ms)
        self.leaving = leaving
        self.who = who
        self.reason = reason

    def build(self, version: int) -> Message:
        return leave_request(self.who, self.reason, version)

    def on_response(self, response: LeaveGroupResponse, now_ms: int) -> None:
        self.leaving.is_answered = True

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self.leaving.is_answered = True
