"""A broker asks two others and itself by one call, and each way in which that can fail."""

from __future__ import annotations

import pytest
from tests.support.broker.questions import (
    Question,
    new_asker,
    stored,
    waiting_fetch,
    what_is_stored,
)
from tests.support.cluster.leader_scene import TOPIC, LeaderScene

from tarry.base.limits import QUESTIONS_UNDER_WAY_MAX
from tarry.broker.broker import Broker
from tarry.broker.peers.asker import AskerClosed, TooMuchAsked, UnknownBroker
from tarry.link.errors import BrokerUnreachable, ConnectionLost, RequestTimedOut

ASKING = 1
# What holds for another broker holds for the asking one.
EACH = pytest.mark.parametrize("asked", [ASKING, 3])


@pytest.fixture
def scene() -> LeaderScene:
    """Return three brokers, each with a partition of its own."""
    scene = LeaderScene()
    scene.create([[1], [2], [3]])
    scene.until(lambda: all(scene.leads(number, number - 1) for number in (1, 2, 3)), "leaders")
    return scene


def broker_of(scene: LeaderScene, broker_id: int = ASKING) -> Broker:
    broker = scene.nodes[broker_id].broker
    assert broker is not None
    return broker


def fetch_at(scene: LeaderScene, broker_id: int, **terms: int) -> Question:
    """Return a fetch that waits at the leader of its partition."""
    return waiting_fetch(broker_of(scene).topics[TOPIC].topic_id, broker_id - 1, **terms)


def wait_for(scene: LeaderScene, *questions: Question) -> None:
    scene.until(lambda: all(each.is_over for each in questions), "answers")
    assert [each.ends for each in questions] == [1] * len(questions)


def test_one_call_asks_two_brokers_and_this_one(scene: LeaderScene) -> None:
    asker = new_asker(broker_of(scene))
    questions = {broker_id: what_is_stored() for broker_id in (1, 2, 3)}

    for broker_id, question in questions.items():
        asker.ask(broker_id, question)

    # No time has passed.
    assert [each.is_over for each in questions.values()] == [True, False, False]
    wait_for(scene, *questions.values())
    assert {key: stored(each) for key, each in questions.items()} == {1: [0], 2: [1], 3: [2]}
    versions = {(each.version, each.correlation_id) for each in questions.values()}
    assert len(versions) == 1
    assert scene.violations() == []


@EACH
def test_questions_to_one_broker_are_answered_in_their_order(
    scene: LeaderScene, asked: int
) -> None:
    asker, other = new_asker(broker_of(scene)), new_asker(broker_of(scene))
    slow, behind, beside = fetch_at(scene, asked), what_is_stored(), what_is_stored()

    asker.ask(asked, slow)
    asker.ask(asked, behind)
    other.ask(asked, beside)

    wait_for(scene, beside)
    assert not slow.is_over
    assert not behind.is_over
    wait_for(scene, behind)
    assert slow.ends == 1
    assert slow.error is None


def test_a_broker_that_nobody_knows_is_not_asked(scene: LeaderScene) -> None:
    question = what_is_stored()

    new_asker(broker_of(scene)).ask(7, question)

    assert isinstance(question.error, UnknownBroker)
    assert question.ends == 1


def test_a_broker_that_refuses_the_connection_cannot_be_reached(scene: LeaderScene) -> None:
    asker, question, again = new_asker(broker_of(scene)), what_is_stored(), what_is_stored()
    scene.kill(3)

    asker.ask(3, question)
    wait_for(scene, question)

    assert isinstance(question.error, BrokerUnreachable)
    scene.restart(3)
    asker.ask(3, again)
    wait_for(scene, again)
    assert stored(again) == [2]


@EACH
def test_a_late_answer_fails_what_was_asked_behind_it_too(scene: LeaderScene, asked: int) -> None:
    asker = new_asker(broker_of(scene))
    late, behind = fetch_at(scene, asked, timeout_ms=400), what_is_stored()
    asker.ask(asked, late)
    asker.ask(asked, behind)

    wait_for(scene, late, behind)

    assert isinstance(late.error, RequestTimedOut)
    assert isinstance(behind.error, ConnectionLost)
    # The broker has given the fetch up with its connection.
    scene.until(lambda: not broker_of(scene, asked).fetches.purgatory.delayed, "no fetch", 1_000)
    again = what_is_stored()
    asker.ask(asked, again)
    wait_for(scene, again)
    assert stored(again) == [asked - 1]


def test_a_broker_that_is_silent_does_not_answer_in_time(scene: LeaderScene) -> None:
    asker, first, question = new_asker(broker_of(scene)), what_is_stored(), what_is_stored()
    asker.ask(3, first)
    wait_for(scene, first)
    scene.nodes[3].network.deaf_to.add(scene.nodes[ASKING].network)

    asker.ask(3, question)
    wait_for(scene, question)

    assert isinstance(question.error, RequestTimedOut)


@EACH
def test_an_answer_that_is_too_large_is_not_taken(scene: LeaderScene, asked: int) -> None:
    # The versions that a broker takes need some 500 bytes.
    asker = new_asker(broker_of(scene), answer_bytes_max=1_000)
    question = what_is_stored()
    for number in range(20):
        scene.create([[asked]], name=f"{number}-{'x' * 60}")

    asker.ask(asked, question)
    wait_for(scene, question)

    assert isinstance(question.error, ConnectionLost)
    assert "at most 1000 are taken" in str(question.error)


@EACH
def test_a_question_fails_when_the_life_of_the_broker_ends(scene: LeaderScene, asked: int) -> None:
    asker, question, again = new_asker(broker_of(scene)), fetch_at(scene, asked), what_is_stored()
    epoch = broker_of(scene).cluster.brokers[asked].broker_epoch
    asker.ask(asked, question)
    scene.pass_ms(100)
    assert not question.is_over

    scene.end_life(asked)
    wait_for(scene, question)

    assert isinstance(question.error, ConnectionLost)
    assert "its life is over" in str(question.error)
    scene.until(lambda: broker_of(scene).cluster.brokers[asked].broker_epoch > epoch, "a life")
    asker.ask(asked, again)
    wait_for(scene, again)
    assert stored(again) == [asked - 1]


@EACH
def test_only_so_many_questions_are_under_way(scene: LeaderScene, asked: int) -> None:
    asker = new_asker(broker_of(scene))
    questions = [fetch_at(scene, asked)]
    questions += [what_is_stored() for _ in range(QUESTIONS_UNDER_WAY_MAX)]

    for question in questions:
        asker.ask(asked, question)

    assert isinstance(questions[-1].error, TooMuchAsked)
    wait_for(scene, *questions)
    assert [each for each in questions[:-1] if each.error is not None] == []


@EACH
def test_a_broker_that_stops_asks_nothing_more(scene: LeaderScene, asked: int) -> None:
    broker = broker_of(scene)
    asker, question, late = new_asker(broker), fetch_at(scene, asked), what_is_stored()
    asker.ask(asked, question)

    scene.stop(ASKING)

    assert question.ends == 1
    assert isinstance(question.error, ConnectionLost)
    asker.ask(asked, late)
    assert isinstance(late.error, AskerClosed)
