"""Questions that a broker asks itself, alone: they go the way of a client's requests."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch, values_in
from tests.support.broker.questions import Question, new_asker, waiting_fetch, what_is_stored

from tarry.base.limits import UNSENT_BYTES_MAX
from tarry.broker.peers.asker import Asker, TooMuchAsked
from tarry.link.errors import ConnectionLost
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_response
from tarry.protocol.messages.fetch import FetchResponse
from tarry.protocol.messages.heartbeat import HeartbeatRequest
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.reader import window_of


@pytest.fixture
def hand() -> BrokerByHand:
    hand = BrokerByHand()
    User(hand).create(ORDERS, max_message_bytes=str(UNSENT_BYTES_MAX))
    return hand


def own_id(hand: BrokerByHand) -> int:
    return hand.settings.node_id


def topic_id(hand: BrokerByHand) -> bytes:
    return hand.broker.topics[ORDERS].topic_id


def produce(hand: BrokerByHand, batch: bytes) -> Question:
    data = PartitionProduceData(index=0, records=window_of(batch))
    topic = TopicProduceData(topic_id=topic_id(hand), partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    return Question(api_keys.PRODUCE, request, 30_000)


def test_a_question_is_answered_in_the_same_turn(hand: BrokerByHand) -> None:
    question = what_is_stored()

    new_asker(hand.broker).ask(own_id(hand), question)

    assert question.ends == 1
    assert question.error is None
    key, version = question.api_key, question.version
    told = User(hand).client.ask(key, version, question.request)
    assert encode_response(key, version, 1, question.answer) == encode_response(
        key, version, 1, told
    )


def test_what_must_be_durable_is_answered_when_it_is(hand: BrokerByHand) -> None:
    asker, question = new_asker(hand.broker), produce(hand, a_batch(b"a"))

    asker.ask(own_id(hand), question)
    hand.turn()
    assert not question.is_over
    hand.settle()

    answer = question.answer
    assert isinstance(answer, ProduceResponse)
    assert answer.responses[0].partition_responses[0].base_offset == 0


def test_what_lies_in_a_file_comes_as_bytes(hand: BrokerByHand) -> None:
    # All answers together are larger than what may wait for a peer.
    large = bytes(UNSENT_BYTES_MAX // 3)
    asker = new_asker(hand.broker, answer_bytes_max=UNSENT_BYTES_MAX)
    for batch in (a_batch(b"a"), a_batch(large)):
        asker.ask(own_id(hand), produce(hand, batch))
        hand.settle()
    fetches = [waiting_fetch(topic_id(hand), 0, offset=1) for _ in range(4)]

    for fetch in fetches:
        asker.ask(own_id(hand), fetch)

    for fetch in fetches:
        assert isinstance(fetch.answer, FetchResponse)
        assert values_in(fetch.answer.responses[0].partitions[0]) == [large]


def test_a_question_that_waits_ends_with_its_record(hand: BrokerByHand) -> None:
    asker, question = new_asker(hand.broker), waiting_fetch(topic_id(hand), 0)
    asker.ask(own_id(hand), question)
    hand.turn()
    assert not question.is_over

    User(hand).client.ask(api_keys.PRODUCE, 13, produce(hand, a_batch(b"a")).request)

    assert isinstance(question.answer, FetchResponse)
    assert hand.broker.fetches.purgatory.delayed == 0


def test_only_so_many_bytes_of_questions_wait(hand: BrokerByHand) -> None:
    asker = new_asker(hand.broker)
    large = a_batch(bytes(UNSENT_BYTES_MAX // 2 + 1))
    questions = [waiting_fetch(topic_id(hand), 0, wait_ms=300)]
    questions += [produce(hand, large) for _ in range(3)]

    for question in questions:
        asker.ask(own_id(hand), question)

    assert [each.is_over for each in questions] == [False, False, False, True]
    assert isinstance(questions[-1].error, TooMuchAsked)
    hand.turn(after_ms=300)
    hand.settle()
    assert [each.ends for each in questions] == [1, 1, 1, 1]
    again = what_is_stored()
    asker.ask(own_id(hand), again)
    assert again.error is None


class Chain(Question):
    """Question that asks the next one when it is answered."""

    def __init__(self, asker: Asker, broker_id: int, left: int) -> None:
        what = what_is_stored()
        super().__init__(what.api_key, what.request)
        self.asker = asker
        self.broker_id = broker_id
        self.left = left
        self.next_one: Chain | None = None

    def on_response(self, response: object, now_ms: int) -> None:
        super().on_response(response, now_ms)
        if self.left:
            self.next_one = Chain(self.asker, self.broker_id, self.left - 1)
            self.asker.ask(self.broker_id, self.next_one)


def test_questions_that_follow_each_other_are_no_deeper_than_one(hand: BrokerByHand) -> None:
    first = Chain(new_asker(hand.broker), own_id(hand), 2_000)

    first.asker.ask(first.broker_id, first)
    # The answers are made in steps, of which a turn has a bounded number.
    hand.settle()

    last, count = first, 1
    while last.next_one is not None:
        last, count = last.next_one, count + 1
    assert count == 2_001
    assert last.ends == 1


def test_a_request_that_breaks_the_protocol_closes_the_connection(hand: BrokerByHand) -> None:
    asker, before = new_asker(hand.broker), what_is_stored()
    asker.ask(own_id(hand), before)
    # It is still among the versions that were told before.
    del hand.broker.routes[api_keys.HEARTBEAT]
    question = Question(api_keys.HEARTBEAT, HeartbeatRequest("g", 1, "m"))

    asker.ask(own_id(hand), question)

    assert before.error is None
    assert isinstance(question.error, ConnectionLost)
    assert question.ends == 1


def test_a_question_ends_when_its_connection_is_closed(hand: BrokerByHand) -> None:
    asker, question = new_asker(hand.broker), waiting_fetch(topic_id(hand), 0)
    asker.ask(own_id(hand), question)

    hand.broker.answers.send_all_away("a test")

    assert isinstance(question.error, ConnectionLost)
    assert hand.broker.fetches.purgatory.delayed == 0
    assert hand.broker.answers.connections == {}
    again = what_is_stored()
    asker.ask(own_id(hand), again)
    hand.turn(after_ms=100)
    hand.settle()
    assert again.error is None


def test_a_stop_does_not_wait_for_what_a_broker_asks_itself(hand: BrokerByHand) -> None:
    asker, question = new_asker(hand.broker), waiting_fetch(topic_id(hand), 0)
    asker.ask(own_id(hand), question)

    hand.stop()

    assert question.ends == 1
    assert hand.broker.stop_reason == ""


def test_a_broker_that_asks_nothing_has_nothing_due_for_it(hand: BrokerByHand) -> None:
    before = len(hand.broker.timer)

    new_asker(hand.broker)

    assert len(hand.broker.timer) == before + 1
