"""Hosting: a broker has the logs of its own replicas, as applied metadata say, and no others."""

from __future__ import annotations

import itertools

import pytest
from tests.support.broker.admin_user import Operator
from tests.support.broker.broker_user import a_batch, records_in
from tests.support.broker.stand_in_member import join
from tests.support.metadata_stores import GivenChange

from tarry.base import errors
from tarry.base.errors import StorageError
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.broker.metadata.closings import CLOSED_PER_TURN
from tarry.broker.metadata.hosting import HOSTED_PER_TURN, RETRIED_PER_TURN
from tarry.broker.metadata.removals import RENAMED_PER_TURN
from tarry.broker.part import Part
from tarry.cluster.state.records import (
    ConfigChanged,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from tarry.log.logs import Logs
from tarry.partition.leadership import Leadership
from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tarry.protocol.messages.produce import ProduceResponse
from tarry.simulation.by_hand import BrokerByHand

SPREAD = b"spread".ljust(16, b".")
HERE = PartitionRow(1, 0, -1, 0, [1], [1])
ELSEWHERE = PartitionRow(2, 0, -1, 0, [2], [2])


def change(someone: Operator, *records: MetadataRecord) -> None:
    """Change the metadata as another broker would: nobody here waits for it."""
    someone.hand.broker.store.change(GivenChange(*records))
    someone.hand.settle()


def spread_topic() -> Operator:
    """Return an operator of a broker that has the first and the last partition of three."""
    someone = Operator(BrokerByHand())
    rows = [HERE, ELSEWHERE, HERE]
    change(someone, TopicCreated(topic_id=SPREAD, name="spread", partitions=rows, configs={}))
    return someone


def hosted(someone: Operator) -> list[int]:
    return list(someone.hand.broker.topics["spread"].partitions)


def directories(someone: Operator) -> list[str]:
    return [path for path in someone.hand.disk.paths() if path.startswith("spread")]


def test_the_logs_of_this_brokers_replicas_are_opened_and_no_others() -> None:
    someone = spread_topic()

    assert hosted(someone) == [0, 2]
    assert [path[:8] for path in directories(someone) if path.endswith("/")] == [
        "spread-0",
        "spread-2",
    ]
    someone.hand.crash()
    assert hosted(someone) == [0, 2]


def test_records_go_to_a_partition_by_its_index_though_one_before_it_is_elsewhere() -> None:
    someone = spread_topic()

    last = someone.produce(a_batch(b"here"), topic="spread", indexes=(2,))
    elsewhere = someone.produce(a_batch(b"lost"), topic="spread", indexes=(1,))

    assert (last.error_code, last.index) == (errors.NONE, 2)
    assert elsewhere.error_code == errors.NOT_LEADER_OR_FOLLOWER
    fetched = someone.fetch(0, topic="spread", indexes=(2,))
    assert [record.value for record in records_in(fetched)] == [b"here"]


def test_clients_are_told_of_all_partitions_and_which_of_their_leaders_live() -> None:
    someone = spread_topic()

    asked = MetadataRequest([MetadataRequestTopic(name="spread")])
    answer = someone.client.ask(api_keys.METADATA, 12, asked)

    assert isinstance(answer, MetadataResponse)
    partitions = answer.topics[0].partitions
    assert [(each.partition_index, each.leader_id) for each in partitions] == [
        (0, 1),
        (1, -1),
        (2, 1),
    ]


def test_a_topic_that_grows_gets_the_logs_that_are_this_brokers() -> None:
    someone = spread_topic()

    change(someone, PartitionsAdded(topic_id=SPREAD, partitions=[ELSEWHERE, HERE]))

    assert hosted(someone) == [0, 2, 4]


class Roles(Part):
    """A part that keeps the roles that are reported to it."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, bool | None, bool]] = []

    def on_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        was = None if before is None else was_leader
        self.heard.append((leadership.index, was, leadership.is_leader))


def test_a_broker_of_a_cluster_leads_what_names_its_present_life() -> None:
    someone = Operator(BrokerByHand())
    join(someone.hand.broker, 7)
    rows = [
        PartitionRow(1, 0, 7, 0, [1, 2], [1, 2]),
        PartitionRow(1, 0, 6, 0, [1, 2], [1, 2]),
        PartitionRow(2, 0, 7, 0, [1, 2], [1, 2]),
        PartitionRow(1, 0, -1, 0, [1, 2], [1, 2]),
        PartitionRow(2, 0, 5, 0, [2], [2]),
    ]

    change(someone, TopicCreated(topic_id=SPREAD, name="spread", partitions=rows, configs={}))

    topic = someone.hand.broker.topics["spread"]
    assert (list(topic.partitions), list(topic.followed)) == ([0], [1, 2, 3])
    assert list(topic.elsewhere) == [4]
    assert [each.leadership.index for each in someone.hand.broker.topics.replicas()] == [0, 1, 2, 3]
    assert [each.leadership.index for each in someone.hand.broker.topics.partitions()] == [0]
    assert someone.produce(a_batch(b"a"), topic="spread", indexes=(2,)).error_code == (
        errors.NOT_LEADER_OR_FOLLOWER
    )


def test_roles_change_with_rows_and_lives_and_listeners_hear_each_once() -> None:
    someone = Operator(BrokerByHand())
    hosting = someone.hand.broker.hosting
    roles = Roles()
    someone.hand.broker.parts.add(roles)
    member = join(someone.hand.broker, 7)
    first = PartitionRow(1, 0, 7, 0, [1, 2], [1, 2])
    change(someone, TopicCreated(topic_id=SPREAD, name="spread", partitions=[first], configs={}))
    came = list(roles.heard)

    member.epoch = 9
    hosting.on_own_life()
    hosting.on_own_life()
    deposed = list(someone.hand.broker.topics["spread"].followed)
    again = PartitionRow(1, 1, 9, 1, [1, 2], [1])
    change(someone, PartitionChanged(topic_id=SPREAD, index=0, row=again))

    assert came == [(0, None, True)]
    assert roles.heard[1:] == [(0, True, False), (0, False, True)]
    assert deposed == [0]
    partition = someone.hand.broker.topics["spread"].partitions[0]
    led = partition.leadership
    assert (led.leader_epoch, led.isr, led.leader_broker_epoch) == (1, [1], 9)


def test_a_replica_that_a_row_adds_gets_its_log() -> None:
    someone = spread_topic()

    moved = PartitionRow(2, 1, -1, 1, [2, 1], [2])
    change(someone, PartitionChanged(topic_id=SPREAD, index=1, row=moved))

    topic = someone.hand.broker.topics["spread"]
    assert (sorted(topic.partitions), list(topic.followed)) == ([0, 2], [1])
    assert list(topic.elsewhere) == []
    assert "spread-1" in {path.split("/")[0] for path in directories(someone)}


def test_who_waits_for_a_partition_that_gets_another_leader_is_told_at_once() -> None:
    someone = Operator(BrokerByHand())
    hosting = someone.hand.broker.hosting
    member = join(someone.hand.broker, 7)
    first = PartitionRow(1, 0, 7, 0, [1, 2], [1])
    change(someone, TopicCreated(topic_id=SPREAD, name="spread", partitions=[first], configs={}))
    someone.send_produce(a_batch(b"late"), topic="spread")
    someone.send_produce(a_batch(b"later"), topic="spread")

    member.epoch = 9
    hosting.on_own_life()
    someone.hand.turn()

    codes = [answer.responses[0].partition_responses[0].error_code for answer in produced(someone)]
    assert codes == [errors.NOT_LEADER_OR_FOLLOWER, errors.NOT_LEADER_OR_FOLLOWER]


def test_what_was_flushed_between_two_leaderships_counts() -> None:
    someone = Operator(BrokerByHand())
    hosting = someone.hand.broker.hosting
    member = join(someone.hand.broker, 7)
    first = PartitionRow(1, 0, 7, 0, [1], [1])
    change(someone, TopicCreated(topic_id=SPREAD, name="spread", partitions=[first], configs={}))
    batch = a_batch(b"a", producer_id=5)
    someone.send_produce(batch, topic="spread")
    member.epoch = 9
    hosting.on_own_life()
    someone.hand.settle()
    produced(someone)

    again = PartitionRow(1, 1, 9, 1, [1], [1])
    change(someone, PartitionChanged(topic_id=SPREAD, index=0, row=again))

    assert someone.hand.broker.topics["spread"].partitions[0].high_watermark == 1
    assert someone.produce(batch, topic="spread").error_code == errors.NONE


def produced(someone: Operator) -> list[ProduceResponse]:
    found = someone.answers()
    assert all(isinstance(each, ProduceResponse) for each in found)
    return [each for each in found if isinstance(each, ProduceResponse)]


def test_a_topic_that_is_deleted_elsewhere_leaves_nothing_here() -> None:
    someone = spread_topic()

    change(someone, TopicDeleted(topic_id=SPREAD))
    someone.hand.disk.complete_removals()

    assert "spread" not in someone.hand.broker.topics
    assert directories(someone) == []
    assert someone.hand.broker.cluster.deleted_topics == {}


def test_a_removal_whose_record_the_disk_refused_is_recorded_later() -> None:
    someone = spread_topic()
    hand = someone.hand
    hand.broker.store.change(GivenChange(TopicDeleted(topic_id=SPREAD)))
    hand.turn()
    hand.turn(*hand.disk.complete_flushes())

    hand.disk.fail_writes(path_part="__cluster_metadata")
    hand.settle()
    early = list(hand.broker.cluster.deleted_topics)
    hand.disk.heal()
    hand.turn(after_ms=1_100)
    hand.settle()

    assert early == [SPREAD]
    assert hand.broker.cluster.deleted_topics == {}


def hand_deleting_a_large_topic(
    topics: int = 1, partitions: int = 2 * RENAMED_PER_TURN + 1
) -> BrokerByHand:
    """A broker whose topics, too large for one turn in sum, were deleted; none is renamed yet."""
    someone = Operator(BrokerByHand())
    hand = someone.hand
    hand.broker.hosting.hosted_per_turn = 2 * partitions
    rows = [HERE] * (partitions // topics + 1)
    ids = [f"spread{number}".encode().ljust(16, b".") for number in range(topics)]
    for number, each in enumerate(ids):
        name = f"spread{number}"
        change(someone, TopicCreated(topic_id=each, name=name, partitions=rows, configs={}))
    hand.broker.store.change(GivenChange(*(TopicDeleted(topic_id=each) for each in ids)))
    return hand


def renamed(hand: BrokerByHand) -> int:
    return sum(path.endswith("-delete/") for path in hand.disk.paths())


@pytest.mark.parametrize("topics", [1, 50])
def test_directories_of_deleted_partitions_are_renamed_some_in_each_turn(topics: int) -> None:
    hand = hand_deleting_a_large_topic(topics)
    total = topics * ((2 * RENAMED_PER_TURN + 1) // topics + 1)
    hand.disk.defers_removals = True
    sizes = [0]
    while hand.broker.cluster.deleted_topics or hand.broker.has_work_left() or len(sizes) < 3:
        hand.turn(*hand.disk.complete_flushes())
        sizes.append(renamed(hand))
        if 0 < sizes[-1] < total:
            # The last topic's name is not free before all its directories are away.
            assert hand.broker.cluster.deleted_topics

    assert max(after - before for before, after in itertools.pairwise(sizes)) == RENAMED_PER_TURN
    assert sizes[-1] == total
    assert len(hand.broker.topics) == 0


def test_logs_of_a_deleted_topic_are_closed_some_in_each_turn_and_who_waits_is_told() -> None:
    hand = hand_deleting_a_large_topic(partitions=CLOSED_PER_TURN + 49)
    client = hand.connect()
    last = FetchPartition(partition=CLOSED_PER_TURN + 49, partition_max_bytes=1_000)
    topic = FetchTopic("spread0", partitions=[last])
    wanted = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[topic])
    client.send(api_keys.FETCH, 4, wanted)
    open_logs = hand.broker.logs.recovery_points.logs
    sizes = [len(open_logs)]
    while "spread0" in hand.broker.topics or sizes[-1] < sizes[-2]:
        hand.turn(*hand.disk.complete_flushes())
        sizes.append(len(open_logs))
    answers = client.answers()

    assert sizes[0] - sizes[-1] == CLOSED_PER_TURN + 50
    assert max(before - after for before, after in itertools.pairwise(sizes)) == CLOSED_PER_TURN
    assert isinstance(answers[0], FetchResponse)
    code = answers[0].responses[0].partitions[0].error_code
    assert code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_a_restart_ends_a_deletion_in_the_middle_of_its_renames() -> None:
    hand = hand_deleting_a_large_topic()
    hand.disk.defers_removals = True
    while not renamed(hand):
        hand.turn(*hand.disk.complete_flushes())
    hand.crash()
    hand.start()
    hand.settle()
    hand.disk.complete_removals()

    assert hand.broker.cluster.deleted_topics == {}
    assert not [path for path in hand.disk.paths() if path.startswith("spread")]


def as_member(someone: Operator) -> Operator:
    """Let the broker be one of a cluster, in its life 7."""
    join(someone.hand.broker, 7)
    return someone


def member_with_records() -> Operator:
    """Return an operator of a broker that leads a partition with a record in it."""
    someone = as_member(Operator(BrokerByHand()))
    first = PartitionRow(1, 0, 7, 0, [1], [1])
    change(someone, TopicCreated(topic_id=SPREAD, name="spread", partitions=[first], configs={}))
    assert someone.produce(a_batch(b"old"), topic="spread").error_code == errors.NONE
    return someone


LEFT_OUT = PartitionRow(2, 1, 8, 1, [2], [2])
BACK = PartitionRow(2, 2, 8, 2, [2, 1], [2])


def test_a_replica_that_a_row_takes_away_leaves_nothing_here() -> None:
    someone = member_with_records()

    change(someone, PartitionChanged(topic_id=SPREAD, index=0, row=LEFT_OUT))
    someone.hand.disk.complete_removals()

    topic = someone.hand.broker.topics["spread"]
    assert (topic.replicas(), list(topic.elsewhere)) == ([], [0])
    assert directories(someone) == []
    assert topic.missing_code(0) == errors.NOT_LEADER_OR_FOLLOWER


def test_a_replica_that_comes_back_begins_empty_though_its_old_files_are_still_there() -> None:
    someone = member_with_records()
    someone.hand.disk.defers_removals = True
    change(someone, PartitionChanged(topic_id=SPREAD, index=0, row=LEFT_OUT))

    change(someone, PartitionChanged(topic_id=SPREAD, index=0, row=BACK))
    back = someone.hand.broker.topics["spread"].followed[0]
    assert back.log.log_end_offset == 0
    change(someone, PartitionChanged(topic_id=SPREAD, index=0, row=LEFT_OUT))
    someone.hand.disk.complete_removals()

    assert directories(someone) == []


@pytest.mark.parametrize("isr", [[2], [2, 1]])
def test_a_replica_whose_directory_is_gone_begins_empty_unless_it_is_in_sync(
    isr: list[int],
) -> None:
    someone = member_with_records()
    hand = someone.hand
    row = PartitionRow(2, 1, 8, 1, [2, 1], isr)
    change(someone, PartitionChanged(topic_id=SPREAD, index=0, row=row))
    hand.stop()
    hand.disk.begin_remove("spread-0")
    hand.disk.complete_removals()

    hand.start()
    for _ in range(200):
        hand.turn(*hand.disk.complete_flushes(), after_ms=100)
    replica = hand.broker.topics["spread"].replica(0)

    assert replica is not None
    is_in_sync = len(isr) == 2
    assert (replica.log.flaw_offset >= 0) == is_in_sync
    assert replica.log.log_end_offset == int(is_in_sync)
    assert hand.broker.hosting.retries.waiting == 0


def test_what_a_refused_disk_has_left_is_put_away_when_the_replica_comes_back() -> None:
    someone = member_with_records()
    hand = someone.hand
    topic = hand.broker.topics["spread"]
    # The state after a failed renaming: the row is applied, and the directory is still there.
    leadership = topic.partitions[0].leadership
    topic.leave(leadership.index)
    leadership.close()
    for log in leadership.logs:
        hand.broker.hosting._closings.close(log)

    change(someone, PartitionChanged(topic_id=SPREAD, index=0, row=BACK))

    assert topic.followed[0].log.log_end_offset == 0


def test_a_directory_of_another_topic_is_no_replicas_to_remove() -> None:
    someone = member_with_records()
    removals = someone.hand.broker.hosting._removals

    removals.give_up_replica("spread", 0, bytes(16))

    assert "spread-0/" in directories(someone)


class CountingSettings:
    """Settings that count how often this broker's id is asked for."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        self.asked += name == "node_id"
        return getattr(self._settings, name)


def test_replicas_that_rows_add_cost_by_themselves_and_not_by_the_topic() -> None:
    someone = as_member(Operator(BrokerByHand()))
    rows = [PartitionRow(2, 0, 5, 0, [2], [2])] * 100
    change(someone, TopicCreated(topic_id=SPREAD, name="spread", partitions=rows, configs={}))
    hosting = someone.hand.broker.hosting
    counting = CountingSettings(hosting._settings)
    hosting._settings = counting  # type: ignore[assignment]

    here = PartitionRow(2, 0, 5, 1, [2, 1], [2])
    added = range(0, 100, 10)
    for index in added:
        change(someone, PartitionChanged(topic_id=SPREAD, index=index, row=here))

    assert list(someone.hand.broker.topics["spread"].followed) == list(added)
    assert counting.asked <= 10 * len(added)


PER_TURN = 3


def many_of_this_broker(count: int) -> tuple[Operator, Roles]:
    """A member that makes few logs in a turn, in the turn in which it hears of a large topic."""
    someone = as_member(Operator(BrokerByHand()))
    hosting = someone.hand.broker.hosting
    hosting.hosted_per_turn = PER_TURN
    roles = Roles()
    someone.hand.broker.parts.add(roles)
    rows = [PartitionRow(2, 0, 5, 0, [2, 1], [2, 1])] * count
    record = TopicCreated(topic_id=SPREAD, name="spread", partitions=rows, configs={})
    someone.hand.broker.store.change(GivenChange(record))
    for _ in range(5):
        if not roles.heard:
            someone.hand.turn(*someone.hand.disk.complete_flushes())
    assert roles.heard
    return someone, roles


def pass_turns(someone: Operator, count: int) -> None:
    for _ in range(count):
        someone.hand.turn(*someone.hand.disk.complete_flushes(), after_ms=1)


def test_a_member_makes_the_logs_of_a_large_topic_some_in_each_turn() -> None:
    count = 4 * PER_TURN + 1
    someone, roles = many_of_this_broker(count)
    sizes = [0, len(roles.heard)]
    for _ in range(8):
        pass_turns(someone, 1)
        sizes.append(len(roles.heard))

    assert max(after - before for before, after in itertools.pairwise(sizes)) == PER_TURN
    # Each is told of once.
    assert [index for index, _, _ in roles.heard] == list(range(count))


def test_a_broker_that_is_alone_makes_the_logs_of_a_large_topic_some_in_each_turn() -> None:
    someone = Operator(BrokerByHand())
    count = 3 * HOSTED_PER_TURN
    wanted = CreatableTopic(name="large", num_partitions=count, replication_factor=1)
    someone.client.send(api_keys.CREATE_TOPICS, 7, CreateTopicsRequest([wanted], timeout_ms=5_000))
    topics, sizes, leaders = someone.hand.broker.topics, [0], []
    while len(sizes) < 10:
        someone.hand.turn(*someone.hand.disk.complete_flushes())
        hosted = topics.get("large")
        sizes.append(0 if hosted is None else len(hosted.partitions))
        state = someone.hand.broker.cluster.topic("large")
        if state is not None:
            view = someone.hand.broker.cluster_view
            rows = enumerate(state.partitions)
            leaders.append(sum(view.leader("large", index, row) >= 0 for index, row in rows))

    # All are known, and those have a leader that have a log.
    assert leaders == sizes[-len(leaders) :]
    assert max(after - before for before, after in itertools.pairwise(sizes)) == HOSTED_PER_TURN
    assert sizes[-1] == count
    assert not someone.hand.broker.has_work_left()


def test_a_large_topic_that_grows_makes_its_new_log_in_the_same_turn() -> None:
    someone = Operator(BrokerByHand())
    hand, count = someone.hand, 3 * HOSTED_PER_TURN
    someone.create("large", count)
    hand.settle()
    large = hand.broker.topics["large"]
    assert len(large.partitions) == count
    row = PartitionRow(1, 0, -1, 0, [1], [1])

    grown = PartitionsAdded(topic_id=large.topic_id, partitions=[row])
    hand.broker.store.change(GivenChange(grown))
    hand.turn()
    # The metadata are durable, and so the topic has the partition.
    hand.turn(*hand.disk.complete_flushes())

    assert len(large.partitions) == count + 1


def test_a_member_makes_the_logs_of_many_topics_some_in_each_turn() -> None:
    someone = as_member(Operator(BrokerByHand()))
    hosting = someone.hand.broker.hosting
    hosting.hosted_per_turn = PER_TURN
    roles = Roles()
    someone.hand.broker.parts.add(roles)
    rows = [PartitionRow(2, 0, 5, 0, [2, 1], [2, 1])] * (PER_TURN - 1)
    names = [f"t{number}" for number in range(7)]
    created = [
        TopicCreated(topic_id=name.encode().ljust(16, b"."), name=name, partitions=rows, configs={})
        for name in names
    ]
    someone.hand.broker.store.change(GivenChange(*created))
    sizes = [0]
    for _ in range(12):
        pass_turns(someone, 1)
        sizes.append(len(roles.heard))
    grown = PartitionsAdded(topic_id=created[0].topic_id, partitions=rows * 3)
    someone.hand.broker.store.change(GivenChange(grown))
    for _ in range(12):
        pass_turns(someone, 1)
        sizes.append(len(roles.heard))

    assert max(after - before for before, after in itertools.pairwise(sizes)) <= PER_TURN
    found = [len(someone.hand.broker.topics[name].followed) for name in names]
    assert found == [4 * len(rows), *[len(rows)] * 6]
    assert hosting.retries.waiting == 0


def test_a_large_topic_that_is_deleted_while_its_logs_are_made_leaves_nothing_here() -> None:
    someone, roles = many_of_this_broker(20 * PER_TURN)
    someone.hand.broker.store.change(GivenChange(TopicDeleted(topic_id=SPREAD)))
    pass_turns(someone, 30)
    someone.hand.disk.complete_removals()

    assert len(roles.heard) < 20 * PER_TURN
    assert "spread" not in someone.hand.broker.topics
    assert directories(someone) == []


def test_a_row_counts_that_changes_while_the_logs_of_a_large_topic_are_made() -> None:
    count = 20 * PER_TURN
    someone, _ = many_of_this_broker(count)
    deposed = PartitionRow(3, 1, 8, 1, [2, 1], [2, 1])
    for index in (0, count - 1):
        record = PartitionChanged(topic_id=SPREAD, index=index, row=deposed)
        someone.hand.broker.store.change(GivenChange(record))
    pass_turns(someone, 30)

    followed = someone.hand.broker.topics["spread"].followed
    epochs = [partition.leadership.leader_epoch for _, partition in sorted(followed.items())]
    assert epochs == [1, *[0] * (count - 2), 1]


class RefusedOnce:
    """Logs of a disk that refuses the second one at first, as if it were full."""

    def __init__(self, logs: Logs, index: int = 1) -> None:
        self._logs = logs
        self._index = index
        self.has_refused = False

    def open(self, directory: str, *rest: object) -> object:
        if directory.endswith(f"-{self._index}") and not self.has_refused:
            self.has_refused = True
            raise StorageError("no space left on device")
        return self._logs.open(directory, *rest)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        return getattr(self._logs, name)


def refused_at_first(someone: Operator, *rows: PartitionRow) -> Roles:
    """Let a topic come whose second partition the disk refuses."""
    roles = Roles()
    someone.hand.broker.parts.add(roles)
    hosting = someone.hand.broker.hosting
    hosting._logs = RefusedOnce(hosting._logs)  # type: ignore[assignment]
    record = TopicCreated(topic_id=SPREAD, name="spread", partitions=[*rows], configs={})
    change(someone, record)
    assert list(someone.hand.broker.topics["spread"].refused) == [1]
    return roles


def tried_again(someone: Operator) -> None:
    someone.hand.turn(after_ms=1_100)
    someone.hand.settle()


def test_who_must_know_hears_at_once_of_replicas_that_can_be_reached_already() -> None:
    """A topic that is hosted grows, and the disk refuses the second log that comes: the others
    are told of in the same turn.
    """
    someone = as_member(Operator(BrokerByHand()))
    led = PartitionRow(1, 0, 7, 0, [1, 2], [1, 2])
    change(someone, TopicCreated(topic_id=SPREAD, name="spread", partitions=[led], configs={}))
    roles = Roles()
    someone.hand.broker.parts.add(roles)
    hosting = someone.hand.broker.hosting
    hosting._logs = RefusedOnce(hosting._logs, 2)  # type: ignore[assignment]
    change(someone, PartitionsAdded(topic_id=SPREAD, partitions=[led, led, led]))
    reached = list(someone.hand.broker.topics["spread"].partitions)
    at_once = list(roles.heard)

    tried_again(someone)

    assert reached == [0, 1, 3]
    assert at_once == [(1, None, True), (3, None, True)]
    assert roles.heard == [*at_once, (2, None, True)]


def test_who_must_know_hears_of_all_replicas_though_the_disk_refused_one_at_first() -> None:
    someone = as_member(Operator(BrokerByHand()))
    followed = PartitionRow(2, 0, 5, 0, [2, 1], [2, 1])
    roles = refused_at_first(someone, followed, followed)
    early = list(roles.heard)

    tried_again(someone)

    assert early == [(0, None, False)]
    assert roles.heard == [(0, None, False), (1, None, False)]


def test_a_row_that_changes_while_the_disk_refuses_a_log_counts_at_once_and_for_that_log() -> None:
    someone = as_member(Operator(BrokerByHand()))
    led = PartitionRow(1, 0, 7, 0, [1, 2], [1, 2])
    roles = refused_at_first(someone, led, led, led)
    deposed = PartitionRow(2, 1, 8, 1, [1, 2], [1, 2])
    change(someone, PartitionChanged(topic_id=SPREAD, index=0, row=deposed))
    change(someone, PartitionChanged(topic_id=SPREAD, index=2, row=LEFT_OUT))
    at_once = list(roles.heard)

    tried_again(someone)

    topic = someone.hand.broker.topics["spread"]
    assert at_once == [(0, None, True), (2, None, True), (0, True, False), (2, True, False)]
    assert (list(topic.partitions), list(topic.followed)) == ([1], [0])
    assert (list(topic.elsewhere), list(topic.refused)) == ([2], [])
    assert topic.followed[0].leadership.leader_epoch == 1


def test_a_refused_log_that_a_row_takes_away_is_not_tried_again() -> None:
    someone = as_member(Operator(BrokerByHand()))
    led = PartitionRow(1, 0, 7, 0, [1, 2], [1, 2])
    refused_at_first(someone, led, led)
    change(someone, PartitionChanged(topic_id=SPREAD, index=1, row=LEFT_OUT))

    hosted = someone.hand.broker.topics["spread"]
    early = (list(hosted.refused), list(hosted.elsewhere))
    tried_again(someone)

    assert early == ([], [1])
    assert hosted.replica(1) is None
    assert someone.hand.broker.hosting.retries.waiting == 0


def test_settings_that_change_while_the_disk_refuses_a_log_reach_all_logs() -> None:
    someone = as_member(Operator(BrokerByHand()))
    led = PartitionRow(1, 0, 7, 0, [1, 2], [1, 2])
    refused_at_first(someone, led, led, led)

    change(
        someone,
        ConfigChanged(topic_id=SPREAD, configs={"max.message.bytes": "7000"}),
    )
    early = [one.config.max_message_bytes for one in someone.hand.broker.topics.replicas()]
    tried_again(someone)

    assert early == [7_000] * 2
    found = [one.config.max_message_bytes for one in someone.hand.broker.topics.replicas()]
    assert found == [7_000] * 3


def test_of_many_refused_logs_some_are_tried_again_at_a_time_and_all_in_turn() -> None:
    someone = as_member(Operator(BrokerByHand()))
    led = PartitionRow(1, 0, 7, 0, [1, 2], [1, 2])
    count = 2 * RETRIED_PER_TURN + 10
    for index in range(count):
        someone.hand.disk.refuse_directory(f"spread-{index}")
    record = TopicCreated(topic_id=SPREAD, name="spread", partitions=[led] * count, configs={})
    change(someone, record)
    hosted = someone.hand.broker.topics["spread"]
    early = len(hosted.refused)
    sizes: list[int] = []
    someone.hand.disk.heal()
    for _ in range(3):
        tried_again(someone)
        sizes.append(len(hosted.partitions))

    assert early == count
    assert sizes == [RETRIED_PER_TURN, 2 * RETRIED_PER_TURN, count]
    assert someone.hand.broker.hosting.retries.waiting == 0
