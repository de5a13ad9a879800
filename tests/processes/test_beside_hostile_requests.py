"""Members of groups and honest clients live on beside the frames that once stopped a broker.

`tests/support/processes/hostile_requests.py` sends the largest requests of every API, and measures.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.processes.hostile_requests import (
    MIB_MAX,
    Frame,
    Wire,
    beside_members,
    of_the_finding,
    resident_kib,
    serving,
)

from tarry.protocol import api_keys
from tarry.protocol.messages.metadata import MetadataRequest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.parametrize("count", [1, 3], ids=["one broker", "three brokers"]),
]

MEMBERS = 300
STRANGERS = 200
FRAME_BYTES = 1 << 20
QUEUED_MIB = 16
PRESSURE = "those that hold most are read in turns"


def test_nobody_else_notices_what_a_stranger_sends(tmp_path: Path, count: int) -> None:
    frames = of_the_finding(MEMBERS)

    with serving(tmp_path, count) as brokers:
        outcome = beside_members(brokers, MEMBERS, frames)

    assert [row.label for row in outcome.rows] == [label for label, *_ in frames]
    assert [row.label for row in outcome.rows if row.mib > MIB_MAX] == []
    # A name that a request repeats is answered once, so no answer is longer than its request.
    assert [row.label for row in outcome.rows if row.answer > row.size] == []
    assert (outcome.refused, outcome.lost_lives) == ({}, 0)


def begin_a_frame(wire: Wire) -> None:
    """Send as much of a frame as the broker takes, and never its end."""
    wire.socket.setblocking(False)
    rest = memoryview(struct.pack(">i", FRAME_BYTES) + bytes(FRAME_BYTES - 1))
    try:
        while rest:
            rest = rest[wire.socket.send(rest) :]
    except BlockingIOError:
        pass


def test_frames_without_an_end_hold_up_nobody(tmp_path: Path, count: int) -> None:
    room = str(QUEUED_MIB << 20)
    settings = {"queued.max.request.bytes": room, "socket.request.max.bytes": room}
    kib: list[int] = []

    def small_requests(stack: ExitStack, broker: BrokerProcess) -> Iterator[Frame]:
        request = ("all topics", api_keys.METADATA, 12, MetadataRequest(None))
        yield request
        kib.append(resident_kib(broker.pid))
        for _ in range(STRANGERS):
            begin_a_frame(stack.enter_context(closing(Wire(broker.port))))
        yield from [request] * 10
        kib.append(resident_kib(broker.pid))

    with ExitStack() as stack, serving(tmp_path, count, settings) as brokers:
        outcome = beside_members(brokers, MEMBERS, small_requests(stack, brokers[0]))
        log = brokers[0].log()

    before, after = kib
    assert PRESSURE in log
    assert after - before <= (QUEUED_MIB + MIB_MAX) * 1024
    assert len({row.answer for row in outcome.rows}) == 1
    assert (outcome.refused, outcome.lost_lives) == ({}, 0)
