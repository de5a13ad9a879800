"""Answers that a link decodes in steps: one a turn, in order, and never counted as late."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from tests.support.link.link_scene import Beat, LinkScene

from tarry.base.doors import disconnected
from tarry.link import link as links
from tarry.link.errors import ConnectionLost
from tarry.link.exchange import StepDecoder
from tarry.protocol.messages.heartbeat import HeartbeatResponse, decode_heartbeat_response
from tarry.wire.reader import MalformedData, Reader

STEPS = 5


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> LinkScene:
    # Every answer is long.
    monkeypatch.setattr(links, "STEP_FRAME_BYTES", 0)
    return LinkScene()


class Steps:
    """A decoder of a heartbeat's answer that takes five steps, and counts them."""

    def __init__(self) -> None:
        self.taken = 0

    def __call__(self, reader: Reader, version: int) -> Generator[None, None, HeartbeatResponse]:
        for _ in range(STEPS):
            self.taken += 1
            yield
        return decode_heartbeat_response(reader, version)


def long_beat(decode: StepDecoder[Any], timeout_ms: int = 1_000) -> Beat:
    beat = Beat(timeout_ms=timeout_ms)
    beat.decode_in_steps = decode
    return beat


def turn(scene: LinkScene) -> None:
    """What one turn does with what is due, at the same time as before."""
    scene.tasks.advance(scene.now_ms)


def test_each_turn_takes_one_step(scene: LinkScene) -> None:
    steps = Steps()
    beat = long_beat(steps)
    scene.send(beat)

    scene.reply(scene.requests[0], 7)

    for taken in range(1, STEPS + 1):
        assert (steps.taken, beat.ends) == (taken, [])
        assert scene.tasks.next_due_ms() == scene.now_ms, "the next turn comes at once"
        turn(scene)
    assert beat.ends == [7]


def test_answers_behind_a_long_one_wait_for_it(scene: LinkScene) -> None:
    steps = Steps()
    long, short = long_beat(steps), Beat()
    scene.send(long, short)
    first, second = scene.requests

    scene.reply(first, 1)
    scene.reply(second, 2)

    assert (steps.taken, short.ends) == (1, []), "arriving bytes take no further step"
    for _ in range(STEPS):
        turn(scene)
    assert (long.ends, short.ends) == ([1], [2])


def test_an_answer_that_is_being_decoded_is_not_late(scene: LinkScene) -> None:
    beat = long_beat(Steps(), timeout_ms=2)
    scene.send(beat)
    scene.reply(scene.requests[0], 7)

    scene.pass_ms(50)

    assert beat.ends == [7]
    assert scene.closes == []


def test_a_flaw_in_the_middle_costs_the_connection(scene: LinkScene) -> None:
    def decode(reader: Reader, version: int) -> Generator[None, None, HeartbeatResponse]:
        yield
        raise MalformedData("text is not UTF-8")

    beat, behind = long_beat(decode), Beat()
    scene.send(beat, behind)
    request = scene.requests[0]
    scene.reply(request)

    turn(scene)
    scene.perform()

    assert isinstance(beat.error, ConnectionLost)
    assert "its answer to Heartbeat cannot be read: text is not UTF-8" in str(beat.error)
    assert isinstance(behind.error, ConnectionLost)
    assert scene.closes == [request.connection_id]


def test_a_connection_that_ends_in_the_middle_fails_the_exchange_once(scene: LinkScene) -> None:
    steps = Steps()
    beat = long_beat(steps)
    scene.send(beat)
    request = scene.requests[0]
    scene.reply(request)

    scene.handle(disconnected(request.connection_id, "reset"))
    scene.pass_ms(50)

    assert isinstance(beat.error, ConnectionLost)
    assert steps.taken == 1
