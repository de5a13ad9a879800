"""Where a follower's log begins and ends: cuts, logs begun anew, log starts, losses of power."""

from __future__ import annotations

import pytest
from tests.support.replication.follower_scene import OWN, FollowerScene, a_copy, part, stored

from tarry.base import errors
from tarry.broker.replication.cuts import STEPS_PER_TURN_MAX
from tarry.broker.replication.followed import STANDING
from tarry.log.state import EMPTYING


def test_a_divergence_is_cut_and_the_cut_is_durable_before_the_next_fetch() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    common, own = a_copy(0, epoch=0), a_copy(1, b"own", epoch=1)
    scene.asked()
    scene.answer(part(0, common, own, high_watermark=1))
    scene.flush()
    assert [one.last_fetched_epoch for one in scene.asked_partitions()] == [1]

    scene.role(partition, leader_epoch=2)
    scene.answer()
    scene.answer(part(0, diverging=(0, 1)))
    assert not scene.transport.requests
    scene.run()

    assert stored(partition) == common
    assert scene.positions() == {0: 1}
    assert [one.last_fetched_epoch for one in scene.asked_partitions()] == [0]


def test_epochs_without_records_are_forgotten_by_a_divergence() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0, epoch=0)))
    scene.flush()
    partition.log.assign_epoch(1)
    scene.role(partition, leader_epoch=2)
    scene.answer()
    assert [one.last_fetched_epoch for one in scene.asked_partitions()] == [1]

    scene.answer(part(0, diverging=(0, 1)))
    scene.run()

    assert [one.last_fetched_epoch for one in scene.asked_partitions()] == [0]
    assert scene.positions() == {0: 1}


def test_what_was_promised_is_not_cut(caplog: pytest.LogCaptureFixture) -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0), a_copy(1), high_watermark=2))
    scene.flush()
    scene.asked()

    scene.answer(part(0, diverging=(0, 1)))
    scene.wait(3_000)

    assert scene.state_of(partition) == STANDING
    assert partition.log.log_end_offset == 2
    assert "everything below 2 was promised" in caplog.text
    # A leader that was elected all the same is followed.
    scene.role(partition, leader_epoch=5, unclean_epoch=5)
    scene.answer()
    scene.answer(part(0, diverging=(0, 1)))
    scene.run()
    assert partition.log.log_end_offset == 1
    assert partition.high_watermark == 1


def test_a_log_that_ends_before_the_leaders_begins_is_begun_anew() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0), high_watermark=1))
    scene.flush()
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))

    question = scene.answer_start(0, 100)
    scene.run()

    assert question.replica_id == OWN
    assert scene.positions() == {0: 100}
    assert partition.log.log_start_offset == 100
    assert stored(partition) == b""


def test_a_log_begun_anew_in_front_of_a_gap_knows_the_epoch_of_its_start() -> None:
    """Compaction has taken what the leader's log began with; epoch 1 began before the gap."""
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 100, epoch=1)
    scene.run()

    scene.answer(part(0, a_copy(120, epoch=1), high_watermark=121, log_start=100))
    scene.flush()

    assert partition.log.log_end_offset == 121
    # A replica with records of epoch 0 behind offset 100 has to cut them.
    assert partition.log.end_offset_for_epoch(0) == (0, 100)


def test_one_question_asks_where_a_bounded_number_of_logs_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tarry.broker.replication.lane.PARTITIONS_PER_FETCH_MAX", 2)
    scene = FollowerScene()
    for index in range(3):
        scene.host(index)
    scene.asked()
    scene.answer()
    scene.asked()
    scene.answer(*(part(index, code=errors.OFFSET_OUT_OF_RANGE) for index in range(3)))

    questions = [scene.answer_start(0, 100), scene.answer_start(2, 100)]

    asked = [
        [each.partition_index for topic in question.topics for each in topic.partitions]
        for question in questions
    ]
    assert asked == [[0, 1], [2]]


def test_a_leader_whose_log_begins_inside_a_batch_sends_it_whole() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 5)
    scene.run()
    assert scene.positions() == {0: 5}
    batch = a_copy(3, b"a", b"b", b"c", b"d")

    scene.answer(part(0, batch, high_watermark=7, log_start=5))
    scene.run(12)

    assert partition.log.log_end_offset == 7
    assert partition.log.log_start_offset == 5
    assert scene.positions() == {0: 7}


def test_who_has_only_what_is_deleted_at_the_leader_begins_anew_with_its_first_batch() -> None:
    """The leader's epochs begin with that batch, so it cannot tell that this is not its own."""
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0, b"x"), a_copy(1, b"y"), high_watermark=0))
    scene.flush()
    assert scene.positions() == {0: 2}
    batch = a_copy(1, b"b", b"c", b"d", epoch=0)

    scene.answer(part(0, batch, high_watermark=4, log_start=2))
    scene.run(12)

    assert partition.log.log_end_offset == 4
    assert partition.log.log_start_offset == 2
    assert stored(partition) == batch
    assert scene.positions() == {0: 4}


def test_the_leaders_log_start_is_followed_and_told() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0), a_copy(1), a_copy(2), high_watermark=3))
    scene.flush()
    scene.asked()

    scene.answer(part(0, high_watermark=3, log_start=2))
    scene.run()
    scene.answer()

    assert partition.log.log_start_offset == 2
    assert [one.log_start_offset for one in scene.asked_partitions()] == [2]


def test_after_a_loss_of_power_it_goes_on_from_what_it_has_flushed() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    batch = a_copy(0, b"kept", epoch=3)
    scene.asked()
    scene.answer(part(0, batch, high_watermark=1))
    scene.flush()
    scene.answer(part(0, a_copy(1, b"written", epoch=3), high_watermark=1))
    assert partition.log.written_end_offset == 2

    scene.disk.crash()
    scene.transport.requests.clear()
    scene.open()
    again = scene.host(0)

    assert stored(again) == batch
    assert scene.positions() == {0: 1}
    assert [one.last_fetched_epoch for one in scene.asked_partitions()] == [3]


def test_what_was_promised_is_known_after_a_clean_stop() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0), a_copy(1), high_watermark=1))
    scene.flush()
    scene.logs.close_cleanly()

    scene.transport.requests.clear()
    scene.open()
    again = scene.host(0)

    assert again.high_watermark == 1
    scene.asked()
    scene.answer(part(0, diverging=(-1, 0)))
    assert scene.state_of(again) == STANDING


def test_who_begins_anew_and_is_elected_before_it_was_answered_leads_from_there() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 100)
    scene.run()
    assert scene.positions() == {0: 100}

    scene.role(partition, leader_id=OWN, leader_epoch=1)

    assert partition.high_watermark == 100
    assert partition.high_watermark_position.offset == 100


def test_a_leader_ends_a_cut_turn_by_turn_and_when_the_disk_lets_it() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    # So many that not even a new leader reads them at once.
    count = 6_500
    for first in range(0, count, 1_000):
        batches = [a_copy(each, producer_id=7) for each in range(first, min(count, first + 1_000))]
        scene.asked()
        scene.answer(part(0, *batches, high_watermark=1))
        scene.run(2)
    log = partition.log
    assert log.log_end_offset == count
    scene.asked()
    scene.answer(part(0, diverging=(0, count - 1)))
    assert log.is_being_cut
    scene.disk.fail_reads(1, ".log")

    scene.role(partition, leader_id=OWN, leader_epoch=1)
    assert (log.is_being_cut, log.leader_epochs.latest_epoch) == (True, 1)
    scene.turn(1_100)
    assert log.is_being_cut
    scene.run(8)

    assert not log.is_being_cut
    assert log.log_end_offset == partition.epoch_start == count - 1
    assert log.leader_epochs.latest_epoch == 1
    assert partition.producers.last_offsets(count) == {7: count - 2}


def test_a_leader_ends_what_is_given_up_without_waiting_for_anything_else() -> None:
    scene = FollowerScene()
    count = 200
    partition = scene.host(0, {"segment.bytes": 100})
    scene.asked()
    scene.answer(part(0, *[a_copy(each) for each in range(count)], high_watermark=1))
    scene.run(2)
    log = partition.log
    assert len(log.segments) > 16 * (STEPS_PER_TURN_MAX + 1)
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 500)
    while log.cut.state != EMPTYING:
        scene.run(1)

    scene.role(partition, leader_id=OWN, leader_epoch=1)
    assert log.is_being_cut
    turns = 0
    while scene.parts.has_work_left():
        scene.turn(0)
        turns += 1

    assert (log.cut.is_under_way, log.log_end_offset) == (False, 500)
    assert turns >= 1


def test_a_turn_takes_a_few_steps_however_many_logs_are_cut() -> None:
    scene = FollowerScene()
    count = 40
    partitions = [scene.host(index) for index in range(count)]
    scene.asked()
    scene.answer(*[part(index, *map(a_copy, range(3)), high_watermark=1) for index in range(count)])
    scene.run(2)
    scene.asked()
    scene.answer(*[part(index, diverging=(0, 1)) for index in range(count)])

    cut: list[int] = []
    while not cut or cut[-1] < count:
        cut.append(sum(each.log.log_end_offset == 1 for each in partitions))
        assert cut[-1] == count or scene.parts.has_work_left()
        scene.turn(0)

    steps = [after - before for before, after in zip([0, *cut], cut, strict=False)]
    assert max(steps) <= STEPS_PER_TURN_MAX
    assert len(cut) <= count


@pytest.mark.parametrize(("unclean_epoch", "begins_at"), [(1, 0), (-1, 100)])
def test_an_empty_log_behind_the_end_of_an_unclean_leader_begins_where_that_one_does(
    unclean_epoch: int, begins_at: int
) -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 100)
    scene.run()
    scene.asked()
    scene.answer(part(0, high_watermark=100, log_start=100))
    scene.asked()

    scene.role(partition, leader_epoch=1, unclean_epoch=unclean_epoch)
    scene.answer()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 0)
    scene.run()

    assert partition.log.log_end_offset == partition.high_watermark == begins_at
