"""Scheduled records of a new leader epoch: all that an earlier leader may have acknowledged waits
its turn."""

from __future__ import annotations

from tests.support.broker.broker_user import a_batch, records_in
from tests.support.broker.leader_scene import SECOND, LeaderScene
from tests.unit.broker.scheduling.test_headers import after

from tarry.partition.replicated_log import COMPANION

# On the wire.
RECORDS, SCHEDULE = 0, -1


class Scene(LeaderScene):
    """The partition `shared-0`, whose records' headers say when they are due."""

    def __init__(self) -> None:
        super().__init__((1, 2), delay_enable="true", delay_source="header")

    def park(self, value: bytes, after_ms: int, schedule_id: str = "") -> None:
        answer = self.operator.produce(
            a_batch(value, headers=(after(after_ms, schedule_id),)), topic="shared", acks=1
        )
        assert answer.error_code == 0

    def copy(self, epoch: int = 0) -> None:
        """Have the follower tell that it has all of both logs."""
        for index, log in ((RECORDS, self.partition()), (SCHEDULE, self.companion())):
            end = int(log.log.log_end_offset)
            self.fetch(SECOND, {index: end}, epoch=epoch, last_epoch=epoch if end else -1)
        self.hand.settle()

    def copy_schedule(self, end: int) -> None:
        """Have the follower report that it has the companion log up to this offset."""
        self.fetch(SECOND, {SCHEDULE: end}, epoch=0, last_epoch=0)
        self.hand.settle()

    def waiting(self) -> list[int]:
        """Return the s-offsets of what waits, in their order."""
        leadership = self.partition().leadership
        schedule = self.hand.broker.scheduling.get(leadership)
        assert schedule is not None
        assert schedule.state is not None
        return [each.s_offset for each in schedule.state.waiting_in(0, 100)]

    def companion(self):
        return self.partition().leadership.logs[COMPANION]

    def values(self, epoch: int = 0) -> list[bytes | None]:
        found = self.fetch(SECOND, {RECORDS: 0}, epoch=epoch)
        (part,) = [each for topic in found.responses for each in topic.partitions]
        return [each.value for each in records_in(part)]


def test_a_new_epoch_releases_nothing_before_it_knows_what_was_acknowledged() -> None:
    scene = Scene()
    scene.park(b"second", 200)
    scene.copy()
    # The leader before had told its producer, and this one has not heard of it yet.
    scene.park(b"first", 100)
    scene.bring_row(leader_epoch=1)

    scene.pass_ms(200)
    before = scene.partition().log.log_end_offset
    scene.copy(epoch=1)
    scene.pass_ms(1)

    assert before == 0
    assert scene.values(epoch=1) == [b"first", b"second"]


def test_a_record_waits_until_the_one_that_takes_its_place_counts() -> None:
    scene = Scene()
    scene.park(b"first", 60_000, "x")
    scene.copy()
    (first,) = scene.waiting()
    scene.park(b"second", 90_000, "x")
    end = int(scene.companion().log.log_end_offset)

    # The follower has the note that names the first record, and not the batch right behind it: as
    # the leader of the next epoch it would let the first record come.
    scene.copy_schedule(end - 1)
    before = scene.waiting()
    scene.copy_schedule(end)

    assert scene.companion().high_watermark == end
    assert before == [first, end - 1]
    assert scene.waiting() == [end - 1]
