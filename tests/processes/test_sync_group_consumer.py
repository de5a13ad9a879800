"""The synchronous consumer in a group, over real sockets: iteration, commits, callbacks, keeper."""

from __future__ import annotations

import gc
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.client.late import error_when_late
from tests.support.patience import PATIENCE_S

from tarry.base.ids import TopicPartition
from tarry.client.core.admin.calls import NewTopic
from tarry.client.core.consumer.record_group import ConsumerRecord
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.errors import (
    ClientClosed,
    CommitFailed,
    ConcurrentUse,
    GroupFailed,
    NotSubscribed,
)
from tarry.client.sync.admin import Admin
from tarry.client.sync.consumer import Consumer
from tarry.client.sync.listener import Listener
from tarry.client.sync.producer import Producer
from tarry.link.errors import TimedOut

NOBODY = "127.0.0.1:1"
KEEPER = "tarry-keeper"


BROKER_TEXTS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "offsets.topic.num.partitions": "2",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    process.start(BROKER_TEXTS)
    yield process
    process.close()


@pytest.fixture
def topic(broker: BrokerProcess, request: pytest.FixtureRequest) -> str:
    """A topic of two partitions with three records each, named by the test; so is its group."""
    name = re.sub(r"\W", "-", request.node.name)[:200]
    with Admin(bootstrap_servers=broker.address) as admin:
        (outcome,) = admin.create_topics([NewTopic(name, 2)])
    assert outcome.error is None
    write(broker, name, 3)
    return name


@pytest.fixture
def make(broker: BrokerProcess, topic: str) -> Iterator[Callable[..., Consumer]]:
    """Makes members of the test's group; closes what the test left open."""
    made: list[Consumer] = []

    def make_one(*what: Any, **settings: Any) -> Consumer:
        given: dict[str, Any] = {
            "bootstrap_servers": broker.address,
            "group_id": topic,
            "auto_offset_reset": "earliest",
            **settings,
        }
        consumer = Consumer(*(what or (topic,)), **given)
        made.append(consumer)
        return consumer

    yield make_one
    for consumer in made:
        consumer.close()


def write(broker: BrokerProcess, topic: str, count: int) -> None:
    with Producer(bootstrap_servers=broker.address) as producer:
        for number in range(count):
            for partition in (0, 1):
                producer.send(topic, value=b"%d" % number, partition=partition)


def places(topic: str) -> list[TopicPartition]:
    return [(topic, 0), (topic, 1)]


def offsets_committed(consumer: Consumer, topic: str) -> list[int]:
    committed = consumer.committed(places(topic))
    return [-1 if one is None else one.offset for one in committed.values()]


def take(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    return list(itertools.islice(consumer, count))


class Teller(Listener):
    """Writes down what it is told, and does what the test says."""

    def __init__(self, action: Callable[[Consumer], None] | None = None) -> None:
        self.told: list[tuple[str, list[TopicPartition]]] = []
        self.threads: list[str] = []
        self.action = action

    def _hear(self, what: str, consumer: Consumer, places: list[TopicPartition]) -> None:
        self.told.append((what, sorted(places)))
        self.threads.append(threading.current_thread().name)
        if self.action is not None:
            self.action(consumer)

    def on_assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._hear("assigned", consumer, places)

    def on_revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._hear("revoked", consumer, places)

    def on_lost(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._hear("lost", consumer, places)


# --- Reading and committing


def test_the_next_member_goes_on_where_the_last_one_was_closed(make: Any, topic: str) -> None:
    with make() as first:
        read = take(first, 4)
        first.finish()

    with make() as second:
        rest = take(second, 2)

    offsets = sorted((record.partition, record.offset) for record in read + rest)
    assert offsets == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_a_record_whose_work_failed_is_read_again(make: Any, topic: str) -> None:
    failed: list[ConsumerRecord] = []
    with pytest.raises(ZeroDivisionError), make() as first:
        for number, record in enumerate(first):
            if number == 4:
                failed.append(record)
                raise ZeroDivisionError

    with make() as second:
        again = take(second, 1)

    assert (again[0].partition, again[0].offset) == (failed[0].partition, failed[0].offset)


def test_a_batch_whose_work_failed_is_read_again(make: Any, topic: str) -> None:
    with pytest.raises(ZeroDivisionError), make() as first:
        for number, _ in enumerate(first.batches(max_records=2)):
            if number == 1:
                raise ZeroDivisionError

    with make() as second:
        left = take(second, 4)

    assert len({(record.partition, record.offset) for record in left}) == 4


def test_without_automatic_commits_only_what_is_committed_counts(make: Any, topic: str) -> None:
    with make(enable_auto_commit=False) as first:
        records = take(first, 2)
        first.commit(records[0])

    with make(enable_auto_commit=False) as second:
        found = second.committed(places(topic))

    expected: dict[TopicPartition, CommittedOffset | None] = dict.fromkeys(places(topic))
    expected[topic, records[0].partition] = CommittedOffset(records[0].offset + 1, 0)
    assert found == expected


def test_a_batch_and_a_mapping_can_be_committed(make: Any, topic: str) -> None:
    consumer = make(enable_auto_commit=False)
    batch = next(consumer.batches(max_records=2))

    consumer.commit(batch)
    after_batch = consumer.committed([(topic, batch.partition)])
    consumer.commit({(topic, 0): 1, (topic, 1): 2})

    assert after_batch == {(topic, batch.partition): CommittedOffset(2, 0)}
    assert offsets_committed(consumer, topic) == [1, 2]


def test_offsets_are_committed_with_metadata_and_without_a_wait(make: Any, topic: str) -> None:
    consumer = make(enable_auto_commit=False)
    take(consumer, 2)
    heard: list[Any] = []
    offset = CommittedOffset(2, 0, "as of noon")

    consumer.commit_async({(topic, 0): 1}, lambda *told: heard.append(told))
    consumer.commit_async({(topic, 0): offset}, lambda *told: heard.append(told))
    consumer.pause(places(topic))
    wait_until(lambda: consumer.poll(0.02) or len(heard) == 2, "both outcomes")

    assert heard == [({(topic, 0): CommittedOffset(1)}, None), ({(topic, 0): offset}, None)]
    assert consumer.committed([(topic, 0)]) == {(topic, 0): offset}


def test_a_commit_without_words_is_behind_what_was_handed_out(make: Any, topic: str) -> None:
    consumer = make(enable_auto_commit=False)
    records = take(consumer, 2)

    consumer.commit()

    assert offsets_committed(consumer, topic)[records[0].partition] == 2


def test_a_commit_in_the_middle_of_an_iteration_loses_and_repeats_nothing(
    make: Any, topic: str
) -> None:
    consumer = make(enable_auto_commit=False)
    seen = []

    for record in consumer:
        seen.append((record.partition, record.offset))
        consumer.commit(record)
        if len(seen) == 6:
            break

    assert sorted(seen) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_a_seek_in_the_middle_of_an_iteration_is_obeyed_at_once(make: Any, topic: str) -> None:
    consumer = make()
    records = iter(consumer)
    first = next(records)

    consumer.seek(topic, first.partition, 2)
    consumer.pause([(topic, 1 - first.partition)])

    assert next(records).offset == 2


def test_a_pause_in_the_middle_of_an_iteration_skips_nothing(make: Any, topic: str) -> None:
    consumer = make()
    records = iter(consumer)
    first = next(records)
    place = (topic, first.partition)

    consumer.pause([place])
    others = [next(records) for _ in range(3)]
    consumer.resume([place])
    rest = [next(records) for _ in range(2)]

    assert {record.partition for record in others} == {1 - first.partition}
    assert [record.offset for record in rest] == [1, 2]


def test_partitions_of_ones_own_choice_are_committed_without_a_membership(
    make: Any, topic: str
) -> None:
    consumer = make({})
    consumer.assign([(topic, 1)])
    take(consumer, 2)

    consumer.commit()

    assert consumer.committed([(topic, 1)]) == {(topic, 1): CommittedOffset(2, 0)}
    assert consumer.group.member_id == ""


def test_what_is_not_assigned_is_not_committed(make: Any, topic: str) -> None:
    consumer = make()
    take(consumer, 1)

    with pytest.raises(CommitFailed, match="is not assigned to this member") as caught:
        consumer.commit({("another", 0): 1})

    assert not caught.value.is_retriable


# --- The group


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_two_members_share_a_topic(make: Any, topic: str, assignor: str) -> None:
    tellers = [Teller(), Teller()]
    settings = {"partition_assignment_strategy": assignor}
    first = make(topic, listener=tellers[0], **settings)
    take(first, 1)
    second = make(topic, listener=tellers[1], **settings)

    def is_shared() -> bool:
        first.poll(0.02)
        second.poll(0.02)
        return [len(one.assignment()) for one in (first, second)] == [1, 1]

    wait_until(is_shared, "a partition each")

    assert sorted(first.assignment() + second.assignment()) == places(topic)
    assert tellers[0].told[0] == ("assigned", places(topic))
    kept = first.assignment() if assignor == "cooperative-sticky" else []
    given_up = [place for place in places(topic) if place not in kept]
    assert ("revoked", given_up) in tellers[0].told


def test_a_static_member_that_comes_back_is_given_what_it_had(make: Any, topic: str) -> None:
    first = make(group_instance_id="i1")
    take(first, 1)
    generation_id = first.group.generation_id
    first.close()

    again = make(group_instance_id="i1")
    take(again, 1)

    assert again.group.generation_id == generation_id


def test_of_two_with_one_instance_id_the_first_is_fenced(make: Any, topic: str) -> None:
    teller = Teller()
    settings = {"group_instance_id": "i1", "heartbeat_interval_ms": 100}
    first = make(topic, listener=teller, **settings)
    take(first, 1)
    second = make(**settings)
    take(second, 1)

    def failure() -> str:
        try:
            first.poll(0.02)
        except GroupFailed as error:
            return str(error)
        return ""

    sentence = wait_until(failure, "the first to be fenced")

    assert "joined as group.instance.id=i1" in sentence
    assert teller.told[-1] == ("lost", places(topic))
    assert second.group.state == "Stable"


def test_partitions_that_are_added_are_read(broker: BrokerProcess, make: Any, topic: str) -> None:
    consumer = make(metadata_max_age_ms=100)
    take(consumer, 6)
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_partitions(topic, 3)

    wait_until(lambda: consumer.poll(0.02) or len(consumer.assignment()) == 3, "the third")

    assert sorted(consumer.assignment()) == [(topic, 0), (topic, 1), (topic, 2)]


def test_a_pattern_finds_its_topics(make: Any, topic: str) -> None:
    consumer = make(re.compile(f"^{re.escape(topic)}$"))

    take(consumer, 1)

    assert consumer.subscription() == [topic]
    assert sorted(consumer.assignment()) == places(topic)


def test_after_an_unsubscribe_the_next_poll_gives_everything_back(make: Any, topic: str) -> None:
    teller = Teller()
    consumer = make(topic, listener=teller)
    take(consumer, 1)

    consumer.unsubscribe()
    consumer.poll(0.0)

    assert teller.told == [("assigned", places(topic)), ("revoked", places(topic))]
    assert consumer.assignment() == []


def test_callbacks_come_in_the_thread_that_polls(make: Any, topic: str) -> None:
    teller = Teller()

    take(make(topic, listener=teller), 1)

    assert teller.threads == [threading.current_thread().name]


def test_a_callback_may_seek(make: Any, topic: str) -> None:
    def seek(consumer: Consumer) -> None:
        consumer.seek(topic, 0, 2)
        consumer.seek(topic, 1, 2)

    consumer = make(topic, listener=Teller(seek))

    assert sorted(record.offset for record in take(consumer, 2)) == [2, 2]


def test_a_callback_may_not_poll(make: Any, topic: str) -> None:
    def poll(consumer: Consumer) -> None:
        consumer.poll(0.0)

    consumer = make(topic, listener=Teller(poll))

    with pytest.raises(ConcurrentUse, match="poll was called inside on_assigned"):
        take(consumer, 1)


def test_what_a_callback_raises_comes_out_of_the_poll_and_the_next_one_goes_on(
    make: Any, topic: str
) -> None:
    def fail_once(consumer: Consumer) -> None:
        if len(teller.told) == 1:
            raise ZeroDivisionError

    teller = Teller(fail_once)
    consumer = make(topic, listener=teller)

    with pytest.raises(ZeroDivisionError):
        take(consumer, 1)

    assert len(take(consumer, 6)) == 6


# --- The keeper


def confirmed_ms(consumer: Consumer) -> int:
    """When the coordinator last knew of the member."""
    return consumer._core.membership.confirmed_ms


# A machine that stands still for longer than a session shows nothing: then with a longer one.
SESSIONS_MS = (600, 3_000, 15_000, 60_000)


def make_with_session(make: Any, topic: str, teller: Teller, session_ms: int) -> Consumer:
    """Make a member of a group that no other session had."""
    consumer: Consumer = make(
        topic,
        listener=teller,
        group_id=f"{topic}-{session_ms}",
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=100,
    )
    return consumer


def is_lost(consumer: Consumer, before: Any) -> bool:
    """Whether it is no member any more, or another one, since that view of its group."""
    return consumer.group.member_id != before.member_id


def test_a_reader_who_works_for_longer_than_a_session_stays_a_member(make: Any, topic: str) -> None:
    for session_ms in SESSIONS_MS:
        teller = Teller()
        consumer = make_with_session(make, topic, teller, session_ms)
        take(consumer, 1)
        before = consumer.group
        enough_ms = confirmed_ms(consumer) + 5 * session_ms // 2

        # Nobody polls: only the keeper can have beaten.
        wait_until(
            lambda consumer=consumer, before=before, enough_ms=enough_ms: (
                confirmed_ms(consumer) > enough_ms or is_lost(consumer, before)
            ),
            "heartbeats over two sessions",
        )
        rest = take(consumer, 5)
        if consumer.group == before:
            break
        consumer.close()

    assert len(rest) == 5
    assert consumer.group == before
    assert [what for what, _ in teller.told] == ["assigned"]


def test_a_callback_that_takes_longer_than_a_session_loses_nothing(make: Any, topic: str) -> None:
    def work(consumer: Consumer) -> None:
        before = consumer.group
        enough_ms = confirmed_ms(consumer) + 3 * session_ms // 2
        wait_until(
            lambda: confirmed_ms(consumer) > enough_ms or is_lost(consumer, before),
            "heartbeats in a callback",
        )

    for session_ms in SESSIONS_MS:
        teller = Teller(work)
        consumer = make_with_session(make, topic, teller, session_ms)
        found = take(consumer, 6)
        if len(teller.told) == 1:
            break
        consumer.close()

    assert len(found) == 6
    assert [what for what, _ in teller.told] == ["assigned"]


def test_a_reader_who_is_slower_than_the_poll_interval_loses_and_joins_again(
    make: Any, topic: str
) -> None:
    teller = Teller()
    consumer = make(topic, listener=teller, max_poll_interval_ms=400, heartbeat_interval_ms=100)
    take(consumer, 1)

    wait_until(lambda: consumer.group.member_id == "", "the keeper to leave")
    take(consumer, 6)

    # On a busy machine it is too slow once more.
    assert [what for what, _ in teller.told][:3] == ["assigned", "lost", "assigned"]


def test_a_callback_that_is_slower_than_the_poll_interval_loses_and_joins_again(
    make: Any, topic: str
) -> None:
    def work_once(consumer: Consumer) -> None:
        if len(teller.told) == 1:
            wait_until(lambda: consumer.group.member_id == "", "the keeper to leave")

    teller = Teller(work_once)
    consumer = make(topic, listener=teller, max_poll_interval_ms=400, heartbeat_interval_ms=100)

    assert len(take(consumer, 6)) == 6
    # On a busy machine it is too slow once more.
    assert [what for what, _ in teller.told][:3] == ["assigned", "lost", "assigned"]


def test_another_member_hears_of_a_rebalance_while_a_reader_works(make: Any, topic: str) -> None:
    teller = Teller()
    slow = make(topic, listener=teller, heartbeat_interval_ms=100)
    take(slow, 1)

    other = make(topic, heartbeat_interval_ms=100)
    wait_until(
        lambda: other.poll(0.02) or slow.group.state == "Preparing", "the keeper to hear of it"
    )

    assert [what for what, _ in teller.told] == ["assigned"]
    assert sorted(slow.assignment()) == places(topic)


def test_a_broker_that_comes_back_while_a_reader_works_still_knows_him(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.start(BROKER_TEXTS)
    try:
        with Admin(bootstrap_servers=broker.address) as admin:
            admin.create_topics([NewTopic("t", 2)])
        write(broker, "t", 3)
        teller = Teller()
        with Consumer(
            "t",
            listener=teller,
            bootstrap_servers=broker.address,
            group_id="g",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
        ) as consumer:
            take(consumer, 1)
            before = consumer.group
            broker.kill()
            wait_until(lambda: consumer.group.state == "Finding", "the keeper to hear of it")
            lost_ms = confirmed_ms(consumer)
            broker.start()
            # Nobody polls meanwhile.
            wait_until(lambda: confirmed_ms(consumer) > lost_ms, "a heartbeat at the new broker")
            rest = take(consumer, 5)
            told = list(teller.told)

        assert len(rest) == 5
        assert before.generation_id == consumer.group.generation_id
        assert [what for what, _ in told] == ["assigned"]
    finally:
        broker.close()


def keepers() -> int:
    return sum(thread.name == KEEPER for thread in threading.enumerate())


def test_there_is_one_thread_and_none_if_polls_beat(make: Any, topic: str) -> None:
    before = keepers()
    polls = make(topic, heartbeat_mode="poll")
    take(polls, 1)
    without = keepers() - before
    polls.close()

    consumer = make(topic)
    take(consumer, 1)
    with_one = keepers() - before
    consumer.close()

    assert (without, with_one) == (0, 1)
    wait_until(lambda: keepers() == before, "the keeper to end")


def test_a_consumer_that_is_forgotten_is_told_and_its_keeper_ends(
    broker: BrokerProcess, topic: str
) -> None:
    before = keepers()
    consumer: Consumer | None = Consumer(
        topic, bootstrap_servers=broker.address, group_id=topic, auto_offset_reset="earliest"
    )
    assert consumer is not None
    take(consumer, 1)

    with pytest.warns(ResourceWarning, match="a Consumer was not closed"):
        consumer = None
        gc.collect()

    wait_until(lambda: keepers() == before, "the keeper to end")


# --- Ends


def test_a_wakeup_ends_an_iteration_from_another_thread(make: Any, topic: str) -> None:
    consumer = make()
    seen: list[int] = []

    def read() -> None:
        seen.extend(record.offset for record in consumer)

    reader = threading.Thread(target=read)
    reader.start()
    wait_until(lambda: len(seen) == 6, "all records")
    consumer.wakeup()
    reader.join(PATIENCE_S)

    assert not reader.is_alive()


def test_a_wakeup_before_a_poll_ends_that_poll(make: Any, topic: str) -> None:
    consumer = make()
    take(consumer, 6)
    consumer.wakeup()

    assert consumer.poll(60.0) == []


def test_a_close_without_a_broker_is_bounded() -> None:
    consumer = Consumer("t", bootstrap_servers=NOBODY, group_id="g", close_timeout_ms=200)

    assert consumer.poll(0.05) == []
    error = error_when_late(
        lambda time_s: consumer.committed([("t", 0)], timeout=time_s), "connection refused", 0.2
    )
    consumer.close()

    assert isinstance(error, TimedOut)
    assert "connection refused" in str(error)


def test_a_close_tells_the_listener_and_commits_behind_it(make: Any, topic: str) -> None:
    committed_then: list[list[int]] = []

    def look(consumer: Consumer) -> None:
        committed_then.append(offsets_committed(consumer, topic))

    teller = Teller()
    consumer = make(topic, listener=teller)
    take(consumer, 6)
    consumer.finish()
    teller.action = look
    consumer.close()

    assert teller.told == [("assigned", places(topic)), ("revoked", places(topic))]
    assert committed_then == [[-1, -1]]
    assert offsets_committed(make(), topic) == [3, 3]


def test_what_a_callback_raises_comes_out_of_the_close_which_is_one_all_the_same(
    make: Any, topic: str
) -> None:
    def fail(consumer: Consumer) -> None:
        raise ZeroDivisionError

    teller = Teller()
    consumer = make(topic, listener=teller)
    take(consumer, 6)
    teller.action = fail

    with pytest.raises(ZeroDivisionError):
        consumer.close()

    with pytest.raises(ClientClosed):
        consumer.poll(0.0)
    assert offsets_committed(make(), topic) == [-1, -1]


def test_a_member_that_is_closed_leaves_its_group_at_once(make: Any, topic: str) -> None:
    first, second = make(), make()

    def is_shared() -> bool:
        first.poll(0.02)
        second.poll(0.02)
        return [len(one.assignment()) for one in (first, second)] == [1, 1]

    wait_until(is_shared, "a partition each")
    second.close()

    # Its session would have lasted 45 s.
    wait_until(lambda: first.poll(0.02) is not None and len(first.assignment()) == 2, "both")


@pytest.mark.parametrize(
    ("what", "settings", "sentence"),
    [
        (("t",), {}, "needs a group.id"),
        (("t", re.compile("u")), {"group_id": "g"}, "names or to one pattern"),
    ],
)
def test_what_cannot_be_subscribed_is_refused(what: Any, settings: Any, sentence: str) -> None:
    with pytest.raises(NotSubscribed, match=sentence):
        Consumer(*what, bootstrap_servers=NOBODY, **settings)


def test_a_subscribed_consumer_assigns_nothing_by_itself(make: Any, topic: str) -> None:
    with pytest.raises(NotSubscribed, match="unsubscribe first"):
        make().assign([(topic, 0)])
