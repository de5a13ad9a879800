"""Compaction of a follower's partition whose companion log may hold bodies of released batches."""

from __future__ import annotations

import pytest
from tests.support.compaction_scene import CompactionScene
from tests.unit.broker.scheduling.test_followed_snapshots import Follower

from tarry.broker.duties.keyed_looks import KeyedLooks
from tarry.log.compaction.cleanable import find_cleanable
from tarry.log.compaction.compaction import DONE
from tarry.log.compaction.effort import Effort
from tarry.log.compaction.key_rule import KeyRule
from tarry.records.builder import BatchBuilder
from tarry.schedule.key_and_release import KeyAndReleaseRule
from tarry.schedule.release_identity import (
    instance_batch,
    is_instance,
    released_batch,
    released_s_offset,
)


@pytest.fixture
def scene() -> CompactionScene:
    scene = CompactionScene()
    scene.make_rule = KeyAndReleaseRule
    return scene


def batch(key: bytes, timestamp: int, value: bytes = b"v") -> bytes:
    builder = BatchBuilder()
    builder.append(timestamp, key, value)
    return bytes(builder.build(0))


def append_and_compact(scene: CompactionScene, *batches: bytes) -> list[tuple[int, int, int]]:
    """Append batches behind the first one of the leader epoch, and a later record for each of their
    keys; return s-offset, count and base time of what is left of them."""
    scene.append((b"first of its epoch", b"v"))
    for data in batches:
        scene.log.append_bytes(data, 0, scene.now_wall_ms)
    scene.flush()
    scene.append((b"a", b"new"))
    scene.roll()
    scene.compact()
    return [
        (int(released_s_offset(header)), header.record_count, header.base_timestamp)
        for header, _ in scene.batches()
        if 1 <= header.base_offset <= len(batches)
    ]


def test_a_released_batch_stays_without_its_records(scene: CompactionScene) -> None:
    left = append_and_compact(
        scene, batch(b"a", 5), released_batch(batch(b"a", 7), 12), batch(b"a", 9)
    )

    assert left == [(12, 0, -1)]


def test_of_an_instance_its_due_time_stays_too(scene: CompactionScene) -> None:
    left = append_and_compact(scene, instance_batch(batch(b"a", 7), 12))

    header = next(header for header, _ in scene.batches(1))
    assert left == [(12, 0, 7)]
    assert is_instance(header)


def test_a_leader_keeps_no_released_batch(scene: CompactionScene) -> None:
    scene.make_rule = KeyRule

    assert append_and_compact(scene, released_batch(batch(b"a", 7), 12)) == []


def copy(user: Follower, data: bytes) -> None:
    """Take a batch from the leader."""
    records = user.leadership.records
    records.log.append_bytes(data, int(records.log.leader_epochs.latest_epoch), 500)
    user.hand.broker.flushes.touch(records)
    user.hand.settle()


def test_what_a_follower_has_compacted_does_not_come_again() -> None:
    """The last checkpoint is older than the release."""
    user = Follower()
    user.park(b"old", 100)
    user.pass_time(100)
    records = user.leadership.records
    assert records.log.log_end_offset == 1
    assert user.companion.log.log_end_offset == 3
    user.follow()
    log = records.log
    copy(user, batch(b"b", 500))
    records.follow_high_watermark(2)
    log.roll()
    copy(user, batch(b"c", 500))
    for _ in range(12):
        user.pass_time(500)
    looks = KeyedLooks(user.hand.broker.this_turn, user.hand.settings)
    compaction = looks.begin(records, find_cleanable(log, 2, user.hand.now_wall_ms))
    while (flush_id := compaction.step(Effort(100), user.hand.now_wall_ms)) != DONE:
        while flush_id >= 0:
            user.hand.disk.complete_flush(flush_id)
            flush_id = compaction.on_flushed()

    user.lead()
    for _ in range(5):
        user.pass_time(500)

    assert compaction.records_dropped > 0
    assert b"old" not in user.values()
