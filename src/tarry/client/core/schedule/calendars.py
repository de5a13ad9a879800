"""Calendars of brokers, each compared with those of the brokers that it copies from.

Kafka has no request for it, so Tarry's broker tells it as settings of itself that nobody can set
(DescribeConfigs for the resource type BROKER), to those who ask for them by name.  Apache Kafka
answers the same request without them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from tarry.base.errors import NONE
from tarry.client.core.admin.calls import RESOURCE_BROKER, DescribeCluster
from tarry.client.errors import broker_error
from tarry.link.errand import Call, Steps
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    decode_describe_configs_response,
)

# The key by which all of them are asked for; nobody else is told of them.
CALENDARS: Final = "tarry.calendars"
CALENDAR_PREFIX: Final = "tarry.calendar."


class ComparedCalendar(NamedTuple):
    """Calendar of the broker `broker_id`, compared with the one of the broker `seen_by`.

    `ahead_ms`: by how much it is ahead, negative if it is behind; it may be more by the time that
    an answer was under way.  `at_ms` is when they were compared, in milliseconds since 1970.
    """

    broker_id: int
    seen_by: int
    ahead_ms: int
    at_ms: int


class _CalendarFields(msgspec.Struct):
    ahead_ms: int
    at_ms: int


class CompareCalendars(Call[DescribeConfigsResponse, list[ComparedCalendar]]):
    """Result: what one broker knows of the calendars of others."""

    def __init__(self, broker_id: int) -> None:
        super().__init__(api_keys.DESCRIBE_CONFIGS, decode_describe_configs_response, broker_id)
        self._seen_by = broker_id

    def build(self, version: int) -> Message:
        resource = DescribeConfigsResource(RESOURCE_BROKER, str(self._seen_by), [CALENDARS])
        return DescribeConfigsRequest(resources=[resource])

    def interpret(self, response: DescribeConfigsResponse) -> list[ComparedCalendar]:
        found: list[ComparedCalendar] = []
        for result in response.results:
            if result.error_code != NONE:
                sentence = f"broker {self._seen_by} does not tell the calendars of others"
                raise broker_error(result.error_code, result.error_message or sentence)
            for entry in result.configs:
                if entry.name.startswith(CALENDAR_PREFIX):
                    found.append(self._read(entry.name, entry.value or ""))
        return found

    def _read(self, name: str, text: str) -> ComparedCalendar:
        try:
            broker_id = int(name.removeprefix(CALENDAR_PREFIX))
            fields = msgspec.json.decode(text, type=_CalendarFields)
        except ValueError as flaw:
            sentence = (
                f"broker {self._seen_by} tells calendars in a form that this client cannot read"
            )
            raise ClientError(f"{sentence}: {flaw}") from None
        return ComparedCalendar(broker_id, self._seen_by, fields.ahead_ms, fields.at_ms)


def compare_calendars() -> Steps[list[ComparedCalendar]]:
    """Ask each living broker; those that do not answer are left out."""
    cluster = DescribeCluster()
    yield [cluster]
    if cluster.error is not None:
        raise cluster.error
    living = [
        each.broker_id
        for each in cluster.result.brokers
        if each.broker_id not in cluster.result.fenced_ids
    ]
    calls = [CompareCalendars(broker_id) for broker_id in living]
    yield [*calls]
    return [each for call in calls if call.error is None for each in call.result]
