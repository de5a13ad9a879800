"""Two logs under one leadership: in sync and able to join means both, lost means either.

High watermarks stay apart.  Between brokers the second log has a negative index; here none has.
"""

from __future__ import annotations

import logging

import pytest
from tests.support.broker.broker_user import a_batch, records_in
from tests.support.broker.leader_scene import LIVES, SECOND, SHARED, THIRD, LeaderScene, parts_of
from tests.support.replication.follower_scene import (
    TOPIC_ID,
    FollowerScene,
    a_copy,
    part,
    stored,
)

from tarry.base import errors
from tarry.broker.replication.fetch_sessions import ReplicaSessions
from tarry.log.batch_walk import Flaw
from tarry.log.config import LogConfig
from tarry.log.logs import Logs
from tarry.partition.leader import append_own
from tarry.partition.leadership import Leadership
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import COMPANION, ProducerListener, ReplicatedLog
from tarry.protocol import api_keys
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LAG_MS = 30_000
# The special timestamp that asks where a log begins.
EARLIEST = -2
# On the wire.
RECORDS, SCHEDULE = 0, -1


def add_log(logs: Logs, leadership: Leadership) -> ReplicatedLog:
    """Open a second log under a leadership."""
    producers = ProducerStates(86_400_000)
    name = f"{leadership.topic}-{leadership.index}.schedule"
    log = logs.open(name, leadership.topic_id, LogConfig(), ProducerListener(producers))
    logs.settle()
    return ReplicatedLog(leadership, log, producers)


def two_copies(scene: FollowerScene, *, second_offset: int) -> tuple[ReplicatedLog, ReplicatedLog]:
    """Host a partition with two logs in epoch 1: a record in the first one, and in the second one
    a record at offset 0 and one at `second_offset`, behind a gap unless that is 1.
    """
    partition = scene.host(0)
    schedule = add_log(scene.logs, partition.leadership)
    scene.role(partition, leader_epoch=1)
    scene.run()
    second = a_copy(second_offset, b"b", epoch=1)
    scene.asked()
    scene.answer(
        part(RECORDS, a_copy(0, epoch=1), high_watermark=1),
        part(SCHEDULE, a_copy(0, b"a", epoch=1) + second, high_watermark=second_offset + 1),
    )
    scene.flush()
    return partition, schedule


class TwoLogs(LeaderScene):
    """The partition `shared-0` with a second log, `shared-0.schedule`; broker 1 leads both."""

    def __init__(self, isr: tuple[int, ...] = (1, 2)) -> None:
        super().__init__(isr)
        self.leadership = self.partition().leadership
        self.schedule = add_log(self.broker.logs, self.leadership)
        self.schedule.begin_after_recovery()

    def write_to_schedule(self, *values: bytes) -> None:
        """Append a batch to the second log and have it flushed here."""
        batch = a_batch(*values)
        assert append_own(self.schedule, [batch], self.broker.this_turn).error_code == 0
        self.broker.flushes.touch(self.schedule)
        self.hand.settle()

    def tell(self, broker_id: int, records: int, schedule: int, epoch: int = 0) -> None:
        """Have a follower tell what it has of each log."""
        for wire_index, offset in ((RECORDS, records), (SCHEDULE, schedule)):
            last_epoch = epoch if offset else -1
            request = {wire_index: offset}
            answer = self.fetch(broker_id, request, epoch=epoch, last_epoch=last_epoch)
            assert parts_of(answer)[wire_index].error_code == errors.NONE
        self.hand.settle()

    @property
    def high_watermarks(self) -> tuple[int, int]:
        return self.partition().high_watermark, self.schedule.high_watermark


def test_high_watermarks_of_two_logs_stay_apart() -> None:
    scene = TwoLogs()
    scene.write(b"a")
    scene.write_to_schedule(b"b", b"c")
    seen = [scene.high_watermarks]

    for records, schedule in ((1, 0), (1, 2)):
        scene.tell(SECOND, records, schedule)
        seen.append(scene.high_watermarks)

    assert seen == [(0, 0), (1, 0), (1, 2)]


def test_no_record_counts_while_a_log_of_a_follower_in_sync_may_differ() -> None:
    """It may still have the first try of a record, when the retry lies in the other log."""
    scene = TwoLogs()
    scene.write(b"a")
    answer = scene.fetch(SECOND, {RECORDS: 1}, last_epoch=0)
    assert parts_of(answer)[RECORDS].error_code == errors.NONE
    scene.hand.settle()
    before = scene.high_watermarks

    scene.tell(SECOND, 1, 0)

    assert (before, scene.high_watermarks) == ((0, 0), (1, 0))


def test_a_follower_gets_no_records_before_both_logs_are_known_not_to_differ() -> None:
    """Else it had the first try of a record in one log and the retry in the other."""
    scene = TwoLogs()
    scene.write(b"a")
    first = scene.fetch(SECOND, {RECORDS: 0})
    session = first.session_id

    second = scene.fetch(SECOND, {SCHEDULE: 0}, session=(session, 1))

    found = [
        [record.value for each in parts_of(answer).values() for record in records_in(each)]
        for answer in (first, second)
    ]
    assert found == [[], [b"a"]]


def test_a_follower_gets_the_records_of_each_log() -> None:
    scene = TwoLogs()
    scene.write(b"a")
    scene.write_to_schedule(b"b")

    answer = scene.fetch(SECOND, {RECORDS: 0, SCHEDULE: 0})

    found = {
        index: [record.value for record in records_in(each)]
        for index, each in parts_of(answer).items()
    }
    assert found == {RECORDS: [b"a"], SCHEDULE: [b"b"]}


@pytest.mark.parametrize("first", [(1, 0), (0, 1)])
def test_a_replica_joins_once_it_has_both_logs(first: tuple[int, int]) -> None:
    scene = TwoLogs()
    scene.write(b"a")
    scene.write_to_schedule(b"b")
    seen = []

    for ends in (first, (1, 1)):
        scene.tell(THIRD, *ends)
        seen.append(scene.isr())

    assert seen == [[1, 2], [1, 2, 3]]


@pytest.mark.parametrize(
    ("ends", "may"), [((2, 2), True), ((1, 2), False), ((2, 1), False), ((3, 3), True)]
)
def test_who_may_join_has_what_counts_of_both_logs(ends: tuple[int, int], may: bool) -> None:
    scene = TwoLogs()
    scene.write(b"a", b"b")
    scene.write_to_schedule(b"c", b"d")
    scene.bring_row(leader_epoch=1)
    assert [log.epoch_start for log in scene.leadership.logs] == [2, 2]
    followers = scene.leadership.followers
    assert followers is not None
    third = followers.by_id[THIRD]

    for copy, end in zip(third.copies, ends, strict=True):
        copy.told(LIVES[THIRD], end, 3, 0, 0)
        copy.log_start = 0

    assert scene.leadership.may_join(third) == may


def test_who_lags_in_one_log_leaves_the_replicas_in_sync() -> None:
    scene = TwoLogs()
    scene.write_to_schedule(b"a")
    waited = 0
    while waited < 2 * LAG_MS and SECOND in scene.isr():
        scene.tell(SECOND, 0, 0)
        scene.pass_ms(1_000)
        waited += 1_000

    assert LAG_MS <= waited <= 1.6 * LAG_MS
    assert scene.isr() == [1]


@pytest.mark.parametrize("lost", [RECORDS, SCHEDULE])
def test_who_has_lost_records_of_either_log_is_out_at_once(
    lost: int, caplog: pytest.LogCaptureFixture
) -> None:
    scene = TwoLogs()
    scene.write(b"a", b"b")
    scene.write_to_schedule(b"c", b"d")
    ends = {RECORDS: 2, SCHEDULE: 2}
    session = scene.fetch(SECOND, ends, last_epoch=0).session_id

    with caplog.at_level(logging.ERROR):
        scene.fetch(SECOND, {lost: 1}, last_epoch=0, session=(session, 1))
        scene.hand.settle()

    assert scene.isr() == [1]
    name = "shared-0" if lost == RECORDS else "shared-0.schedule"
    assert f"broker 2 has lost records of {name}: " in caplog.text


def test_an_addition_counts_in_both_logs_before_it_is_applied() -> None:
    scene = TwoLogs()
    scene.tell(SECOND, 0, 0)
    scene.tell(THIRD, 0, 0)
    assert scene.isr() == [1, 2, 3]

    scene.write(b"a")
    scene.write_to_schedule(b"b")
    scene.tell(SECOND, 1, 1)
    before = scene.high_watermarks
    scene.tell(THIRD, 1, 0)
    between = scene.high_watermarks
    scene.tell(THIRD, 1, 1)

    assert (before, between, scene.high_watermarks) == ((0, 0), (1, 0), (1, 1))


def test_a_new_epoch_begins_in_both_logs_and_ends_of_the_one_before_are_forgotten() -> None:
    scene = TwoLogs()
    scene.write(b"a")
    scene.write_to_schedule(b"b")
    scene.tell(SECOND, 1, 1)

    scene.bring_row(leader_epoch=1)

    logs = scene.leadership.logs
    assert [log.log.leader_epochs.latest_epoch for log in logs] == [1, 1]
    copies = [log.copy(SECOND) for log in logs]
    assert [None if copy is None else copy.end for copy in copies] == [-1, -1]


def test_who_leads_no_more_leads_neither_log() -> None:
    scene = TwoLogs()
    scene.write_to_schedule(b"a")

    scene.bring_row(leader_id=SECOND, leader_epoch=1, broker_epoch=LIVES[SECOND])

    answer = scene.fetch(THIRD, {SCHEDULE: 0}, epoch=1)
    assert parts_of(answer)[SCHEDULE].error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_a_flaw_of_either_log_is_one_of_the_partition() -> None:
    scene = TwoLogs()
    assert not scene.leadership.has_flaw()

    scene.schedule.log.note_flaw(Flaw("a bit has changed", 0, 0))

    assert scene.leadership.has_flaw()


def test_both_logs_are_given_up_with_the_partition() -> None:
    scene = TwoLogs()
    logs = list(scene.leadership.logs)

    scene.bring_row(replicas=[2, 3], isr=[2], leader_id=SECOND, leader_epoch=1)

    assert [log.is_closed for log in logs] == [True, True]


def test_no_index_is_negative_but_on_the_wire() -> None:
    scene = TwoLogs()
    answer = scene.fetch(SECOND, {RECORDS: 0, SCHEDULE: 0})
    (sessions,) = [each for each in scene.broker.parts._parts if isinstance(each, ReplicaSessions)]
    session = sessions.get(answer.session_id)
    assert session is not None

    assert list(session.seats) == [(SHARED, 0, 0), (SHARED, 0, COMPANION)]
    assert [log.key for log in scene.leadership.logs] == list(session.seats)
    assert [log.watch_key for log in scene.leadership.logs] == [
        ("shared", 0, SHARED, 0),
        ("shared", 0, SHARED, COMPANION),
    ]


@pytest.mark.parametrize(
    ("replica_id", "is_led", "expected"),
    [
        (SECOND, True, (errors.NONE, 0)),
        (SECOND, False, (errors.NOT_LEADER_OR_FOLLOWER, -1)),
        (-1, True, (errors.UNKNOWN_TOPIC_OR_PARTITION, -1)),
    ],
)
def test_replicas_alone_ask_where_a_companion_log_begins(
    replica_id: int, is_led: bool, expected: tuple[int, int]
) -> None:
    scene = TwoLogs()
    scene.write(b"a")
    if not is_led:
        scene.bring_row(leader_id=SECOND, leader_epoch=1, broker_epoch=LIVES[SECOND])
    asked = ListOffsetsTopic("shared", [ListOffsetsPartition(SCHEDULE, -1, EARLIEST)])

    answer = scene.link(SECOND).ask(
        api_keys.LIST_OFFSETS, 9, ListOffsetsRequest(replica_id, topics=[asked], timeout_ms=0)
    )

    assert isinstance(answer, ListOffsetsResponse)
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.offset) == expected


def test_a_follower_begins_where_its_leader_does() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    add_log(scene.logs, partition.leadership)
    scene.role(partition, leader_epoch=1)
    partition.follow_high_watermark(0)

    assert partition.removable_end() == partition.high_watermark


# --- The follower.


def test_a_follower_copies_both_logs_of_a_partition() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    schedule = add_log(scene.logs, partition.leadership)
    scene.role(partition, leader_epoch=1)
    scene.run()
    records, scheduled = a_copy(0, b"record", epoch=1), a_copy(0, b"scheduled", epoch=1)

    asked = scene.asked()
    scene.answer(part(RECORDS, records, high_watermark=1), part(SCHEDULE, scheduled))
    scene.run()

    (topic,) = asked.topics
    assert (topic.topic_id, sorted(each.partition for each in topic.partitions)) == (
        TOPIC_ID,
        [SCHEDULE, RECORDS],
    )
    assert (stored(partition), stored(schedule)) == (records, scheduled)
    assert (partition.high_watermark, schedule.high_watermark) == (1, 0)


@pytest.mark.parametrize("is_unclean", [False, True])
@pytest.mark.parametrize("has_dropped", [False, True])
def test_after_an_unclean_election_a_compacted_schedule_is_copied_anew(
    is_unclean: bool, has_dropped: bool
) -> None:
    scene = FollowerScene()
    partition, schedule = two_copies(scene, second_offset=4 if has_dropped else 1)
    end = schedule.log.log_end_offset

    scene.role(partition, leader_epoch=2, unclean_epoch=2 if is_unclean else -1)
    scene.answer()
    scene.asked()
    scene.answer(part(RECORDS, high_watermark=1), part(SCHEDULE, high_watermark=end))
    begins_anew = is_unclean and has_dropped
    if begins_anew:
        scene.answer_start(SCHEDULE, 0, epoch=1)
    scene.run()

    assert partition.log.log_end_offset == 1
    assert schedule.log.log_end_offset == (0 if begins_anew else end)
    assert (stored(schedule) == b"") == begins_anew
    if begins_anew:
        # Copied once, it is not given up again.
        while SCHEDULE not in scene.positions():
            scene.answer()
        whole = [a_copy(offset, b"%d" % offset, epoch=1) for offset in range(2)]
        scene.answer(part(SCHEDULE, b"".join(whole), high_watermark=2))
        scene.flush()
        assert schedule.log.log_end_offset == 2
