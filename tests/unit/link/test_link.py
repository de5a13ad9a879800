"""A link alone: how it comes about, what it owes, how it ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.support.link.link_scene import ADDRESSES, Beat, LinkScene

from tarry.base import errors
from tarry.base.doors import connected, connected_to, disconnected
from tarry.link.errors import (
    BrokerUnreachable,
    ClientError,
    ConnectionLost,
    InvalidRequest,
    RequestTimedOut,
    UnsupportedVersion,
)
from tarry.link.link import DISCONNECTED, READY
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tarry.protocol.messages.heartbeat import HeartbeatResponse


@pytest.fixture
def scene() -> LinkScene:
    return LinkScene()


# --- Versions


def test_the_newest_common_version_is_spoken(scene: LinkScene) -> None:
    assert scene.ranges is not None
    scene.ranges[api_keys.HEARTBEAT] = (1, 3)

    scene.send(Beat())

    assert [one.version for one in scene.requests] == [3]
    assert scene.requests[0].client_id == "asker"


def test_an_exchange_may_ask_for_an_older_version(scene: LinkScene) -> None:
    beat = Beat()
    beat.newest = 2

    scene.send(beat)

    assert [one.version for one in scene.requests] == [2]


def test_no_common_version_ends_the_exchange_and_not_the_connection(scene: LinkScene) -> None:
    assert scene.ranges is not None
    scene.ranges[api_keys.HEARTBEAT] = (90, 99)
    beat = Beat()

    scene.send(beat)

    assert isinstance(beat.error, UnsupportedVersion)
    assert "90 to 99" in str(beat.error)
    assert "0 to 4" in str(beat.error)
    assert scene.link().state == READY


def test_a_broker_that_lacks_our_api_versions_is_asked_again_in_its_own(scene: LinkScene) -> None:
    scene.ranges = None
    scene.send(Beat())
    (first,) = scene.requests

    refusal = ApiVersionsResponse(errors.UNSUPPORTED_VERSION, [ApiVersion(18, 0, 2)])
    scene.tell(first.connection_id, first.answer(refusal, version=0))

    assert [one.version for one in scene.requests] == [4, 2]


# --- Order


def test_answers_go_to_the_exchanges_in_their_order(scene: LinkScene) -> None:
    beats = [Beat(name) for name in "abc"]
    scene.send(*beats)

    for code, request in enumerate(scene.requests):
        scene.reply(request, code)

    assert [one.message.member_id for one in scene.requests] == ["a", "b", "c"]
    assert [beat.ends for beat in beats] == [[0], [1], [2]]
    assert scene.link().in_flight == 0


def test_an_answer_may_come_in_any_pieces(scene: LinkScene) -> None:
    beats = [Beat(), Beat()]
    scene.send(*beats)
    stream = b"".join(one.answer(_response(7)) for one in scene.requests)

    for place in range(len(stream)):
        scene.tell(scene.requests[0].connection_id, stream[place : place + 1])

    assert [beat.ends for beat in beats] == [[7], [7]]


def test_an_exchange_without_an_answer_ends_when_it_is_sent(scene: LinkScene) -> None:
    beat = Beat()
    beat.has_response = False

    scene.send(beat)

    assert beat.ends == ["sent"]
    assert scene.link().in_flight == 0


def test_a_request_that_cannot_be_encoded_ends_alone(scene: LinkScene) -> None:
    bad, good = Beat(), Beat()
    bad.generation_id = 1 << 40

    scene.send(bad, good)

    assert isinstance(bad.error, InvalidRequest)
    assert len(scene.requests) == 1
    scene.reply(scene.requests[0])
    assert good.ends == [0]


@pytest.mark.parametrize("wrong", ["correlation", "length", "unasked"])
def test_a_peer_that_breaks_the_protocol_loses_its_connection(scene: LinkScene, wrong: str) -> None:
    beats = [Beat(), Beat()]
    scene.send(*beats)
    first, second = scene.requests
    if wrong == "correlation":
        scene.tell(second.connection_id, second.answer(_response(0)))
    elif wrong == "length":
        scene.tell(first.connection_id, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    else:
        scene.reply(first)
        scene.reply(second)
        scene.tell(second.connection_id, second.answer(_response(0)))

    assert scene.closes == [first.connection_id]
    assert scene.link().state == DISCONNECTED
    assert [len(beat.ends) for beat in beats] == [1, 1]
    if wrong != "unasked":
        assert all(isinstance(beat.error, ConnectionLost) for beat in beats)


# --- Limits of time


def test_a_late_answer_closes_the_connection_for_all_that_wait_behind_it(scene: LinkScene) -> None:
    first, second = Beat(timeout_ms=300), Beat(timeout_ms=5_000)
    scene.send(first, second)

    scene.pass_ms(299)
    assert (first.ends, second.ends) == ([], [])
    scene.pass_ms(1)

    assert isinstance(first.error, RequestTimedOut)
    assert isinstance(second.error, ConnectionLost)
    assert len(scene.closes) == 1


def test_what_was_never_sent_ends_at_its_own_time(scene: LinkScene) -> None:
    scene.refusals[ADDRESSES[1]] = ""
    patient, hasty = Beat(timeout_ms=1_500), Beat(timeout_ms=400)
    scene.send(patient, hasty)

    scene.pass_ms(400)
    assert isinstance(hasty.error, BrokerUnreachable)
    assert patient.ends == []
    scene.pass_ms(1_100)

    assert isinstance(patient.error, BrokerUnreachable)


def test_of_those_that_are_late_one_may_close_the_link_for_the_others(scene: LinkScene) -> None:
    """A heartbeat that is not sent in time gives the coordinator up, and its link with it."""

    class GivingUp(Beat):
        def on_failure(self, error: ClientError, now_ms: int) -> None:
            super().on_failure(error, now_ms)
            scene.links.close(ClientError("given up"), now_ms)

    scene.refusals[ADDRESSES[1]] = ""
    first, second = GivingUp(timeout_ms=400), Beat(timeout_ms=400)
    scene.send(first, second)

    scene.pass_ms(400)

    assert isinstance(first.error, BrokerUnreachable)
    assert (len(first.ends), len(second.ends)) == (1, 1)
    assert str(second.error) == "given up"


def test_what_ended_before_it_was_sent_is_not_sent(scene: LinkScene) -> None:
    scene.refusals[ADDRESSES[1]] = ""
    patient, hasty = Beat("patient", 1_500), Beat("hasty", 400)
    scene.send(patient, hasty)
    scene.pass_ms(400)

    scene.handle(connected_to(scene.link().connection_id, "10.0.0.1:9092"))

    assert [one.message.member_id for one in scene.requests] == ["patient"]


def test_an_attempt_to_connect_has_a_limit(scene: LinkScene) -> None:
    scene.refusals[ADDRESSES[1]] = ""
    beat = Beat(timeout_ms=9_000)
    scene.send(beat)

    scene.pass_ms(2_000)

    assert isinstance(beat.error, BrokerUnreachable)
    assert "took no connection within 2000 ms" in str(beat.error)
    assert len(scene.closes) == 1


def test_a_throttled_link_waits_before_its_next_request(scene: LinkScene) -> None:
    scene.send(Beat())
    scene.reply(scene.requests[0], throttle_ms=600)

    scene.send(Beat())
    scene.pass_ms(599)
    assert len(scene.requests) == 1
    scene.pass_ms(1)

    assert len(scene.requests) == 2


# --- Loss and return


def test_pauses_between_attempts_to_connect_double_up_to_their_limit(scene: LinkScene) -> None:
    scene.refusals[ADDRESSES[1]] = "connection refused"
    beats = [Beat(timeout_ms=60_000) for _ in range(9)]
    for count, beat in enumerate(beats, 1):
        scene.send(beat)
        while len(scene.connects) < count:
            scene.pass_ms(1)

    times = [time_ms for time_ms, _ in scene.connects]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    for pause_ms, middle_ms in zip(pauses, (50, 100, 200, 400, 800, 1_000, 1_000), strict=False):
        assert abs(pause_ms - middle_ms) <= middle_ms // 5
    assert all("10.0.0.1:9092: connection refused" in str(beat.error) for beat in beats)

    scene.refusals.clear()
    scene.send(Beat(timeout_ms=60_000))
    scene.pass_ms(1_200)
    assert (scene.link().state, scene.link().failures) == (READY, 0)


def test_a_lost_connection_fails_what_it_owed_and_is_made_again(scene: LinkScene) -> None:
    lost, next_one = Beat(), Beat()
    scene.send(lost)
    (old,) = scene.requests
    scene.handle(disconnected(old.connection_id, "reset by peer"))
    assert isinstance(lost.error, ConnectionLost)

    scene.send(next_one)
    scene.pass_ms(100)

    new = scene.requests[1]
    assert new.connection_id != old.connection_id
    scene.reply(old)
    assert next_one.ends == []
    scene.reply(new)
    assert next_one.ends == [0]


def test_what_a_lost_connection_had_not_sent_yet_counts_as_not_sent(scene: LinkScene) -> None:
    scene.send(Beat())
    scene.reply(scene.requests[0], throttle_ms=600)
    held = Beat()
    scene.send(held)

    scene.handle(disconnected(scene.requests[0].connection_id))

    assert type(held.error) is BrokerUnreachable


def test_half_an_answer_of_a_lost_connection_does_not_reach_the_next(scene: LinkScene) -> None:
    scene.send(Beat())
    (old,) = scene.requests
    scene.tell(old.connection_id, old.answer(_response(0))[:7])
    scene.handle(disconnected(old.connection_id))
    beat = Beat()

    scene.send(beat)
    scene.pass_ms(100)
    scene.reply(scene.requests[1], 3)

    assert beat.ends == [3]


def test_every_address_of_a_name_is_tried_before_the_link_fails(scene: LinkScene) -> None:
    scene.addresses[ADDRESSES[1]] = [ADDRESSES[1], ADDRESSES[2]]
    scene.refusals[ADDRESSES[1]] = "connection refused"

    scene.send(Beat())

    assert [address for _, address in scene.connects] == [ADDRESSES[1], ADDRESSES[2]]
    assert scene.link().state == READY


def test_a_closed_link_fails_everything_once(scene: LinkScene) -> None:
    beats = [Beat(), Beat()]
    scene.send(*beats)

    scene.links.close(ClientError("the end"), scene.now_ms)
    scene.links.close(ClientError("again"), scene.now_ms)

    assert [str(beat.error) for beat in beats] == ["the end", "the end"]


# --- Links


def test_a_broker_that_moves_gets_a_new_link(scene: LinkScene) -> None:
    beat = Beat()
    scene.send(beat)

    scene.links.set_brokers({1: ADDRESSES[2]}, "", scene.now_ms)

    assert "has left or moved" in str(beat.error)
    assert scene.link().address == ADDRESSES[2]
    assert scene.links.for_broker(2) is None


def test_a_dedicated_link_is_its_owners_alone(scene: LinkScene) -> None:
    shared, alone = Beat(), Beat()
    own = scene.links.dedicated(1, ADDRESSES[1])
    own.send(alone, scene.now_ms)
    scene.send(shared)

    scene.links.release(own, "not wanted", scene.now_ms)

    assert "not wanted" in str(alone.error)
    assert shared.ends == []
    assert len({one.connection_id for one in scene.requests}) == 2


def test_a_lost_connection_is_told_to_the_owner_of_all_and_of_one(scene: LinkScene) -> None:
    told: list[str] = []
    scene.links.when_lost = lambda now_ms: told.append("all")
    scene.link().when_lost = lambda now_ms: told.append("one")
    scene.send(Beat())

    scene.handle(disconnected(scene.requests[0].connection_id))

    assert told == ["all", "one"]


def test_a_connection_tells_who_began_it() -> None:
    assert connected_to(1, "10.0.0.1:9092").is_outgoing
    assert not connected(1, "PLAINTEXT", "10.0.0.1:50000").is_outgoing


def _response(code: int) -> Message:
    return HeartbeatResponse(0, code)


# --- Idleness


def test_a_connection_that_nobody_uses_is_closed_in_quiet_and_made_anew(scene: LinkScene) -> None:
    scene.links.when_lost = lambda now_ms: pytest.fail("nothing was lost")
    first, second = Beat(), Beat()
    scene.send(first)
    scene.reply(scene.requests.pop())
    scene.pass_ms(60_000)
    assert scene.link().state == READY

    scene.pass_ms(1)
    assert scene.link().state == DISCONNECTED
    assert scene.closes == [1]
    scene.send(second)
    scene.reply(scene.requests.pop())

    assert [first.ends, second.ends] == [[0], [0]]
    assert [at_ms for at_ms, _address in scene.connects] == [1_000, 61_001]
    assert (scene.links.made, scene.links.lost, scene.link().failures) == (2, 0, 0)


def test_a_connection_with_a_request_under_way_is_not_idle(scene: LinkScene) -> None:
    beat = Beat(timeout_ms=200_000)
    scene.send(beat)

    scene.pass_ms(150_000)
    scene.reply(scene.requests.pop())
    scene.pass_ms(60_000)

    assert beat.ends == [0]
    assert scene.closes == []
    scene.pass_ms(1)
    assert scene.closes == [1]


def test_a_connection_that_was_idle_while_nobody_looked_takes_no_request(scene: LinkScene) -> None:
    scene.send(Beat())
    scene.reply(scene.requests.pop())
    scene.now_ms += 60_001

    scene.send(Beat())

    assert scene.closes == [1]
    assert [one.connection_id for one in scene.requests] == [2]


def test_a_connection_stays_where_no_limit_is_set(scene: LinkScene) -> None:
    scene.links.settings = scene.links.settings._replace(connection_idle_ms_max=-1)
    scene.send(Beat())
    scene.reply(scene.requests.pop())

    scene.pass_ms(10_000_000)

    assert scene.closes == []
    assert scene.tasks.next_due_ms() is None


def test_no_limit_at_all_is_no_reason_to_spin(scene: LinkScene) -> None:
    scene.links.settings = scene.links.settings._replace(connection_idle_ms_max=0)
    beat = Beat(timeout_ms=10_000)
    scene.send(beat)

    scene.pass_ms(5_000)
    scene.reply(scene.requests.pop())
    scene.pass_ms(1_001)

    assert beat.ends == [0]
    assert scene.closes == [1]
