"""Askers of one broker beside the lanes of its replication, with the other brokers by hand."""

from __future__ import annotations

import pytest
from tests.support.broker.questions import Question, what_is_stored
from tests.support.replication.follower_scene import LEADER, LEADER_LIFE, FollowerScene

from tarry.base.limits import UNSENT_BYTES_MAX
from tarry.broker.peers.asker import Asker, TooMuchAsked, UnknownBroker
from tarry.cluster.state.records import BrokerDescribed, BrokerUnregistered
from tarry.link.errors import ConnectionLost
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_log_dirs import DescribeLogDirsResponse


def asker_of(scene: FollowerScene) -> Asker:
    return scene.peers.asker("tests", timeout_ms=5_000, backoff_ms=100, answer_bytes_max=1 << 20)


def answer(scene: FollowerScene) -> None:
    """Answer the oldest question."""
    request = scene.transport.requests.popleft()
    scene.transport.answer(request, DescribeLogDirsResponse(results=[]))
    scene.turn()


def test_an_asker_has_a_connection_and_a_client_id_of_its_own() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.asked()

    asker_of(scene).ask(LEADER, what_is_stored())
    scene.run(2)

    fetch, question = scene.transport.requests
    assert (fetch.api_key, fetch.client_id) == (api_keys.FETCH, "broker-1-replica")
    assert (question.api_key, question.client_id) == (
        api_keys.DESCRIBE_LOG_DIRS,
        "broker-1-tests",
    )
    assert fetch.connection_id != question.connection_id


def test_nothing_more_is_asked_of_a_broker_that_takes_no_bytes() -> None:
    scene = FollowerScene()
    asker, questions = asker_of(scene), [what_is_stored() for _ in range(5)]
    asker.ask(LEADER, questions[0])
    scene.run(2)
    scene.transport.unsent = UNSENT_BYTES_MAX
    asker.ask(LEADER, questions[1])

    asker.ask(LEADER, questions[2])

    assert isinstance(questions[2].error, TooMuchAsked)
    # Once it has answered, it has taken them.
    answer(scene)
    answer(scene)
    scene.transport.unsent = 0
    asker.ask(LEADER, questions[3])
    asker.ask(LEADER, questions[4])
    answer(scene)
    answer(scene)
    assert [each.ends for each in questions] == [1] * 5
    assert [each.error is None for each in questions] == [True, True, False, True, True]


def moves(scene: FollowerScene) -> None:
    scene.life(LEADER, LEADER_LIFE, port=9999)


def dies(scene: FollowerScene) -> None:
    scene.life(LEADER, -1)


def lives_anew(scene: FollowerScene) -> None:
    scene.life(LEADER, LEADER_LIFE + 1)


@pytest.mark.parametrize("happen", [moves, dies, lives_anew])
def test_what_is_under_way_fails_when_the_broker_is_not_the_same(happen: object) -> None:
    scene = FollowerScene()
    asker, under_way, next_one = asker_of(scene), what_is_stored(), what_is_stored()
    asker.ask(LEADER, under_way)
    scene.run(2)
    scene.transport.requests.clear()

    assert callable(happen)
    happen(scene)

    assert isinstance(under_way.error, ConnectionLost)
    assert scene.transport.open == {}
    asker.ask(LEADER, next_one)
    scene.run(2)
    answer(scene)
    assert next_one.error is None
    port = 9999 if happen is moves else 9090 + LEADER
    assert list(scene.transport.open.values()) == [(f"b{LEADER}", port)]


def test_a_change_of_another_broker_ends_no_question() -> None:
    scene = FollowerScene()
    asker, question = asker_of(scene), what_is_stored()
    asker.ask(LEADER, question)
    scene.run(2)

    scene.life(3, 33)
    scene.life(LEADER, LEADER_LIFE)

    answer(scene)
    assert question.error is None


@pytest.mark.parametrize("is_unregistered", [True, False])
def test_a_broker_without_an_address_is_not_asked(is_unregistered: bool) -> None:
    scene = FollowerScene()
    asker, under_way, question = asker_of(scene), what_is_stored(), what_is_stored()
    asker.ask(LEADER, under_way)
    scene.run(2)
    record = (
        BrokerUnregistered(broker_id=LEADER)
        if is_unregistered
        else BrokerDescribed(
            broker_id=LEADER, directory_id="d", rack="", endpoints={"OUTSIDE": ("b", 9092)}
        )
    )
    scene.state.apply(record)
    scene.peers.on_applied(0, [record], None)

    asker.ask(LEADER, question)

    assert isinstance(under_way.error, ConnectionLost)
    assert isinstance(question.error, UnknownBroker)


def test_an_asker_that_hangs_up_fails_what_is_under_way() -> None:
    scene = FollowerScene()
    asker = asker_of(scene)
    questions: list[Question] = [what_is_stored(), what_is_stored()]
    for question in questions:
        asker.ask(LEADER, question)
    scene.run(2)

    asker.hang_up(LEADER, "a test")

    assert [str(each.error) for each in questions] == ["broker 2 at b2:9092: a test"] * 2
    assert scene.transport.open == {}
