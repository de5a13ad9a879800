"""Delays: how each topic takes records that are due later, as the topic's settings say.

A topic is asked about once.  It is asked about again after `metadata.max.age.ms`, when it was
deleted and created again, or when a broker has refused such a record.  Only a topic that delays
records is remembered: after a refusal the user may alter the topic and send again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base.errors import NONE
from tarry.client.core.metadata import Metadata
from tarry.client.core.operation import Operation
from tarry.client.core.routing import ANYONE
from tarry.client.errors import SchedulingUnsupported, broker_error
from tarry.link.errand import Call, Errands
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    decode_describe_configs_response,
)

if TYPE_CHECKING:
    from tarry.client.core.producer.core import ProducerCore

# Sources of due times in a topic (`delay.source`).
UNKNOWN_SOURCE: Final = 0
BY_HEADER: Final = 1
BY_TIMESTAMP: Final = 2

_SOURCES: Final = {"header": BY_HEADER, "timestamp": BY_TIMESTAMP}

_RESOURCE_TOPIC: Final = 2
_ENABLE: Final = "delay.enable"
_SOURCE: Final = "delay.source"


class DescribeDelay(Call[DescribeConfigsResponse, int]):
    """Call for the delay source of one topic.  Result: BY_HEADER or BY_TIMESTAMP."""

    def __init__(self, topic: str, topic_id: bytes) -> None:
        super().__init__(api_keys.DESCRIBE_CONFIGS, decode_describe_configs_response, ANYONE)
        self.topic = topic
        self.topic_id = topic_id

    def build(self, version: int) -> Message:
        resource = DescribeConfigsResource(_RESOURCE_TOPIC, self.topic, [_ENABLE, _SOURCE])
        return DescribeConfigsRequest([resource])

    def interpret(self, response: DescribeConfigsResponse) -> int:
        for result in response.results:
            if result.error_code != NONE:
                sentence = result.error_message or f"the settings of {self.topic} cannot be read"
                raise broker_error(
                    result.error_code,
                    f"whether topic {self.topic!r} delays records is not known: {sentence}",
                )
            return self._source_of({entry.name: entry.value for entry in result.configs})
        raise ClientError(f"the broker's answer leaves the settings of topic {self.topic!r} out")

    def _source_of(self, values: dict[str, str | None]) -> int:
        if _ENABLE not in values:
            raise SchedulingUnsupported(
                "the broker knows no scheduled records (Apache Kafka has none): send records that "
                "are due at once, and without ids"
            )
        if values[_ENABLE] != "true":
            raise SchedulingUnsupported(
                f"topic {self.topic!r} does not delay records: set delay.enable=true and "
                "delay.source=header on it"
            )
        source = _SOURCES.get(values.get(_SOURCE) or "", UNKNOWN_SOURCE)
        if source == UNKNOWN_SOURCE:
            raise SchedulingUnsupported(
                f"topic {self.topic!r} delays all its records alike (delay.default.ms): set "
                "delay.source=header on it, and delay.default.ms=-1"
            )
        return source


class Delays:
    """Delay sources of the topics of one producer."""

    def __init__(
        self, metadata: Metadata, errands: Errands, timeout_ms: int, age_ms_max: int
    ) -> None:
        self._metadata = metadata
        self._errands = errands
        self._timeout_ms = timeout_ms
        self._age_ms_max = age_ms_max
        # Source of each known topic, the topic's id, and the time until which that is valid.
        self._known: dict[str, tuple[int, bytes, int]] = {}
        # Questions under way by topic, so that senders that wait together ask once.
        self._calls: dict[str, DescribeDelay] = {}

    def source_of(self, topic: str, now_ms: int) -> int:
        """Return the delay source of a topic; UNKNOWN_SOURCE while it is not known."""
        known = self._known.get(topic)
        if known is None:
            return UNKNOWN_SOURCE
        source, topic_id, ends_ms = known
        if now_ms >= ends_ms or topic_id != self._metadata.topic_id(topic):
            return UNKNOWN_SOURCE
        return source

    def forget(self, topic: str) -> None:
        """Forget a topic's source, because a broker has refused a record of it."""
        self._known.pop(topic, None)

    def ask(self, topic: str, now_ms: int) -> DescribeDelay:
        """Ask about a topic, or return the question that is under way."""
        call = self._calls.get(topic)
        # A finished question was abandoned by its callers, and its answer may be old.
        if call is None or call.is_done:
            call = self._calls[topic] = DescribeDelay(topic, self._metadata.topic_id(topic))
            self._errands.ask(call, self._timeout_ms, now_ms)
        return call

    def take(self, call: DescribeDelay, now_ms: int) -> None:
        """Take the answer of a question that is done, once."""
        if self._calls.get(call.topic) is not call:
            return
        del self._calls[call.topic]
        if call.error is None:
            ends_ms = now_ms + self._age_ms_max
            self._known[call.topic] = (call.result, call.topic_id, ends_ms)


class DelayQuery(Operation[int]):
    """Query for the delay source of a topic.  Raises UnknownTopic, or SchedulingUnsupported if the
    topic takes no records that are due later."""

    def __init__(self, core: ProducerCore, topic: str) -> None:
        super().__init__(core.operations)
        self._core = core
        self._topic = topic
        self._call: DescribeDelay | None = None

    def look(self, now_ms: int) -> bool:
        core, topic = self._core, self._topic
        call = self._call
        if call is None:
            if core.delays.source_of(topic, now_ms) != UNKNOWN_SOURCE:
                return True
            if core.metadata.topic(topic) is None:
                return core.metadata.is_missing(topic, now_ms)
            call = self._call = core.delays.ask(topic, now_ms)
        if not call.is_done:
            return False
        core.delays.take(call, now_ms)
        return True

    def answer(self, now_ms: int) -> int:
        call = self._call
        if call is None:
            source = self._core.delays.source_of(self._topic, now_ms)
            if source == UNKNOWN_SOURCE:
                raise self._core.topic_error(self._topic, self.timeout_ms, now_ms)
            return source
        if call.error is not None:
            raise call.error.with_traceback(None)
        return call.result

    def late_error(self, now_ms: int) -> ClientError:
        core = self._core
        if self._call is None:
            return core.topic_error(self._topic, self.timeout_ms, now_ms)
        return core.errands.router.late_error(self._call, self.timeout_ms)
