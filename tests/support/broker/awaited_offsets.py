"""AwaitOffset: a whole kind of waiting request that only the tests know.

A request names an offset of a partition.  The answer comes when the high watermark has reached
that offset, or at the request's deadline with REQUEST_TIMED_OUT.  All that a new kind of waiting
request needs is here: its messages, its operation, its part, its handler and its service, which
adds the part and the route.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tarry.base import errors
from tarry.broker.access import OPEN
from tarry.broker.broker import Broker
from tarry.broker.part import WaitingPart
from tarry.broker.request import RequestContext
from tarry.broker.route import Route
from tarry.broker.topics import Topics
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol.message import Message
from tarry.purgatory.operation import PayloadOperation
from tarry.timer.wheel import TimingWheel
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer

AWAIT_OFFSET: Final = 1_000


class AwaitOffsetRequest(Message):
    """Wait until the partition's high watermark is at `offset` or beyond."""

    def __init__(self, topic: str, index: int, offset: int, timeout_ms: int) -> None:
        self.topic = topic
        self.index = index
        self.offset = offset
        self.timeout_ms = timeout_ms

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic)
        writer.i32(self.index)
        writer.i64(self.offset)
        writer.i32(self.timeout_ms)


def decode_await_offset_request(reader: Reader, version: int) -> AwaitOffsetRequest:
    return AwaitOffsetRequest(reader.string(), reader.i32(), reader.i64(), reader.i32())


class AwaitOffsetResponse(Message):
    """How the wait ended."""

    def __init__(self, error_code: int) -> None:
        self.error_code = error_code

    def encode(self, writer: Writer, version: int) -> None:
        writer.i16(self.error_code)


class AwaitedOffset:
    """What one request waits for."""

    def __init__(self, context: RequestContext, partition: ReplicatedLog, offset: int) -> None:
        self.context = context
        self.partition = partition
        self.offset = offset


class DelayedAwaitOffset(PayloadOperation[AwaitedOffset]):
    """Waits until the high watermark is where the request wants it."""

    def is_ready(self, payload: AwaitedOffset) -> bool:
        return payload.partition.high_watermark >= payload.offset

    def complete_with(self, payload: AwaitedOffset) -> None:
        code = errors.NONE if self.is_ready(payload) else errors.REQUEST_TIMED_OUT
        payload.context.respond(AwaitOffsetResponse(code))


class AwaitedOffsets(WaitingPart):
    """The requests that wait for an offset."""

    def __init__(self, timer: TimingWheel) -> None:
        super().__init__(timer, "AwaitOffset")

    def on_moved(self, partition: ReplicatedLog) -> None:
        self.touch(partition.watch_key)


def handle(
    topics: Topics,
    awaited: AwaitedOffsets,
    context: RequestContext,
    request: AwaitOffsetRequest,
) -> Message | None:
    """Answer at once if the offset is there, else when it is."""
    partition = topics.partition(request.topic, request.index)
    if partition is None:
        return AwaitOffsetResponse(errors.UNKNOWN_TOPIC_OR_PARTITION)
    operation = DelayedAwaitOffset(
        context.now_ms + request.timeout_ms, AwaitedOffset(context, partition, request.offset)
    )
    context.operation = operation
    awaited.try_or_watch(operation, [partition.watch_key])
    return None


def serve_awaited_offsets(broker: Broker) -> list[Route[Any]]:
    """Let a broker serve AwaitOffset: a line in the list of parts, and a route."""
    awaited = broker.parts.add(AwaitedOffsets(broker.timer))
    return [
        Route(
            AWAIT_OFFSET,
            0,
            0,
            OPEN,
            decode_await_offset_request,
            partial(handle, broker.topics, awaited),
        )
    ]
