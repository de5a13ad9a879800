"""Leaving: one word to the coordinator, whose answer only a close waits for."""

from __future__ import annotations

from typing import Any, Final

from tarry.client.core.group.coordinator import Coordinator, GroupExchange
from tarry.client.core.group.identity import Identity
from tarry.client.core.group.requests import leave_request
from tarry.client.settings import ConsumerSettings
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.leave_group import decode_leave_group_response

LEAVE: Final = (api_keys.LEAVE_GROUP, decode_leave_group_response)


class Leaving:
    """`is_answered` is false between `send` and the answer, or the failure that ends it."""

    def __init__(self, settings: ConsumerSettings, coordinator: Coordinator) -> None:
        self.is_answered = True
        self._timeout_ms = settings.request_timeout_ms
        self._coordinator = coordinator

    def send(self, who: Identity, reason: str, now_ms: int) -> None:
        self.is_answered = False

        def build(version: int) -> Message:
            return leave_request(who, reason, version)

        def when_over(outcome: Any, now_ms: int) -> None:
            self.is_answered = True

        exchange = GroupExchange(LEAVE, self._timeout_ms, build, when_over, when_over)
        self._coordinator.send(exchange, now_ms)
