"""What becomes of a produced batch: every kind of batch in every kind of topic.

A cell is the error's name, or the offset that the batch got.  The batch is in the tail then: what
is durable, and so readable, is the matter of `test_state`.
"""

from __future__ import annotations

import pytest
from tests.support.partition_scene import LEADER, NOW_WALL_MS, PartitionScene, a_batch

from tarry.base import errors
from tarry.base.errors import StorageError
from tarry.log.batch_walk import Flaw
from tarry.partition.leader import append_own, may_open
from tarry.wire.compression import GZIP, ZSTD
from tarry.wire.crc32c import crc32c
from tarry.wire.reader import window_of

HOUR_MS = 60 * 60 * 1000
TRANSACTIONAL = 0x10
CONTROL = 0x20
LARGE = b"x" * 500


def damaged(batch: bytes) -> bytes:
    """The batch with one bit of a record turned over."""
    return batch[:-1] + bytes([batch[-1] ^ 1])


def of_magic(batch: bytes, magic: int) -> bytes:
    return batch[:16] + bytes([magic]) + batch[17:]


BATCHES: dict[str, bytes] = {
    "sound": a_batch(b"a", b"b"),
    "compressed": a_batch(b"a", b"b", codec=GZIP),
    "large": a_batch(LARGE),
    "keyless": a_batch(key=None),
    "keyless-compressed": a_batch(key=None, codec=GZIP),
    "old": a_batch(at_ms=NOW_WALL_MS - 2 * HOUR_MS),
    "old-compressed": a_batch(at_ms=NOW_WALL_MS - 2 * HOUR_MS, codec=GZIP),
    "future": a_batch(at_ms=NOW_WALL_MS + 2 * HOUR_MS),
    "zstd": a_batch(codec=ZSTD),
    "zstd-v6": a_batch(codec=ZSTD),
    "transactional": a_batch(producer_id=7, attributes=TRANSACTIONAL),
    "control": a_batch(producer_id=7, attributes=CONTROL),
    "damaged": damaged(a_batch()),
    "cut": a_batch()[:-1],
    "two": a_batch() + a_batch(),
    "magic-1": of_magic(a_batch(), 1),
    "magic-3": of_magic(a_batch(), 3),
    "nothing": b"",
}

SHORT = {
    "LARGE": "MESSAGE_TOO_LARGE",
    "RECORD": "INVALID_RECORD",
    "TIME": "INVALID_TIMESTAMP",
    "CODEC": "UNSUPPORTED_COMPRESSION_TYPE",
    "TXN": "INVALID_TXN_STATE",
    "CORRUPT": "CORRUPT_MESSAGE",
    "REPLICAS": "NOT_ENOUGH_REPLICAS",
    "STORAGE": "KAFKA_STORAGE_ERROR",
}

TABLE = """
# batch              plain    small    recent   compacted log_time flawed   one_in_sync

sound                0        0        0        0         0        STORAGE  REPLICAS
compressed           0        0        0        0         0        STORAGE  REPLICAS
large                0        LARGE    0        0         0        STORAGE  REPLICAS
keyless              0        0        0        RECORD    0        STORAGE  REPLICAS
keyless-compressed   0        0        0        RECORD    0        STORAGE  REPLICAS
old                  0        0        TIME     0         0        STORAGE  REPLICAS
old-compressed       0        0        TIME     0         0        STORAGE  REPLICAS
future               TIME     TIME     TIME     TIME      0        STORAGE  REPLICAS
zstd                 0        0        0        0         0        STORAGE  REPLICAS

# Flaws refused for every topic: only bytes that changed on their way are corrupt.
zstd-v6              CODEC    CODEC    CODEC    CODEC     CODEC    CODEC    REPLICAS
transactional        TXN      TXN      TXN      TXN       TXN      TXN      REPLICAS
control              RECORD   RECORD   RECORD   RECORD    RECORD   RECORD   REPLICAS
damaged              CORRUPT  CORRUPT  CORRUPT  CORRUPT   CORRUPT  CORRUPT  REPLICAS
cut                  RECORD   RECORD   RECORD   RECORD    RECORD   RECORD   REPLICAS
two                  RECORD   RECORD   RECORD   RECORD    RECORD   RECORD   REPLICAS
magic-1              RECORD   RECORD   RECORD   RECORD    RECORD   RECORD   REPLICAS
magic-3              RECORD   RECORD   RECORD   RECORD    RECORD   RECORD   REPLICAS
nothing              RECORD   RECORD   RECORD   RECORD    RECORD   RECORD   REPLICAS
"""


def of_kind(topic: str) -> PartitionScene:
    """A partition of a topic of this kind; `plain` has Kafka's defaults."""
    scene = PartitionScene()
    config = scene.config
    if topic == "small":
        config.max_message_bytes = 200
    elif topic == "recent":
        config.message_timestamp_before_max_ms = HOUR_MS
    elif topic == "compacted":
        config.has_deletion = False
        config.has_compaction = True
    elif topic == "log_time":
        config.is_log_append_time = True
    elif topic == "flawed":
        scene.partition.log.note_flaw(Flaw("a bit has changed", 0, 0))
    elif topic == "one_in_sync":
        config.min_insync_replicas = 2
        scene.lead(0, [LEADER, 2], [LEADER])
    return scene


def rows() -> list[list[str]]:
    lines = [line.split() for line in TABLE.splitlines() if line]
    return [words for words in lines if words[0] != "#"]


def cells() -> list[tuple[str, str, str]]:
    topics = TABLE.split("\n")[1].split()[2:]
    return [
        (row[0], topic, cell) for row in rows() for topic, cell in zip(topics, row[1:], strict=True)
    ]


def test_the_table_has_every_batch() -> None:
    assert [row[0] for row in rows()] == list(BATCHES)


@pytest.mark.parametrize(("batch", "topic", "cell"), cells())
def test_every_cell_of_the_table(batch: str, topic: str, cell: str) -> None:
    scene = of_kind(topic)
    log = scene.partition.log

    result = scene.append(BATCHES[batch], version=6 if batch.endswith("v6") else 11)

    is_appended = cell == "0"
    assert errors.error_name(result.error_code) == ("NONE" if is_appended else SHORT[cell])
    assert result.is_appended == is_appended
    assert result.base_offset == (0 if is_appended else -1)
    assert result.required_offset == log.log_end_offset
    # Whoever is refused is told why, and nothing is left of the batch.
    assert (result.message is None) == is_appended
    assert log.has_tail == is_appended
    assert (log.written_end_offset, scene.partition.high_watermark) == (0, 0)


@pytest.mark.parametrize("acks", [0, 1])
def test_only_acks_of_all_ask_for_replicas_in_sync(acks: int) -> None:
    scene = of_kind("one_in_sync")

    assert scene.append(a_batch(), acks=acks).error_code == errors.NONE
    refused = scene.append(a_batch(), acks=-1)

    assert refused.error_code == errors.NOT_ENOUGH_REPLICAS
    assert refused.message == "of 2 replicas 1 are in sync and min.insync.replicas is 2"


def test_the_records_at_fault_are_named() -> None:
    scene = of_kind("compacted")

    result = scene.append(a_batch(b"a", b"b", key=None))

    assert result.record_errors is not None
    assert [index for index, _ in result.record_errors] == [0, 1]


def test_a_topic_of_log_append_time_stamps_the_batch_with_the_turns() -> None:
    scene = of_kind("log_time")

    result = scene.append(a_batch(at_ms=NOW_WALL_MS - HOUR_MS))
    scene.write()

    assert result.log_append_time_ms == NOW_WALL_MS
    assert scene.partition.log.max_timestamp_offset(1) == (NOW_WALL_MS, 0, 0)


def test_a_batch_carries_the_epoch_of_its_leader() -> None:
    scene = PartitionScene()
    scene.produce(a_batch())
    scene.lead(3, [LEADER], [LEADER])

    scene.produce(a_batch())

    assert [scene.partition.log.epoch_at(offset) for offset in (0, 1)] == [0, 3]


# -- producers


def test_a_batch_that_comes_again_is_answered_as_before_and_not_appended() -> None:
    scene = PartitionScene()
    batch = a_batch(b"a", b"b", producer_id=7)
    scene.append(batch)
    scene.append(a_batch(producer_id=7, sequence=2))

    again = scene.append(batch)

    assert (again.error_code, again.base_offset, again.required_offset) == (errors.NONE, 0, 2)
    assert not again.is_appended
    assert scene.partition.log.log_end_offset == 3


def test_a_batch_that_comes_again_has_its_first_log_append_time() -> None:
    scene = of_kind("log_time")
    batch = a_batch(producer_id=7)
    scene.append(batch)
    scene.turn.now_wall_ms += 500

    assert scene.append(batch).log_append_time_ms == NOW_WALL_MS


PRODUCERS = [
    # Kafka's order: first the epoch, then the sequence.
    ("the next", {"sequence": 1}, errors.NONE),
    ("a gap", {"sequence": 2}, errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ("an older epoch", {"epoch": 4, "sequence": 1}, errors.INVALID_PRODUCER_EPOCH),
    ("a newer epoch from the begin", {"epoch": 6, "sequence": 0}, errors.NONE),
    ("a newer epoch", {"epoch": 6, "sequence": 1}, errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
]


@pytest.mark.parametrize(("name", "terms", "code"), PRODUCERS)
def test_a_producer_goes_on_where_it_was(name: str, terms: dict[str, int], code: int) -> None:
    scene = PartitionScene()
    scene.append(a_batch(producer_id=7, epoch=5))

    result = scene.append(a_batch(producer_id=7, **{"epoch": 5, **terms}))

    assert result.error_code == code


def test_a_tail_that_was_not_written_is_forgotten_with_its_producers() -> None:
    scene = PartitionScene()
    scene.disk.fail_writes()
    batch = a_batch(producer_id=7)
    scene.append(batch)

    with pytest.raises(StorageError):
        scene.write()
    scene.partition.on_write_failed()
    again = scene.append(batch)

    assert (again.error_code, again.base_offset) == (errors.NONE, 0)
    assert again.is_appended


# -- batches of the broker's own


def test_own_batches_are_appended_together() -> None:
    scene = PartitionScene()

    result = append_own(scene.partition, [a_batch(b"a", b"b"), a_batch(b"c")], scene.turn)

    assert (result.error_code, result.is_appended) == (errors.NONE, True)
    assert (result.base_offset, result.required_offset) == (0, 3)


@pytest.mark.parametrize(
    ("topic", "code"),
    [("small", errors.MESSAGE_TOO_LARGE), ("flawed", errors.KAFKA_STORAGE_ERROR)],
)
def test_of_own_batches_none_is_appended_if_one_cannot_be(topic: str, code: int) -> None:
    scene = of_kind(topic)

    result = append_own(scene.partition, [a_batch(), a_batch(LARGE)], scene.turn)

    assert (result.error_code, result.is_appended) == (code, False)
    assert not scene.partition.log.has_tail


# -- what a batch costs to check


@pytest.mark.parametrize(
    ("batch", "opens"),
    [
        ("sound", []),
        ("large", []),
        ("compressed", ["recent", "compacted"]),
        ("keyless-compressed", ["recent", "compacted"]),
        ("nothing", []),
    ],
)
def test_only_what_must_be_looked_at_inside_is_opened(batch: str, opens: list[str]) -> None:
    topics = ["plain", "recent", "compacted", "log_time"]
    scenes = {topic: of_kind(topic) for topic in topics}
    window = window_of(BATCHES[batch])

    foreseen = [topic for topic in topics if may_open(scenes[topic].config, window, NOW_WALL_MS)]
    opened = [topic for topic in topics if scenes[topic].append(BATCHES[batch]).has_opened]

    assert foreseen == opened == opens


def test_the_records_of_a_batch_that_is_too_large_are_not_walked_over() -> None:
    scene = of_kind("small")
    flawed = bytearray(a_batch(LARGE))
    # A count of records that the walk would find wrong; the CRC is made anew.
    flawed[23:27] = (1).to_bytes(4, "big")
    flawed[57:61] = (2).to_bytes(4, "big")
    flawed[17:21] = crc32c(bytes(flawed[21:])).to_bytes(4, "big")

    result = scene.append(bytes(flawed))

    assert result.error_code == errors.MESSAGE_TOO_LARGE
