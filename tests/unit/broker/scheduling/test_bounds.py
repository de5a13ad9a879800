"""What one client may cost the others: the work of a turn, whatever is asked of a schedule."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.support.broker.broker_user import ORDERS, a_batch, produced
from tests.support.broker.counting_disk import CountingDisk
from tests.support.broker.schedule_user import ScheduleUser, cancel, move, outcome_of
from tests.support.broker.waiting_reader import SHOWN, seen_in

from tarry.base import errors
from tarry.base.limits import LONG_ANSWER_UNITS_PER_TURN
from tarry.broker.apis.list_offsets import LATEST
from tarry.broker.delayed.schedule_changes import SETTLED_PER_TURN_MAX
from tarry.broker.scheduling.loading import TAKEN_BODIES
from tarry.broker.scheduling.scheduling import RELEASED_PER_TURN_MAX
from tarry.broker.scheduling.waiting_read import WALKED_PER_TURN_MAX
from tarry.log.compaction.effort import Effort
from tarry.partition.recompression import Recompression
from tarry.partition.replicated_log import COMPANION
from tarry.protocol import api_keys
from tarry.protocol.messages.list_scheduled_records import (
    ListScheduledPartition,
    ListScheduledRecordsRequest,
    ListScheduledRecordsResponse,
)
from tarry.simulation.by_hand import START_WALL_MS
from tarry.wire.compression import GZIP
from tarry.wire.reader import window_of

# Of a batch: where it ends, and all of it.
READS = 2
# All of them are more than a broker keeps of batches that it has read.
BATCHES = 20
LARGE = b"." * 600_000
# So many of them a turn may read: a unit is 4 KiB, and the last one may go over the share.
READ_PER_TURN_MAX = LONG_ANSWER_UNITS_PER_TURN * 4_096 // len(LARGE) + 2
# For a consumer as many bytes are a batch that is gone over.
READ_PER_FETCH_MAX = WALKED_PER_TURN_MAX * 4_096 // len(LARGE) + 2


class Counter(ScheduleUser):
    """A user of large batches, of which a small record of each waits for itself."""

    def __init__(self, large_ms: int) -> None:
        super().__init__()
        self.disk = CountingDisk()
        self.hand.disk = self.disk
        self.hand.start()
        self.begin_anew()
        self.create(ORDERS, delay_enable="true", delay_source="header")
        for number in range(BATCHES):
            self.park_all((b"small", 100_000 + number, ""), (LARGE, large_ms, ""))

    def batches_read(self) -> int:
        """How many were read since the last call."""
        reads, self.disk.reads = self.disk.reads, 0
        return reads // READS

    def batches_read_by_turns(self, turns: int) -> list[int]:
        """How many the turn of a request reads, and those after it."""
        read = [self.batches_read()]
        for _ in range(turns):
            self.hand.turn()
            read.append(self.batches_read())
        return read


def test_a_list_of_single_records_reads_no_more_batches_than_its_share():
    user = Counter(large_ms=900_000)
    request = ListScheduledRecordsRequest(
        ORDERS,
        due_until_ms=2**63 - 1,
        limit=BATCHES,
        include_batches=True,
        partitions=[ListScheduledPartition(0)],
    )
    user.hand.turn()
    user.batches_read()

    user.client.send(api_keys.LIST_SCHEDULED_RECORDS, 0, request)
    read = user.batches_read_by_turns(20)
    (answer,) = user.answers()

    assert isinstance(answer, ListScheduledRecordsResponse)
    assert all(each.batch is not None for each in answer.partitions[0].scheduled)
    assert sum(read) == BATCHES
    assert max(read) <= READ_PER_TURN_MAX


def test_moves_of_single_records_read_no_more_batches_than_their_share():
    user = Counter(large_ms=900_000)
    entries = user.list(ListScheduledPartition(0), limit=BATCHES).scheduled
    user.hand.turn()
    user.batches_read()

    user.send_changes(*[move(each.s_offset, 300_000) for each in entries])
    read = user.batches_read_by_turns(20)
    user.hand.settle()

    assert [each.error_code for each in user.results()] == [0] * BATCHES
    assert sum(read) == BATCHES
    assert max(read) <= READ_PER_TURN_MAX


def test_a_consumer_of_single_records_that_wait_reads_no_more_batches_than_its_share():
    user = Counter(large_ms=1_000)
    user.pass_time(1_000)
    for _ in range(BATCHES):
        user.hand.turn()
    user.batches_read()

    seen: list[bytes | None] = []
    read: list[int] = []
    offset = 0
    while len(seen) < BATCHES:
        shown = seen_in(user.fetch(offset, topic=SHOWN), offset)
        seen += [value for _, value in shown.records]
        offset = shown.next_offset
        read.append(user.batches_read())

    assert seen == [b"small"] * BATCHES
    assert max(read) <= READ_PER_FETCH_MAX


def test_a_consumer_passes_large_batches_that_have_come_without_asking_about_each_record():
    user = ScheduleUser()
    user.park(b"first", 900_000)
    for _ in range(5):
        user.park_all(*[(b"", 1_000, "")] * 1_000)
    user.park(b"last", 900_000)
    user.pass_time(1_000)
    user.hand.broker.scheduling.budget.per_turn = 20
    user.hand.turn()

    seen = seen_in(user.fetch(0, topic=SHOWN), 0)

    assert [value for _, value in seen.records] == [b"first", b"last"]


@pytest.mark.parametrize("acks", [-1, 0])
def test_batches_of_many_due_times_are_parked_a_share_in_a_turn(acks: int):
    user = ScheduleUser()
    user.create("many", 6, delay_enable="true", delay_source="header")
    count = 5_000
    headers = tuple([("x-deliver-after", b"%d" % (1_000_000 + n))] for n in range(count))
    batch = a_batch(*[b""] * count, headers=headers, codec=GZIP)
    partitions = user.hand.broker.topics["many"].partitions
    logs = [partitions[index].leadership.logs[COMPANION].log for index in range(6)]

    request = user.produce_request(*[batch] * 6, topic="many", acks=acks)
    user.client.send(api_keys.PRODUCE, 11, request)
    parked = [0]
    while parked[-1] < 6:
        user.hand.turn()
        parked.append(sum(log.log_end_offset > 1 for log in logs))
    user.hand.settle()
    user.send_produce(a_batch(b"behind", headers=headers[:1]), topic="many")
    user.hand.settle()

    assert max(after - before for before, after in pairwise(parked)) <= 2
    codes = [row.error_code for answer in user.answers() for row in produced(answer)]
    assert codes == [errors.NONE] * (7 if acks else 1)
    assert logs[0].log_end_offset > logs[1].log_end_offset == 2 + count


def test_releases_leave_most_of_a_turn_to_the_requests_that_come():
    """A request waits for the turn under way, and for its own."""
    user = ScheduleUser()
    for _ in range(6 * RELEASED_PER_TURN_MAX):
        user.park(b"a", 100)
    log = user.hand.broker.topics[ORDERS].partitions[0].log
    ends = []

    user.hand.turn(after_ms=20)
    user.hand.turn(after_ms=80)
    for _ in range(4):
        user.send_list_offsets(LATEST)
        ends.append(log.log_end_offset)
    user.hand.turn(after_ms=20)
    ends.append(log.log_end_offset)
    user.hand.turn()
    ends.append(log.log_end_offset)

    released = [after - before for before, after in pairwise(ends)]
    assert max(released[:3]) <= RELEASED_PER_TURN_MAX // 10
    assert min(released[:3]) > 0
    assert released[-1] == RELEASED_PER_TURN_MAX


def test_so_many_changes_are_settled_in_one_turn():
    user = ScheduleUser()
    count = 3 * SETTLED_PER_TURN_MAX
    user.send_changes(*[cancel(f"id-{number}") for number in range(count)])
    for _ in range(count):
        user.hand.turn()
        if user.hand.broker.flushes.touched or not user.hand.broker.has_work_left():
            break
    decided = user.answers()
    user.hand.turn(*user.hand.disk.complete_flushes())
    turns = 0
    while not (results := user.results()):
        user.hand.turn(*user.hand.disk.complete_flushes())
        turns += 1

    assert decided == []
    assert turns > count // SETTLED_PER_TURN_MAX
    assert [outcome_of(each) for each in results] == ["unknown"] * count


def turns_of_a_start(user: ScheduleUser) -> int:
    """Crash and start the broker; return how many turns it takes to read what waits."""
    user.hand.crash()
    user.client = user.hand.connect()
    schedule = user.hand.broker.scheduling.get(
        user.hand.broker.topics[ORDERS].partitions[0].leadership
    )
    assert schedule is not None
    turns = 0
    while schedule.state is None:
        user.hand.turn()
        turns += 1
    return turns


def test_a_start_takes_a_share_of_what_waits_in_each_turn():
    user = ScheduleUser()
    count = 5 * TAKEN_BODIES
    user.park_all(*[(b"%d" % n, 10_000 + n, f"id-{n}") for n in range(count)])
    turns = turns_of_a_start(user)
    user.pass_time(10_000 + count)

    assert turns > count // TAKEN_BODIES
    assert len(user.values()) == count


def test_a_start_reads_many_small_segments_in_one_turn():
    user = ScheduleUser()
    companion = user.hand.broker.topics[ORDERS].partitions[0].leadership.logs[COMPANION]
    # So small are segments nowhere else.
    companion.log.config.segment_bytes = 2_000
    count = 200
    for number in range(count):
        user.park(b"." * 500, 10_000 + number)
    segments = len(companion.log.segments)
    turns = turns_of_a_start(user)
    user.pass_time(10_000 + count)
    user.pass_time(1)

    assert segments > 50
    assert turns < segments // 4
    assert len(user.values()) == count


def test_a_produce_counts_the_memory_of_due_times_and_ids_beside_that_of_its_records():
    user = ScheduleUser()
    count = 10_000
    headers = tuple([("x-sched-id", b"%05d" % n)] for n in range(count))
    batch = a_batch(*[b""] * count, headers=headers, codec=GZIP)
    partition = user.hand.broker.topics[ORDERS].partitions[0]
    made = Recompression(partition, window_of(batch), 11, START_WALL_MS)

    while not made.try_finish(Effort()):
        pass

    assert made.place_count == count
    assert made.new_bytes > 200 * count + 5 * count
