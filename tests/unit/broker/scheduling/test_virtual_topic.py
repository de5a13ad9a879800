"""The virtual topic: what waits is read under a name of its own, and nobody writes there."""

from __future__ import annotations

import pytest
from tests.support.broker.admin_user import SET, TOPIC, Operator
from tests.support.broker.broker_user import ORDERS, a_batch, records_in
from tests.support.broker.group_user import READERS, GroupUser
from tests.support.broker.waiting_reader import SHOWN, WaitingReader, seen_in

from tarry.base import errors
from tarry.cluster.state.scheduled_topics import other_id
from tarry.protocol import api_keys
from tarry.protocol.message import ZERO_UUID
from tarry.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tarry.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tarry.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tarry.records.builder import Headers
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.wire.compression import NAMES

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
LATER_MS = 3_000
HOUR_MS = 3_600_000
BY_TIMESTAMP = {"delay_enable": "true", "delay_source": "timestamp"}
BY_HEADER = {"delay_enable": "true", "delay_source": "header"}


class Scheduler(WaitingReader):
    """A user of `orders`, whose records wait, who reads what waits."""

    def __init__(self, hand: BrokerByHand | None = None, **topic: str) -> None:
        super().__init__(hand or BrokerByHand())
        self.create(ORDERS, **(topic or BY_TIMESTAMP))

    def schedule(self, *values: bytes, after_ms: int = LATER_MS, codec: int = 0) -> None:
        times = tuple(START_WALL_MS + after_ms for _ in values)
        answer = self.produce(a_batch(*values, times=times, codec=codec))
        assert (answer.error_code, answer.base_offset) == (errors.NONE, -1)
        self.hand.settle()

    def send(self, *records: tuple[bytes, Headers]) -> None:
        values = [value for value, _ in records]
        answer = self.produce(a_batch(*values, headers=tuple(each for _, each in records)))
        assert answer.error_code == errors.NONE, answer.error_message
        self.hand.settle()

    def pass_time(self, ms: int) -> None:
        self.hand.turn(after_ms=ms)
        self.hand.settle()

    def begin_anew(self) -> None:
        self.client = self.hand.connect()
        self.hand.settle()


def after(ms: int, schedule_id: str = "") -> Headers:
    headers: Headers = [("x-deliver-after", b"%d" % ms)]
    return [*headers, ("x-sched-id", schedule_id.encode())] if schedule_id else headers


def cancel(schedule_id: str) -> Headers:
    return [("x-sched-id", schedule_id.encode()), ("x-sched-cancel", b"1")]


# -- what is shown


@pytest.mark.parametrize("codec", range(len(NAMES)), ids=NAMES)
def test_what_waits_is_shown_until_it_is_released(codec: int):
    user = Scheduler()
    user.schedule(b"soon", codec=codec)
    user.schedule(b"later", b"too", after_ms=HOUR_MS, codec=codec)

    shown = [user.values()]
    user.pass_time(LATER_MS)
    shown.append(user.values())
    user.pass_time(HOUR_MS)
    shown.append(user.values())

    assert shown == [[b"soon", b"later", b"too"], [b"later", b"too"], []]


def test_the_offsets_are_those_of_the_log_in_which_the_records_wait():
    user = Scheduler()
    user.schedule(b"a", b"b")
    user.schedule(b"c")

    records = user.read()

    # Before each batch stands a note.  Before the first one stands a checkpoint, too.
    assert records == [(2, b"a"), (3, b"b"), (5, b"c")]
    assert user.list_offsets(EARLIEST, topic=SHOWN).offset == 0
    assert user.list_offsets(LATEST, topic=SHOWN).offset == 6
    assert user.read(3) == [(2, b"a"), (3, b"b"), (5, b"c")]
    assert user.read(4) == [(5, b"c")]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_of_fetch_reads_it(version: int):
    user = Scheduler()
    user.schedule(b"a")
    topic_id = user.metadata().topic_id

    seen = user.look(version=version, topic_id=topic_id)

    assert seen.records == [(2, b"a")]
    assert seen.next_offset == 3


def test_a_record_that_is_cancelled_or_replaced_is_not_shown():
    user = Scheduler(**BY_HEADER)
    user.send((b"cancelled", after(HOUR_MS, "one")))
    user.send((b"replaced", after(HOUR_MS, "two")))
    user.send((b"stays", after(HOUR_MS, "three")))

    user.send((b"", cancel("one")))
    user.send((b"anew", after(2 * HOUR_MS, "two")))

    assert user.values() == [b"stays", b"anew"]


def test_of_a_batch_of_several_times_what_waits_is_shown():
    user = Scheduler(**BY_HEADER)
    user.send((b"a", after(LATER_MS)), (b"b", after(HOUR_MS)), (b"c", after(2 * HOUR_MS)))

    shown = []
    for ms in (0, LATER_MS, HOUR_MS, HOUR_MS):
        user.pass_time(ms)
        shown.append(user.values())

    assert shown == [[b"a", b"b", b"c"], [b"b", b"c"], [b"c"], []]


def test_records_that_wait_keep_their_offsets_in_a_batch_of_which_others_are_gone():
    user = Scheduler(**BY_HEADER)
    user.send(
        (b"a", after(HOUR_MS, "one")),
        (b"b", after(HOUR_MS)),
        (b"c", after(HOUR_MS, "two")),
        (b"d", after(HOUR_MS)),
    )
    before = user.read()
    user.send((b"", cancel("two")))

    assert before == [(2, b"a"), (3, b"b"), (4, b"c"), (5, b"d")]
    assert user.read() == [(2, b"a"), (3, b"b"), (5, b"d")]
    assert user.read(4) == user.read()


@pytest.mark.parametrize("is_clean", [False, True])
def test_after_a_start_it_shows_what_waits_yet(is_clean: bool):
    user = Scheduler()
    user.schedule(b"soon")
    user.schedule(b"later", after_ms=HOUR_MS)
    user.pass_time(LATER_MS)

    if is_clean:
        user.hand.stop()
        user.hand.start()
    else:
        user.hand.crash()
    user.begin_anew()

    assert user.values() == [b"later"]


def test_while_the_schedule_is_read_a_client_is_told_to_come_again():
    user = Scheduler()
    user.schedule(b"a", after_ms=HOUR_MS)
    user.hand.crash()
    user.client = user.hand.connect()

    user.send_fetch(0, topic=SHOWN)
    user.hand.turn()
    early = user.answers()
    user.hand.settle()
    late = [*early, *user.answers()]

    codes = [part.error_code for each in late for part in each.responses[0].partitions]
    assert codes == [errors.NOT_LEADER_OR_FOLLOWER]
    assert user.values() == [b"a"]


# -- long polls, sizes and gaps


def test_a_fetch_waits_until_more_is_parked():
    user = Scheduler()
    user.schedule(b"a")
    end = user.list_offsets(LATEST, topic=SHOWN).offset
    other = user.hand.connect()
    request = user.fetch_request(end, topic=SHOWN, max_wait_ms=500)
    other.send(api_keys.FETCH, 12, request)
    user.hand.settle()

    before = other.answers()
    user.schedule(b"b")
    (answer,) = other.answers()

    assert before == []
    assert seen_in(answer.responses[0].partitions[0], end).records == [(end + 1, b"b")]


@pytest.mark.parametrize("size", [1, 100, 200, 1_000, 10_000])
def test_an_answer_has_no_more_bytes_than_are_asked_for(size: int):
    user = Scheduler()
    for number in range(40):
        user.schedule(b"%d" % number, after_ms=LATER_MS if number % 3 else HOUR_MS)
    user.pass_time(LATER_MS)

    records = user.read(partition_bytes=size)
    window = user.fetch(0, topic=SHOWN, partition_bytes=size).records

    assert [value for _, value in records] == [b"%d" % each for each in range(0, 40, 3)]
    assert window is not None
    # The first batch comes whatever its size is.
    assert len(window) <= max(size, 200)


def test_neighbours_that_wait_go_in_one_piece_and_what_is_gone_is_left_out():
    user = Scheduler()
    for number in range(30):
        user.schedule(b"%d" % number, after_ms=LATER_MS if 10 <= number < 20 else HOUR_MS)
    user.pass_time(LATER_MS)
    seen = user.look()

    # Two pieces of ten bodies with nine notes between them; nothing stands for what is gone.
    assert [value for _, value in seen.records] == [
        b"%d" % each for each in range(30) if not 10 <= each < 20
    ]
    assert seen.batch_count == 2 * (10 + 9)


def test_a_long_gap_is_gone_over_in_bounded_shares():
    user = Scheduler()
    user.hand.broker.scheduling.budget.per_turn = 50
    user.schedule(b"first", after_ms=HOUR_MS)
    for number in range(200):
        user.schedule(b"%d" % number)
    user.schedule(b"last", after_ms=HOUR_MS)
    user.hand.turn(after_ms=LATER_MS)
    user.hand.settle()
    user.hand.turn()

    offset, looks = 0, 0
    found: list[bytes | None] = []
    while b"last" not in found:
        seen = user.look(offset)
        offset = seen.next_offset
        found += [value for _, value in seen.records]
        looks += 1

    assert found == [b"first", b"last"]
    assert looks >= 400 // 50


def test_a_consumer_whose_turn_has_no_share_left_stays_and_comes_again():
    user = Scheduler()
    user.schedule(b"a")
    budget = user.hand.broker.scheduling.budget
    budget.per_turn = 0
    user.hand.turn()

    nothing = user.look(2)
    budget.per_turn = 1_000
    user.hand.turn()

    assert (nothing.records, nothing.next_offset) == ([], 2)
    assert user.values() == [b"a"]


def test_a_fetch_of_thousands_of_partitions_shows_it_too():
    user = Scheduler()
    user.schedule(b"a")

    parts = user.fetch_all(*[0] * 2_500, topic=SHOWN)

    assert seen_in(parts[0], 0).records == [(2, b"a")]
    assert {each.error_code for each in parts[1:]} == {errors.UNKNOWN_TOPIC_OR_PARTITION}


def test_what_is_gone_before_all_that_waits_is_passed_at_once():
    user = Scheduler()
    for number in range(300):
        user.schedule(b"%d" % number)
    user.schedule(b"last", after_ms=HOUR_MS)
    user.pass_time(LATER_MS)
    user.pass_time(LATER_MS)

    seen = user.look()

    assert [value for _, value in seen.records] == [b"last"]
    assert seen.batch_count <= 2


# -- where it is named


def test_metadata_names_it_where_it_is_asked_for_and_nowhere_else():
    user = Scheduler()
    user.create("bills")

    by_name = user.metadata()
    by_id = user.metadata(None, by_name.topic_id)
    everything = user.client.ask(api_keys.METADATA, 12, MetadataRequest(None))
    missing = [
        user.metadata(f"__scheduled.{name}").error_code for name in ("bills", "nothing", SHOWN)
    ]

    assert (by_name.error_code, by_name.is_internal) == (errors.NONE, True)
    assert by_name.topic_id == other_id(user.topic_id())
    assert [each.leader_id for each in by_name.partitions] == [user.hand.broker.broker_id]
    assert (by_id.name, by_id.topic_id) == (SHOWN, by_name.topic_id)
    assert isinstance(everything, MetadataResponse)
    assert [each.name for each in everything.topics] == ["bills", ORDERS]
    assert missing == [errors.UNKNOWN_TOPIC_OR_PARTITION] * 3


def test_describe_topic_partitions_names_it_where_it_is_asked_for():
    user = Scheduler()

    request = DescribeTopicPartitionsRequest([TopicRequest(SHOWN)], 100)
    asked = user.client.ask(api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    everything = user.client.ask(
        api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest([], 100)
    )

    assert isinstance(asked, DescribeTopicPartitionsResponse)
    assert isinstance(everything, DescribeTopicPartitionsResponse)
    assert [(each.name, len(each.partitions)) for each in asked.topics] == [(SHOWN, 1)]
    assert [each.name for each in everything.topics] == [ORDERS]


def test_no_topic_shows_what_waits_where_nothing_may_wait():
    user = WaitingReader(BrokerByHand())
    user.create(ORDERS)

    by_name = user.fetch(0, topic=SHOWN)
    by_id = user.fetch(0, version=13, topic_id=other_id(user.topic_id()))

    assert by_name.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert by_id.error_code == errors.UNKNOWN_TOPIC_ID
    assert user.list_offsets(LATEST, topic=SHOWN).error_code == by_name.error_code
    assert user.metadata().error_code == by_name.error_code


def test_a_topic_that_delays_no_more_still_shows_what_waits():
    user = Scheduler()
    user.schedule(b"a", after_ms=HOUR_MS)

    Operator(user.hand).set(TOPIC, ORDERS, delay_enable="false")

    assert user.values() == [b"a"]


def test_a_partition_that_is_not_there_is_unknown():
    user = Scheduler()

    answer = user.fetch(0, topic=SHOWN, indexes=(1,))

    assert answer.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_an_offset_behind_the_end_is_out_of_range():
    user = Scheduler()
    user.schedule(b"a")

    assert user.fetch(4, topic=SHOWN).error_code == errors.OFFSET_OUT_OF_RANGE


def test_a_search_by_time_finds_no_later_record_than_the_first_one_meant():
    user = Scheduler()
    for hours in (1, 2, 3):
        user.schedule(b"%d" % hours, after_ms=hours * HOUR_MS)

    def found(timestamp: int) -> list[bytes | None]:
        offset = user.list_offsets(timestamp, topic=SHOWN).offset
        return [value for _, value in user.read(offset)]

    assert found(START_WALL_MS + 2 * HOUR_MS) == [b"2", b"3"]
    assert found(0) == [b"1", b"2", b"3"]
    assert user.list_offsets(START_WALL_MS + 4 * HOUR_MS, topic=SHOWN).offset == -1
    assert found(MAX_TIMESTAMP) == [b"3"]


def test_a_leader_epoch_ends_where_the_log_of_what_waits_does():
    user = Scheduler()
    user.schedule(b"a")

    found = user.end_of_epoch(0, topic=SHOWN)

    assert (found.error_code, found.leader_epoch, found.end_offset) == (errors.NONE, 0, 3)


# -- groups


def test_a_group_commits_there_by_name_and_by_id():
    hand = BrokerByHand()
    Scheduler(hand).schedule(b"a", after_ms=HOUR_MS)
    user = GroupUser(hand)
    user.find()

    codes = user.commit({0: 3}, topic=SHOWN)
    offset = user.offset(topic=SHOWN)

    assert (codes, offset) == ([errors.NONE], 3)
    assert user.all_offsets() == {(SHOWN, 0): 3}
    assert user.delete_offsets(0, topic=SHOWN) == [errors.NONE]


def test_a_topic_that_had_such_a_name_before_keeps_its_commits(monkeypatch: pytest.MonkeyPatch):
    hand = BrokerByHand()
    user = GroupUser(hand)
    with monkeypatch.context() as earlier:
        # A release that did not know virtual topics let it be made.
        earlier.setattr("tarry.cluster.decisions.topic_decisions.topic_shown_by", lambda _: "")
        user.create(SHOWN)
    Scheduler(hand).schedule(b"a", after_ms=HOUR_MS)
    user.find()
    user.produce(a_batch(b"one"), topic=SHOWN)
    user.commit({0: 1}, topic=SHOWN)

    hand.crash()
    user = GroupUser(hand)
    hand.settle()

    assert user.offset(topic=SHOWN) == 1
    assert [each.value for each in records_in(user.fetch(0, topic=SHOWN))] == [b"one"]


def test_commits_there_outlive_a_start_and_go_with_the_topic():
    hand = BrokerByHand()
    Scheduler(hand).schedule(b"a", after_ms=HOUR_MS)
    user = GroupUser(hand)
    user.find()
    user.commit({0: 3}, topic=SHOWN)

    hand.crash()
    user = GroupUser(hand)
    hand.settle()
    kept = user.offset(topic=SHOWN)
    user.delete(ORDERS)
    hand.settle()

    assert kept == 3
    assert user.all_offsets() == {}
    assert READERS not in user.group_ids() or user.offset(topic=SHOWN) == -1


# -- what is refused


@pytest.mark.parametrize("version", [3, 11, 13])
@pytest.mark.parametrize("acks", [1, -1])
def test_a_producer_is_refused_for_good(version: int, acks: int):
    user = Scheduler()
    request = user.produce_request(a_batch(b"a"), topic=ORDERS, version=version, acks=acks)
    request.topic_data[0].name = SHOWN if version < 13 else ""
    request.topic_data[0].topic_id = ZERO_UUID if version < 13 else other_id(user.topic_id())

    (answer,) = user.client.ask(api_keys.PRODUCE, version, request).responses[0].partition_responses

    assert answer.error_code == errors.INVALID_TOPIC_EXCEPTION
    if version >= 8:
        assert answer.error_message.startswith(f"'{SHOWN}' only shows the records of topic")
    assert user.values() == []


@pytest.mark.parametrize("name", [SHOWN, "__scheduled.nothing"])
def test_nobody_creates_a_topic_of_such_a_name(name: str):
    user = Scheduler()

    request = CreateTopicsRequest([CreatableTopic(name, 1, 1)], 5_000)
    response = user.client.ask(api_keys.CREATE_TOPICS, 7, request)
    asked = user.metadata("__scheduled.nothing", version=9)

    assert isinstance(response, CreateTopicsResponse)
    assert response.topics[0].error_code == errors.INVALID_TOPIC_EXCEPTION
    assert "are read" in (response.topics[0].error_message or "")
    assert asked.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert user.hand.broker.topics.names() == [ORDERS]


@pytest.mark.parametrize("is_by_id", [False, True])
def test_nobody_deletes_it(is_by_id: bool):
    user = Scheduler()
    user.schedule(b"a")
    wanted = DeleteTopicState(name=SHOWN)
    if is_by_id:
        wanted = DeleteTopicState(name=None, topic_id=other_id(user.topic_id()))

    response = user.client.ask(api_keys.DELETE_TOPICS, 6, DeleteTopicsRequest([wanted], [], 5_000))

    assert isinstance(response, DeleteTopicsResponse)
    assert response.responses[0].error_code == errors.INVALID_TOPIC_EXCEPTION
    assert "only shows" in (response.responses[0].error_message or "")
    assert user.values() == [b"a"]


def test_nobody_changes_it():
    operator = Operator(Scheduler().hand)

    changed = operator.change(TOPIC, SHOWN, ("retention.ms", SET, "1"))
    replaced = operator.replace(TOPIC, SHOWN, ("retention.ms", "1"))
    (grown,) = operator.grow((SHOWN, 3))
    deletion = operator.delete_records((0, 0), topic=SHOWN)
    reassigned = operator.client.ask(
        api_keys.ALTER_PARTITION_REASSIGNMENTS,
        0,
        AlterPartitionReassignmentsRequest(
            timeout_ms=5_000, topics=[ReassignableTopic(SHOWN, [ReassignablePartition(0, [1])])]
        ),
    )

    assert isinstance(reassigned, AlterPartitionReassignmentsResponse)
    refused = reassigned.responses[0].partitions[0]
    for answer in (changed, replaced, grown, refused):
        assert answer.error_code == errors.INVALID_TOPIC_EXCEPTION
        assert "only shows" in (answer.error_message or "")
    assert deletion == [(-1, errors.INVALID_TOPIC_EXCEPTION)]


def test_its_settings_are_those_of_the_topic_and_cannot_be_changed():
    operator = Operator(Scheduler().hand)

    own = operator.described(TOPIC, ORDERS)
    shown = operator.described(TOPIC, SHOWN)

    assert {key: each.value for key, each in shown.items()} == {
        key: each.value for key, each in own.items()
    }
    assert all(each.read_only for each in shown.values())
    assert not own["retention.ms"].read_only
