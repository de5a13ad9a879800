"""A follower's links to its leaders: lost, moved, without an answer, of a life that is over."""

from __future__ import annotations

import pytest
from tests.support.replication.follower_scene import (
    LEADER,
    LEADER_LIFE,
    OWN,
    FollowerScene,
    a_copy,
    part,
)

from tarry.base import errors
from tarry.broker.replication.followed import IDLE
from tarry.cluster.state.records import BrokerDescribed


@pytest.mark.parametrize(
    "code", [errors.FETCH_SESSION_ID_NOT_FOUND, errors.INVALID_FETCH_SESSION_EPOCH]
)
def test_a_session_that_the_leader_has_lost_begins_anew_at_once(code: int) -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.host(1)
    scene.asked()
    scene.answer(part(0), part(1))

    scene.asked()
    scene.answer(error_code=code, session_id=0)

    assert scene.positions() == {0: 0, 1: 0}
    assert scene.asked().session_epoch == 0
    # A leader that says so again is asked less often.
    scene.answer(error_code=code, session_id=0)
    scene.turn()
    assert not scene.transport.requests
    scene.wait(1_500)
    assert scene.asked().session_epoch == 0


def test_an_answer_of_another_session_counts_for_nothing() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0))

    scene.asked()
    scene.answer(part(0, a_copy(0)), session_id=6)

    assert partition.log.log_end_offset == 0
    scene.wait(1_500)
    assert scene.asked().session_epoch == 0


def test_a_lost_link_is_made_again_and_everything_is_asked_for() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0)))
    scene.flush()
    scene.asked()

    scene.transport.lose(scene.transport.requests.popleft().connection_id)
    scene.wait(3_000)

    assert scene.transport.connects == 2
    assert scene.positions() == {0: 1}
    assert scene.asked().session_epoch == 0


def test_a_leader_that_does_not_answer_in_time_is_left() -> None:
    scene = FollowerScene({"replica.socket.timeout.ms": "2000"})
    scene.host(0)
    scene.asked()
    silent = scene.transport.requests.popleft().connection_id

    scene.wait(4_500)

    assert silent not in scene.transport.open
    assert scene.positions() == {0: 0}


def test_a_leader_whose_life_is_over_is_not_asked_until_a_row_names_another() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()

    scene.life(LEADER, -1)
    scene.answer(part(0, a_copy(0)))

    assert scene.state_of(partition) == IDLE
    assert partition.log.log_end_offset == 0
    scene.wait(2_000)
    assert not scene.transport.requests
    scene.life(3, 33)
    scene.role(partition, leader_id=3, leader_epoch=1, broker_epoch=33)
    scene.asked()
    assert ("b3", 9093) in scene.transport.open.values()


def test_a_leader_that_has_restarted_is_asked_when_a_row_names_its_new_life() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.life(LEADER, LEADER_LIFE + 1)
    scene.transport.requests.clear()

    assert scene.state_of(partition) == IDLE
    scene.role(partition, leader_epoch=1, broker_epoch=LEADER_LIFE + 1)
    assert scene.positions() == {0: 0}


def test_the_connection_to_a_life_that_is_over_is_given_up() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.transport.requests.clear()

    # Its machine has lost power: nothing comes from it any more, not even an end.
    scene.life(LEADER, -1)
    assert not scene.transport.open
    scene.life(LEADER, LEADER_LIFE + 1)
    scene.role(partition, leader_epoch=1, broker_epoch=LEADER_LIFE + 1)

    assert scene.positions() == {0: 0}
    assert scene.asked().session_epoch == 0


def test_a_leader_that_moves_is_asked_at_its_new_address() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.host(1)
    scene.asked()
    scene.transport.requests.clear()

    scene.life(LEADER, LEADER_LIFE, port=9999)

    assert scene.positions() == {0: 0, 1: 0}
    assert list(scene.transport.open.values()) == [("b2", 9999)]


def test_nobody_is_asked_while_this_broker_has_no_life() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.asked()
    scene.life(OWN, -1)
    scene.answer(part(0))
    scene.wait(2_000)
    assert not scene.transport.requests

    scene.life(OWN, 12)

    asked = scene.asked()
    assert asked.replica_state is not None
    assert (asked.replica_state.replica_epoch, asked.session_epoch) == (12, 0)


def test_a_stop_closes_every_link() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.host(1, isr=[LEADER])
    scene.asked()

    scene.follower.stop()
    scene.turn()

    assert not scene.transport.open
    assert not scene.follower.has_work_left()


def test_a_leader_without_the_listener_between_brokers_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = FollowerScene()
    scene.state.apply(
        BrokerDescribed(
            broker_id=LEADER, directory_id="d", rack="", endpoints={"OUTSIDE": ("b", 9092)}
        )
    )
    scene.host(0)

    assert not scene.transport.requests
    assert f"broker {LEADER}" in caplog.text
    assert "it has no listener PLAINTEXT, its listeners are OUTSIDE" in caplog.text
