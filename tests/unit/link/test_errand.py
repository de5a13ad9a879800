"""Calls and errands: what is repeated, with which pauses, and when it ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.support.link.link_scene import ADDRESSES, LinkScene

from tarry.base.doors import disconnected
from tarry.link.errand import Call, Errand, Outcomes, Pause, Steps, until_settled
from tarry.link.errors import BrokerUnreachable, ClientError, ConnectionLost, TimedOut
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.heartbeat import (
    HeartbeatRequest,
    HeartbeatResponse,
    decode_heartbeat_response,
)

# Codes of the answers: passes, and does not.
BUSY = 14
REFUSED = 16


class Passing(ClientError):
    is_retriable = True


class AskCode(Call[HeartbeatResponse, int]):
    """Result: the code, if it is no error."""

    def __init__(self, name: str = "", target: int = 1) -> None:
        super().__init__(api_keys.HEARTBEAT, decode_heartbeat_response, target)
        self.name = name

    def build(self, version: int) -> Message:
        return HeartbeatRequest("group", 1, self.name)

    def interpret(self, response: HeartbeatResponse) -> int:
        if response.error_code == BUSY:
            raise Passing("busy")
        if response.error_code == REFUSED:
            raise ClientError("refused")
        return int(response.error_code)


class AskOnce(AskCode):
    repeats = False


@pytest.fixture
def scene() -> LinkScene:
    return LinkScene()


def ask(scene: LinkScene, call: AskCode, timeout_ms: int = 10_000) -> None:
    scene.errands.ask(call, timeout_ms, scene.now_ms)
    scene.perform()


def begin(scene: LinkScene, steps: Steps[list[int]], timeout_ms: int = 10_000) -> Errand[list[int]]:
    errand = Errand(steps)
    scene.errands.begin(errand, timeout_ms, scene.now_ms)
    scene.perform()
    return errand


def reply(scene: LinkScene, code: int = 0) -> None:
    """Answer the newest request, and let the errands go on."""
    scene.reply(scene.requests[-1], code)
    scene.errands.work(scene.now_ms)
    scene.perform()


# --- Calls


def test_a_call_has_the_result_of_its_answer(scene: LinkScene) -> None:
    call = AskCode()
    ask(scene, call)
    assert scene.errands.are_waiting

    reply(scene, 5)

    assert call.result == 5
    assert not scene.errands.are_waiting


def test_a_failure_that_passes_is_repeated_after_pauses_that_grow(scene: LinkScene) -> None:
    call = AskCode()
    ask(scene, call, 60_000)
    times: list[int] = []
    for count in range(1, 7):
        assert len(scene.requests) == count
        times.append(scene.now_ms)
        reply(scene, BUSY)
        while len(scene.requests) == count:
            scene.pass_ms(10)

    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses == sorted(pauses)
    assert 80 <= pauses[0] <= 130
    assert pauses[-1] <= 1_210
    assert scene.failures_told == 6
    reply(scene, 0)
    assert call.result == 0


def test_a_lost_connection_is_a_failure_that_passes(scene: LinkScene) -> None:
    call = AskCode()
    ask(scene, call)

    scene.handle(disconnected(scene.requests[-1].connection_id))
    scene.pass_ms(500)
    reply(scene, 0)

    assert call.result == 0
    assert call.attempts == 2


def test_a_request_without_an_answer_is_repeated_after_the_time_of_one_request(
    scene: LinkScene,
) -> None:
    call = AskCode()
    ask(scene, call)

    scene.pass_ms(1_500)
    reply(scene)

    assert call.result == 0
    assert len(scene.requests) == 2


def test_a_refusal_is_not_repeated(scene: LinkScene) -> None:
    call = AskCode()
    ask(scene, call)

    reply(scene, REFUSED)
    scene.pass_ms(5_000)

    assert str(call.error) == "refused"
    assert len(scene.requests) == 1


def test_a_call_that_does_not_repeat_ends_with_its_first_failure(scene: LinkScene) -> None:
    lost, unknown = AskOnce(), AskOnce(target=9)
    ask(scene, lost)
    ask(scene, unknown)

    scene.handle(disconnected(scene.requests[-1].connection_id))

    assert isinstance(lost.error, ConnectionLost)
    assert isinstance(unknown.error, BrokerUnreachable)


def test_a_call_to_a_broker_that_is_not_known_yet_waits_for_it(scene: LinkScene) -> None:
    call = AskCode(target=3)
    ask(scene, call)
    scene.pass_ms(300)

    scene.links.add_broker(3, ADDRESSES[2])
    while not scene.requests:
        scene.pass_ms(10)
    reply(scene)

    assert call.result == 0


def test_the_time_of_a_call_ends_with_what_stood_in_its_way(scene: LinkScene) -> None:
    scene.refusals[ADDRESSES[1]] = "connection refused"
    call = AskCode()
    ask(scene, call, 3_000)

    scene.pass_ms(3_000)

    assert isinstance(call.error, TimedOut)
    assert "10.0.0.1:9092: connection refused (tried for 3 s)" in str(call.error)


def test_an_answer_after_the_end_counts_for_nothing(scene: LinkScene) -> None:
    call = AskCode()
    ask(scene, call, 500)
    scene.pass_ms(500)
    first = call.error

    scene.reply(scene.requests[0])

    assert call.error is first is not None


def test_a_call_that_ended_in_a_pause_is_not_sent_again(scene: LinkScene) -> None:
    call = AskCode()
    ask(scene, call)
    reply(scene, BUSY)

    scene.errands.fail_all(ClientError("closed"))
    scene.pass_ms(5_000)

    assert len(scene.requests) == 1


# --- Errands


def test_the_calls_of_a_step_go_out_at_once_and_the_next_step_waits_for_all(
    scene: LinkScene,
) -> None:
    def steps() -> Steps[list[int]]:
        first = [AskCode("a"), AskCode("b")]
        yield first
        last = AskCode("c")
        yield [last]
        return [one.result for one in [*first, last]]

    errand = begin(scene, steps())
    first, second = scene.requests
    scene.reply(first, 1)
    scene.errands.work(scene.now_ms)
    scene.perform()
    assert len(scene.requests) == 2

    scene.reply(second, 2)
    scene.errands.work(scene.now_ms)
    scene.perform()
    reply(scene, 3)

    assert errand.take() == [1, 2, 3]


def test_an_errand_raises_what_its_steps_raise(scene: LinkScene) -> None:
    def steps() -> Steps[list[int]]:
        call = AskCode()
        yield [call]
        assert call.error is not None
        raise call.error

    errand = begin(scene, steps())
    reply(scene, REFUSED)

    with pytest.raises(ClientError, match="refused"):
        errand.take()


def test_a_pause_at_the_end_of_the_time_raises_its_reason_in_the_steps(scene: LinkScene) -> None:
    def steps() -> Steps[list[int]]:
        for failures in range(1, 100):
            yield Pause(failures, ClientError("nobody is there"))
        return []

    errand = begin(scene, steps(), 700)
    scene.pass_ms(699)
    assert not errand.is_done
    scene.pass_ms(1)

    with pytest.raises(TimedOut, match="nobody is there"):
        errand.take()


def test_closing_ends_errands_and_calls(scene: LinkScene) -> None:
    alone = AskCode()
    ask(scene, alone)

    def steps() -> Steps[list[int]]:
        yield [AskCode()]
        return []

    errand = begin(scene, steps())

    scene.errands.fail_all(ClientError("closed"))

    assert str(alone.error) == str(errand.error) == "closed"
    assert not scene.errands.are_waiting


# --- Until settled


def settle(
    scene: LinkScene, keys: str, timeout_ms: int = 10_000
) -> Errand[dict[str, int | ClientError]]:
    """Ask about each key that is left with a call of its own."""

    def attempt(outcomes: Outcomes[str, int]) -> Steps[None]:
        calls = {key: AskOnce(key) for key in outcomes.left}
        yield [*calls.values()]
        for key, call in calls.items():
            outcomes.settle(key, call.error or call.result)

    def late_error(key: str, reason: ClientError, late: TimedOut) -> ClientError:
        return TimedOut(f"{key}: {reason}")

    outcomes: Outcomes[str, int] = Outcomes(keys, lambda error: error.is_retriable)
    errand = Errand(until_settled(outcomes, attempt, late_error))
    scene.errands.begin(errand, timeout_ms, scene.now_ms)
    scene.perform()
    return errand


def test_only_what_is_not_settled_is_asked_about_again(scene: LinkScene) -> None:
    errand = settle(scene, "abc")
    for request, code in zip(list(scene.requests), (4, BUSY, REFUSED), strict=True):
        scene.reply(request, code)
    scene.errands.work(scene.now_ms)

    scene.pass_ms(200)
    assert [one.message.member_id for one in scene.requests] == ["a", "b", "c", "b"]
    reply(scene, 6)

    answers = errand.take()
    assert (answers["a"], answers["b"], str(answers["c"])) == (4, 6, "refused")
    assert list(answers) == ["a", "b", "c"]


def test_what_is_not_settled_in_time_has_an_error_of_its_own(scene: LinkScene) -> None:
    errand = settle(scene, "ab", 150)
    for request, code in zip(list(scene.requests), (4, BUSY), strict=True):
        scene.reply(request, code)
    scene.errands.work(scene.now_ms)
    scene.pass_ms(120)
    reply(scene, BUSY)
    scene.pass_ms(30)

    answers = errand.take()
    assert (answers["a"], str(answers["b"])) == (4, "b: busy")
