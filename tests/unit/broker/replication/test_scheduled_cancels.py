"""Cancels of scheduled records where others follow: each log counts for itself there."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import a_batch
from tests.support.broker.leader_scene import SECOND, LeaderScene
from tests.unit.broker.scheduling.test_headers import after, cancel

from tarry.base import errors
from tarry.partition.replicated_log import COMPANION
from tarry.records.builder import Headers

# On the wire.
RECORDS, SCHEDULE = 0, -1


class Scene(LeaderScene):
    """The partition `shared-0`, whose records' headers say when they are due."""

    def __init__(self) -> None:
        super().__init__((1, 2), delay_enable="true", delay_source="header")

    def send(self, headers: Headers, sequence: int) -> int:
        batch = a_batch(b"", headers=(headers,), producer_id=7, sequence=sequence)
        return int(self.operator.produce(batch, topic="shared", acks=1).error_code)

    def copy(self, records: int) -> None:
        """Have the follower tell that it has so many records, and all of the companion log."""
        log = self.partition().leadership.logs[COMPANION].log
        for index, end in ((RECORDS, records), (SCHEDULE, int(log.log_end_offset))):
            self.fetch(SECOND, {index: end}, last_epoch=0 if end else -1)
        self.hand.settle()


@pytest.mark.parametrize("headers", [cancel("one"), after(60_000, "one")])
def test_a_cancel_is_refused_until_a_release_before_it_is_copied(headers: Headers) -> None:
    scene = Scene()
    scene.send(after(100, "one"), sequence=0)
    scene.copy(records=0)
    scene.pass_ms(100)
    codes, ends = [], []
    for records in (0, 1):
        scene.copy(records)
        codes.append(scene.send(headers, sequence=1))
        ends.append(scene.high_watermark)

    assert ends == [0, 1]
    assert codes == [errors.KAFKA_STORAGE_ERROR, errors.NONE]


@pytest.mark.parametrize("headers", [cancel("one"), after(60_000, "one")])
def test_what_recurs_is_taken_back_while_an_instance_is_not_copied(headers: Headers) -> None:
    scene = Scene()
    scene.send([("x-sched-cron", b"* * * * *"), ("x-sched-id", b"one")], sequence=0)
    scene.copy(records=0)
    while scene.partition().log.log_end_offset == 0:
        scene.pass_ms(1_000)
        scene.copy(records=0)

    code = scene.send(headers, sequence=1)
    scene.copy(records=1)
    scene.pass_ms(40_000)
    scene.copy(records=1)

    assert code == errors.NONE
    # What was under way has come, and nothing more.
    assert (scene.high_watermark, scene.partition().log.log_end_offset) == (1, 1)
