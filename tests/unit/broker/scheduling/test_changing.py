"""ChangeScheduledRecords: what waits is cancelled and moved, and each answer stays true."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, a_batch, records_in
from tests.support.broker.schedule_user import ScheduleUser, cancel, move, outcome_of

from tarry.base import doors, errors
from tarry.base.limits import DUE_MS_MAX, SCHEDULE_RELEASED_KEPT
from tarry.base.partition_row import PartitionRow
from tarry.partition.replicated_log import COMPANION
from tarry.protocol.messages.change_scheduled_records import ScheduledChange
from tarry.protocol.messages.list_scheduled_records import ListScheduledPartition
from tarry.records.builder import Headers
from tarry.simulation.by_hand import START_WALL_MS

LATER_MS = 3_000
HOUR_MS = 3_600_000
HOUR_MS = 3_600_000


@pytest.fixture
def user() -> ScheduleUser:
    return ScheduleUser()


def s_offset_of(user: ScheduleUser, schedule_id: str = "") -> int:
    """The s-offset of what waits first, or has this id."""
    named = schedule_id.encode() or None
    return user.list(ListScheduledPartition(0), schedule_id=named).scheduled[0].s_offset


def s_end(user: ScheduleUser) -> int:
    """How many batches the companion log has been given."""
    partition = user.hand.broker.topics[ORDERS].partitions[0]
    return partition.leadership.logs[COMPANION].log.log_end_offset


ENDS = pytest.mark.parametrize("ends", ["", "stop", "crash"])


# --- Cancels.


@ENDS
def test_what_is_cancelled_by_its_id_never_comes(user: ScheduleUser, ends: str):
    user.park(b"a", LATER_MS, "a")
    user.park(b"b", LATER_MS, "b")

    outcome = user.cancel("a")
    user.end(ends)
    user.pass_time(LATER_MS)

    assert outcome == "cancelled"
    assert user.values() == [b"b"]


@ENDS
def test_a_record_without_an_id_is_cancelled_by_its_s_offset(user: ScheduleUser, ends: str):
    user.park_all((b"a", LATER_MS, ""), (b"b", 2 * LATER_MS, ""))
    s_offset = s_offset_of(user)

    (result,) = user.change(cancel(s_offset))
    user.end(ends)
    user.pass_time(2 * LATER_MS)

    assert (outcome_of(result), result.s_offset) == ("cancelled", s_offset)
    assert user.values() == [b"b"]


def test_what_was_cancelled_is_unknown_to_the_next(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    s_offset = s_offset_of(user)

    outcomes = [outcome_of(each) for each in user.change(cancel("a"), cancel("a"))]
    outcomes += [user.cancel("a"), outcome_of(*user.change(cancel(s_offset)))]

    assert outcomes == ["cancelled", "unknown", "unknown", "unknown"]


@ENDS
def test_what_has_come_is_already_released(user: ScheduleUser, ends: str):
    user.park(b"x", 1)
    user.pass_time(1)
    user.park(b"a", LATER_MS, "a")
    s_offset = s_offset_of(user)
    user.pass_time(LATER_MS)
    user.end(ends)

    by_id, by_s_offset = user.change(cancel("a"), cancel(s_offset))

    assert [outcome_of(by_id), outcome_of(by_s_offset)] == ["already_released"] * 2
    assert by_id.s_offset == by_s_offset.s_offset == s_offset
    # A checkpoint does not tell the offset of each.
    assert by_id.offset in (1, -1)
    assert ends or by_id.offset == 1


def test_an_answer_waits_until_its_note_counts(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")

    user.send_changes(cancel("a"))
    before = user.results()
    user.hand.settle()

    assert before == []
    assert [outcome_of(each) for each in user.results()] == ["cancelled"]


def test_unknown_waits_for_a_note_of_its_own_one_a_turn_for_all(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    before = s_end(user)

    user.send_changes(cancel("x"), cancel("y"), cancel(10_000))
    answered_at_once = user.results()
    user.hand.settle()

    assert answered_at_once == []
    assert [outcome_of(each) for each in user.results()] == ["unknown"] * 3
    assert s_end(user) == before + 1


def test_unknown_in_a_topic_in_which_nothing_has_waited_yet(user: ScheduleUser):
    assert user.cancel("a") == "unknown"

    user.park(b"a", LATER_MS, "a")
    user.hand.crash()
    user.begin_anew()
    user.pass_time(LATER_MS)
    assert user.values() == [b"a"]


def test_an_id_that_was_given_again_is_that_of_the_later_record(user: ScheduleUser):
    user.park(b"a", 1, "a")
    user.pass_time(1)
    user.park(b"b", LATER_MS, "a")

    outcomes = [user.cancel("a"), user.cancel("a")]
    user.pass_time(LATER_MS)

    assert outcomes == ["cancelled", "unknown"]
    assert user.values() == [b"a"]


def test_a_release_that_is_under_way_is_not_cancelled(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    # The release is written and its flush has not ended.
    user.hand.turn(after_ms=LATER_MS)
    user.hand.turn()

    user.send_changes(cancel("a"))
    before = user.results()
    user.hand.settle()

    assert before == []
    assert [outcome_of(each) for each in user.results()] == ["already_released"]
    assert user.values() == [b"a"]


def test_a_cancel_that_the_disk_refuses_is_not_done(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    user.hand.disk.fail_writes(1, "schedule")

    (result,) = user.change(cancel("a"))
    again = user.cancel("a")

    assert outcome_of(result) == "KAFKA_STORAGE_ERROR"
    assert again == "cancelled"


def test_a_cancel_is_kept_though_its_client_has_gone(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    user.send_changes(cancel("a"))
    user.hand.turn(doors.disconnected(user.client.connection_id))
    user.hand.settle()

    user.begin_anew()
    user.pass_time(LATER_MS)

    assert user.values() == []


def test_a_thousand_changes_are_answered_in_their_order(user: ScheduleUser):
    user.park_all(*[(b"%d" % at, LATER_MS, f"id-{at}") for at in range(3_000)])
    changes = [cancel(f"id-{at}") for at in range(0, 3_000, 2)]

    results = user.change(*changes, cancel("nobody"))
    user.pass_time(LATER_MS)

    assert [outcome_of(each) for each in results] == ["cancelled"] * 1_500 + ["unknown"]
    assert len(user.values()) == 1_500


def test_of_many_changes_those_of_a_turn_that_the_disk_refuses_are_not_done(user: ScheduleUser):
    count = 3_000
    user.park_all(*[(b"%d" % at, LATER_MS, f"id-{at}") for at in range(count)])

    user.send_changes(*[cancel(f"id-{at}") for at in range(count)])
    user.hand.turn()
    user.hand.disk.fail_writes(1, "schedule")
    user.hand.settle()
    words = [outcome_of(each) for each in user.results()]
    refused = {b"%d" % at for at in range(count) if words[at] == "KAFKA_STORAGE_ERROR"}
    user.pass_time(LATER_MS)

    assert set(words) == {"cancelled", "KAFKA_STORAGE_ERROR"}
    assert 0 < len(refused) < count
    # What was cancelled behind the write that failed is cancelled.
    assert words[-1] == words[0] == "cancelled"
    assert set(user.values()) == refused


@pytest.mark.parametrize("way", ["api", "header"])
def test_what_was_cancelled_takes_no_room_though_nothing_is_ever_released(way: str):
    user = ScheduleUser(segment_bytes=str(1 << 20))
    partition = user.hand.broker.topics[ORDERS].partitions[0]
    log = partition.leadership.logs[COMPANION].log
    sizes = []

    for number in range(12):
        user.park(b"x" * 500_000, 10**9, f"id-{number}")
        if way == "api":
            user.cancel(f"id-{number}")
        else:
            headers: Headers = [("x-sched-id", b"id-%d" % number), ("x-sched-cancel", b"1")]
            user.produce(a_batch(b"", headers=(headers,)))
        for _ in range(8):
            user.pass_time(1_000)
        sizes.append(sum(segment.size for segment in log.segments))
    user.hand.crash()
    user.begin_anew()

    assert max(sizes) < 3 * (1 << 20)
    assert user.waiting() == []


# --- Moves.


@ENDS
@pytest.mark.parametrize("to_ms", [1_000, 10_000])
def test_what_is_moved_comes_at_its_new_time_as_it_was_sent(
    user: ScheduleUser, to_ms: int, ends: str
):
    user.park(b"a", LATER_MS, "a")

    (result,) = user.change(move("a", to_ms))
    user.end(ends)
    told = user.waiting()
    user.pass_time(to_ms - 1)
    before = user.values()
    user.pass_time(1)
    after = user.values()
    user.pass_time(60_000)

    assert outcome_of(result) == "moved"
    assert told == [(to_ms, b"a")]
    assert (before, after, user.values()) == ([], [b"a"], [b"a"])


@ENDS
def test_one_record_of_a_batch_is_moved_and_the_others_stay(user: ScheduleUser, ends: str):
    user.park_all((b"a", LATER_MS, "a"), (b"b", LATER_MS, "b"), (b"c", LATER_MS + 1, ""))

    user.change(move("a", 10_000))
    user.end(ends)
    user.pass_time(9_999)
    before = user.values()
    user.pass_time(1)

    assert before == [b"b", b"c"]
    assert user.values() == [b"b", b"c", b"a"]


def test_what_was_moved_is_found_by_its_new_s_offset(user: ScheduleUser):
    user.park_all((b"a", LATER_MS, ""), (b"b", LATER_MS, ""))
    first = s_offset_of(user)

    (moved,) = user.change(move(first, 10_000))
    (old,) = user.change(cancel(first))
    (new,) = user.change(cancel(moved.s_offset))

    assert moved.s_offset > first
    assert [outcome_of(each) for each in (moved, old, new)] == ["moved", "unknown", "cancelled"]


def test_what_is_moved_into_the_past_comes_at_once(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")

    user.change(move("a", -LATER_MS))
    user.pass_time(0)

    assert user.values() == [b"a"]


def test_what_is_moved_into_the_past_of_a_clock_that_is_set_back_comes_when_it_was_to(
    user: ScheduleUser,
):
    user.park(b"a", 86_400_000, "a")
    user.hand.now_wall_ms += HOUR_MS

    user.send_changes(move("a", LATER_MS))
    user.hand.now_wall_ms -= HOUR_MS
    user.hand.settle()
    (moved,) = user.results()
    seen = []
    for after_ms in (LATER_MS - 1, 1):
        user.pass_time(after_ms)
        seen.append(user.values())

    assert outcome_of(moved) == "moved"
    assert seen == [[], [b"a"]]


@pytest.mark.parametrize("ends", ["", "stop", "crash"])
def test_an_id_means_the_last_one_that_had_it_also_after_a_start(user: ScheduleUser, ends: str):
    user.park(b"a", 1, "one")
    user.pass_time(1)
    released = user.cancel("one")
    user.park(b"b", LATER_MS, "one")
    cancelled = user.cancel("one")

    user.end(ends)

    assert user.values() == [b"a"]
    assert [released, cancelled, user.cancel("one")] == [
        "already_released",
        "cancelled",
        "unknown",
    ]


def test_what_has_come_is_not_moved(user: ScheduleUser):
    user.park(b"a", 1, "a")
    user.pass_time(1)

    outcomes = [outcome_of(each) for each in user.change(move("a", 10_000), move("b", 10_000))]
    user.pass_time(60_000)

    assert outcomes == ["already_released", "unknown"]
    assert user.values() == [b"a"]


def test_a_producer_that_sends_a_moved_batch_again_is_answered_as_before(user: ScheduleUser):
    headers: Headers = [("x-deliver-after", b"3000"), ("x-sched-id", b"a")]
    batch = a_batch(b"a", headers=(headers,), producer_id=7, epoch=0, sequence=0)
    next_one = a_batch(b"b", headers=(headers[:1],), producer_id=7, epoch=0, sequence=1)
    user.produce(batch)
    user.change(move("a", 10_000))

    again = user.produce(batch)
    following = user.produce(next_one)
    user.pass_time(60_000)

    assert (again.error_code, following.error_code) == (errors.NONE, errors.NONE)
    assert user.values() == [b"b", b"a"]


def test_a_move_beyond_the_longest_delay_is_refused():
    user = ScheduleUser(delay_max_ms="5000")
    user.park(b"a", LATER_MS, "a")

    (result,) = user.change(move("a", 5_001))

    assert outcome_of(result) == "INVALID_TIMESTAMP"
    assert user.waiting() == [(LATER_MS, b"a")]


# --- What is refused.


@pytest.mark.parametrize(
    "change",
    [
        ScheduledChange(),
        ScheduledChange(schedule_id=b""),
        ScheduledChange(schedule_id=b"a", s_offset=1),
        ScheduledChange(schedule_id=b"a" * 1_025),
    ],
)
def test_a_change_that_names_nothing_is_refused(user: ScheduleUser, change: ScheduledChange):
    assert outcome_of(*user.change(change)) == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("topic", "index", "word"),
    [
        ("nothing", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
        (ORDERS, 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (ORDERS, -1, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("plain", 0, "INVALID_REQUEST"),
    ],
)
def test_a_partition_that_is_not_there_is_refused(
    user: ScheduleUser, topic: str, index: int, word: str
):
    user.create("plain")

    (result,) = user.change(cancel("a"), topic=topic, index=index)

    assert outcome_of(result) == word
    assert result.error_message


@pytest.mark.parametrize("ends", ["", "crash"])
def test_a_place_of_a_batch_that_is_moved_comes_with_the_time_at_which_it_is_due(
    user: ScheduleUser, ends: str
):
    user.park_all((b"a", LATER_MS, ""), (b"b", 2 * LATER_MS, "b"))
    s_offset = s_offset_of(user)

    (first,) = user.change(move(s_offset, 3 * LATER_MS))
    (again,) = user.change(move(first.s_offset, 4 * LATER_MS))
    (named,) = user.change(move("b", 5 * LATER_MS))
    user.end(ends)
    user.pass_time(5 * LATER_MS)
    records = records_in(user.fetch(0)) + records_in(user.fetch(1))

    assert [outcome_of(each) for each in (first, again, named)] == ["moved"] * 3
    due = {each.value: dict(each.headers)["x-sched-due"] for each in records}
    assert due == {
        b"a": b"%d" % (START_WALL_MS + 4 * LATER_MS),
        b"b": b"%d" % (START_WALL_MS + 5 * LATER_MS),
    }


def test_nothing_is_moved_to_behind_all_times(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")

    change = cancel("a")
    change.due_ms = DUE_MS_MAX + 1
    (refused,) = user.change(change)
    change.due_ms -= 1
    (moved,) = user.change(change)
    listed = user.list(ListScheduledPartition(0), due_until_ms=2**63 - 1)

    # What is due then would be in no range of times, and never come.
    assert [outcome_of(refused), outcome_of(moved)] == ["INVALID_TIMESTAMP", "moved"]
    assert listed.entry_count == 1


@pytest.mark.parametrize("s_offset", [0, 1, 2**62])
def test_an_s_offset_at_which_nothing_waits_is_unknown(user: ScheduleUser, s_offset: int):
    user.park(b"a", LATER_MS)

    outcome = outcome_of(*user.change(cancel(s_offset)))

    assert outcome == "unknown"
    assert user.waiting() == [(LATER_MS, None)]


def test_a_topic_that_is_deleted_meanwhile_is_answered(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    other = user.hand.connect()
    user.send_changes(cancel("a"))
    user.client, first = other, user.client
    user.delete()
    user.client = first

    (result,) = user.results()

    assert outcome_of(result) in ("cancelled", "NOT_LEADER_OR_FOLLOWER")


def test_a_broker_whose_replica_is_taken_away_says_that_it_leads_no_more(user: ScheduleUser):
    """Its note may count at the next leader: that there is no such partition would deny it."""
    user.park(b"a", LATER_MS, "a")
    leadership = user.hand.broker.topics[ORDERS].partitions[0].leadership
    user.send_changes(cancel("a"), cancel("nobody"))
    companion = leadership.logs[COMPANION]

    leadership.close()
    user.hand.broker.parts.on_moved(companion)
    user.hand.turn()

    assert [outcome_of(each) for each in user.results()] == ["NOT_LEADER_OR_FOLLOWER"] * 2


def test_a_broker_that_leads_no_more_says_so_instead_of_an_outcome(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    partition = user.hand.broker.topics[ORDERS].partitions[0]
    leadership = partition.leadership
    user.send_changes(cancel("a"), cancel("nobody"))

    # Another one leads before the notes are flushed.
    leadership.take_row(PartitionRow(2, 7, -1, 1, [0, 2], [2]), is_leader=False)
    user.hand.broker.parts.on_moved(leadership.logs[COMPANION])
    user.hand.turn()

    words = [outcome_of(each) for each in user.results()]
    assert words == ["NOT_LEADER_OR_FOLLOWER"] * 2


def test_a_leader_in_a_later_epoch_than_its_note_was_led_by_another_one(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    leadership = user.hand.broker.topics[ORDERS].partitions[0].leadership
    user.send_changes(cancel("a"))

    leadership.take_row(PartitionRow(leadership.own_id, 9, -1, 1, [0], [0]), is_leader=True)
    user.hand.settle()

    assert [outcome_of(each) for each in user.results()] == ["NOT_LEADER_OR_FOLLOWER"]


def test_an_answer_whose_note_is_not_flushed_in_time_leaves_it_open(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")

    user.send_changes(cancel("a"), timeout_ms=1_500)
    user.hand.turn(after_ms=1_499)
    before = user.results()
    user.hand.turn(after_ms=2)
    user.hand.turn()

    assert before == []
    assert [outcome_of(each) for each in user.results()] == ["REQUEST_TIMED_OUT"]


def test_until_what_waits_is_read_nothing_is_changed(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    user.hand.crash()
    user.client = user.hand.connect()

    (early,) = user.change(cancel("a"))

    assert outcome_of(early) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert user.cancel("a") == "cancelled"


def test_what_is_damaged_is_not_moved_and_can_be_cancelled(user: ScheduleUser):
    user.park(b"value a", LATER_MS, "a")
    user.park(b"value b", LATER_MS, "b")
    path = f"{ORDERS}-0.schedule/00000000000000000000.log"
    disk = user.hand.disk
    disk.flip_bit(path, disk.content(path).index(b"value a"))

    outcomes = [outcome_of(each) for each in user.change(move("a", 10_000), move("b", 10_000))]
    listed = user.list(ListScheduledPartition(0), include_batches=True).scheduled

    assert outcomes == ["INVALID_RECORD", "moved"]
    assert [each.batch is None for each in listed] == [True, False]
    assert user.cancel("a") == "cancelled"


def test_what_was_set_aside_as_damaged_is_counted_and_can_be_cancelled(user: ScheduleUser):
    user.park(b"value a", LATER_MS, "a")
    path = f"{ORDERS}-0.schedule/00000000000000000000.log"
    user.hand.disk.flip_bit(path, user.hand.disk.content(path).index(b"value a"))
    user.pass_time(LATER_MS)

    before = user.list(ListScheduledPartition(0))
    outcome = user.cancel("a")

    assert (before.entry_count, before.damaged_count) == (0, 1)
    assert outcome == "cancelled"
    assert user.list(ListScheduledPartition(0)).damaged_count == 0


def test_a_record_without_a_legible_due_time_does_not_come_when_its_cancel_is_lost(
    user: ScheduleUser,
):
    user.park(b"x", HOUR_MS)
    s_offset = s_offset_of(user)
    user.hand.stop()
    path = f"{ORDERS}-0.schedule/00000000000000000000.log"
    disk = user.hand.disk
    # The note is the batch before that of the record.
    disk.flip_bit(path, disk.content(path).index(b"x-deliver-after") - 100)
    user.hand.start()
    user.begin_anew()
    before = user.list(ListScheduledPartition(0))

    disk.fail_writes(1, "schedule")
    (refused,) = user.change(cancel(s_offset))
    user.pass_time(LATER_MS)

    assert (before.entry_count, before.damaged_count) == (0, 1)
    assert outcome_of(refused) == "KAFKA_STORAGE_ERROR"
    assert user.values() == []
    assert user.list(ListScheduledPartition(0)).damaged_count == 1
    assert [outcome_of(each) for each in user.change(cancel(s_offset))] == ["cancelled"]


def test_a_change_that_failed_names_no_offset(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    user.park(b"b", LATER_MS, "b")

    user.hand.disk.fail_writes(1, "schedule")
    results = user.change(cancel("a"), move("b", 2 * LATER_MS))

    assert [outcome_of(each) for each in results] == ["KAFKA_STORAGE_ERROR"] * 2
    assert [(each.outcome, each.s_offset, each.offset) for each in results] == [(0, -1, -1)] * 2


def test_what_was_replaced_by_a_later_record_is_unknown_by_its_s_offset(user: ScheduleUser):
    user.park(b"a", LATER_MS, "a")
    first = s_offset_of(user, "a")
    user.park(b"b", LATER_MS, "a")

    assert outcome_of(*user.change(cancel(first))) == "unknown"
    assert user.waiting() == [(LATER_MS, b"a")]


@pytest.mark.parametrize("ends", ["", "stop", "crash", "fail-over"])
def test_what_was_released_is_remembered_until_so_many_others_were(user: ScheduleUser, ends: str):
    user.park_all(*[(b"", 1_000 + at, f"id-{at}") for at in range(SCHEDULE_RELEASED_KEPT + 1)])
    user.pass_time(1_000 + SCHEDULE_RELEASED_KEPT)
    user.park(b"", HOUR_MS, "waits")
    user.end(ends)

    outcomes = [user.cancel(f"id-{at}") for at in (0, 1, SCHEDULE_RELEASED_KEPT)]
    user.pass_time(HOUR_MS)

    # Whatever is remembered, nothing comes after its answer.
    assert outcomes == ["unknown", "already_released", "already_released"]
    assert len(user.values()) == SCHEDULE_RELEASED_KEPT + 2
