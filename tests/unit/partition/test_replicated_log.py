"""A partition as its leader sees it: what counts, what may be read, and by whom."""

from __future__ import annotations

import pytest
from tests.support.partition_scene import LEADER, PartitionScene, a_batch

from tarry.base import errors
from tarry.base.errors import StorageError
from tarry.base.partition_row import PartitionRow
from tarry.log.config import LogConfig
from tarry.partition.reader import COMMITTED_CONSUMER, CONSUMER

READERS = [CONSUMER, COMMITTED_CONSUMER]

# After each step: the high watermark, the end that acks=1 waits for, and where each reader ends.
STEPS = """
# policy   after      high-watermark acked-by-one consumer committed log-end

commit     append     0              0            0        0         2
commit     write      0              0            0        0         2
commit     flush      2              2            2        2         2
os         append     0              0            0        0         2
os         write      2              2            2        2         2
os         flush      2              2            2        2         2
"""

ORDER = ["append", "write", "flush"]


def steps() -> list[tuple[str, str, list[int]]]:
    lines = [line.split() for line in STEPS.splitlines() if line and not line.startswith("#")]
    return [(words[0], words[1], [int(word) for word in words[2:]]) for words in lines]


def take_step(scene: PartitionScene, step: str) -> bool:
    if step == "append":
        return scene.append(a_batch(b"a", b"b")).error_code != errors.NONE
    return scene.write() if step == "write" else scene.flush()


@pytest.mark.parametrize(("policy", "last", "expected"), steps())
def test_each_step_of_a_batch(policy: str, last: str, expected: list[int]) -> None:
    scene = PartitionScene()
    partition = scene.partition
    partition.is_flushed_at_once = policy == "commit"
    before = partition.high_watermark

    for step in ORDER[: ORDER.index(last) + 1]:
        before = partition.high_watermark
        has_moved = take_step(scene, step)

    assert [
        partition.high_watermark,
        partition.acked_end(1),
        *[partition.readable_end(reader).offset for reader in READERS],
        partition.log.log_end_offset,
    ] == expected
    assert partition.acked_end(-1) == partition.high_watermark
    # Those who wait are told to look again exactly when there is more to see.
    assert has_moved == (partition.high_watermark > before)


@pytest.mark.parametrize(
    ("replicas", "isr", "minimum", "is_under"),
    [
        ([1], [1], 1, False),
        # All that there are is enough, as in Kafka: else nothing could ever be produced.
        ([1], [1], 2, False),
        ([1, 2], [1], 1, False),
        ([1, 2], [1], 2, True),
        ([1, 2, 3], [1, 2], 2, False),
        ([1, 2, 3], [1], 2, True),
        ([1, 2, 3], [1, 2], 3, True),
        ([1, 2, 3], [1, 2, 3], 9, False),
    ],
)
def test_fewer_in_sync_than_the_topic_asks_for(
    replicas: list[int], isr: list[int], minimum: int, is_under: bool
) -> None:
    scene = PartitionScene()
    scene.config.min_insync_replicas = minimum

    scene.lead(0, replicas, isr)
    if scene.partition.leadership.followers is not None:
        # All of them live and are caught up.
        scene.partition.leadership.followers.in_sync = len(isr)

    assert scene.partition.leadership.is_under_min_isr() == is_under


@pytest.mark.parametrize(
    ("known", "code"),
    [
        (-1, errors.NONE),
        (4, errors.FENCED_LEADER_EPOCH),
        (5, errors.NONE),
        (6, errors.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_who_knows_another_leader_epoch_must_look_again(known: int, code: int) -> None:
    scene = PartitionScene()
    scene.lead(5, [LEADER], [LEADER])

    assert scene.partition.leadership.epoch_error(known) == code


def test_a_reader_ends_where_the_bytes_of_the_high_watermark_do() -> None:
    scene = PartitionScene()
    size = len(a_batch())
    scene.produce(a_batch(), a_batch())
    scene.append(a_batch())
    scene.write()

    for reader in READERS:
        end = scene.partition.readable_end(reader)
        assert (end.offset, end.segment_base_offset, end.position) == (2, 0, 2 * size)


def test_after_a_crash_what_recovery_kept_counts() -> None:
    scene = PartitionScene()
    scene.produce(a_batch(b"a", b"b"))
    scene.append(a_batch())
    scene.write()
    scene.disk.crash()

    scene.open()

    partition = scene.partition
    assert partition.high_watermark == partition.log.written_end_offset
    assert partition.high_watermark >= 2
    assert partition.readable_end(CONSUMER).offset == partition.high_watermark


def test_a_failed_write_moves_nothing() -> None:
    scene = PartitionScene()
    scene.produce(a_batch())
    scene.append(a_batch())
    scene.disk.fail_writes()

    with pytest.raises(StorageError):
        scene.write()
    scene.partition.on_write_failed()

    assert (scene.partition.high_watermark, scene.partition.log.log_end_offset) == (1, 1)


def test_an_epoch_that_began_behind_a_tail_begins_before_it_if_the_disk_refuses_it() -> None:
    scene = PartitionScene()
    partition = scene.partition
    scene.produce(a_batch())
    scene.append(a_batch())
    own = partition.leadership.own_id
    partition.leadership.take_row(PartitionRow(own, 3, 5, 1, [own, 9], [own, 9]), True)
    partition.begin_epoch()
    scene.disk.fail_writes()

    with pytest.raises(StorageError):
        scene.write()
    partition.on_write_failed()

    assert (partition.epoch_start, partition.log.leader_epochs.latest_epoch) == (1, 3)


def test_retention_gives_up_nothing_above_the_high_watermark() -> None:
    scene = PartitionScene()
    scene.config.segment_bytes = 100
    scene.config.retention_ms = 1
    for _ in range(3):
        scene.produce(a_batch(b"x" * 60))
    scene.append(a_batch(b"x" * 60))
    scene.write()
    late_ms = scene.turn.now_wall_ms + 1_000

    given_up = scene.partition.delete_old_segments(late_ms)

    assert given_up == 3
    assert scene.partition.log.coming_start_offset == scene.partition.high_watermark == 3


def test_new_settings_are_those_of_the_log_too() -> None:
    scene = PartitionScene()
    config = LogConfig()
    config.max_message_bytes = 10

    scene.partition.reconfigure(config)

    assert scene.partition.log.config.max_message_bytes == 10
    assert scene.append(a_batch()).error_code == errors.MESSAGE_TOO_LARGE
