"""The log of `__consumer_offsets` gives the durable part of the live groups, after every turn.

What was added since the last turn is applied to a replica; whenever segments were exchanged or
dropped, and in every new life, the replica is made anew from the whole log.  The bytes are the
disk's own, read past the product's reading code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.broker import Broker
from tarry.broker.coordinator.shard import Shard
from tarry.group.records import GroupRecord, decode_record
from tarry.group.state import Groups, GroupState
from tarry.log.log import Log
from tarry.log.segment import LOG_SUFFIX
from tarry.records.batch import decode_batch_header
from tarry.records.record import decode_records
from tarry.simulation.disk import SimulatedDisk
from tarry.simulation.group_history import GroupHistory

_RECORD_BYTES_MAX: Final = 1 << 20


class _Replica:
    """The groups of one partition as its log has them."""

    def __init__(self) -> None:
        self.groups = Groups()
        self.end_offset = -1
        # Base offset and size of each segment, as they were when they were read.
        self.segments: list[tuple[int, int]] = []


class LogReplay:
    """Follows the partitions of one broker after the other."""

    def __init__(self, disk: SimulatedDisk, history: GroupHistory) -> None:
        self._disk = disk
        self._history = history
        self._replicas: dict[int, _Replica] = {}
        # The live groups that were seen last, to know when one ceases to exist.
        self._known: dict[tuple[int, str], GroupState] = {}
        self._is_new_life = True
        # How often a replica was made from a whole log, for tests of this checker.
        self.replays = 0

    def on_life_begins(self) -> None:
        """Nothing of the broker before is there any more but its log."""
        self._replicas = {}
        self._is_new_life = True

    def after_turn(self, broker: Broker, turn: int) -> list[str]:
        """What is wrong now."""
        shards = broker.coordinator.shards
        if any(shard.error_code != errors.NONE for shard in shards):
            return []
        sentences: list[str] = []
        for index, shard in enumerate(shards):
            replica = self._follow(index, shard)
            sentences += _differences(shard, replica)
        if shards:
            self._note_ends(shards, turn)
        return sentences

    def _follow(self, index: int, shard: Shard) -> _Replica:
        log = shard.partition.log
        segments = [(segment.base_offset, segment.written_size) for segment in log.segments]
        replica = self._replicas.get(index)
        if replica is None or not _has_only_grown(replica.segments, segments):
            self.replays += 1
            replica = self._replicas[index] = _Replica()
            replica.end_offset = log.log_start_offset
        high_watermark = shard.partition.high_watermark
        if replica.end_offset < high_watermark:
            for record in self._records(log, replica.end_offset, high_watermark):
                replica.groups.apply(record)
            replica.end_offset = high_watermark
        replica.segments = segments
        return replica

    def _records(self, log: Log, start_offset: int, end_offset: int) -> Iterator[GroupRecord]:
        """The records between two offsets, from the files as they are."""
        segments = log.segments
        for place, segment in enumerate(segments):
            if place + 1 < len(segments) and segments[place + 1].base_offset <= start_offset:
                continue
            data = self._disk.content(segment.path + LOG_SUFFIX)[: segment.written_size]
            position = 0
            while position < len(data):
                header = decode_batch_header(data, position)
                if header.base_offset >= end_offset:
                    return
                batch = data[position : position + header.size]
                position += header.size
                if header.last_offset < start_offset:
                    continue
                for found in decode_records(batch, size_max=_RECORD_BYTES_MAX):
                    assert found.key is not None
                    record = decode_record(found.key, found.value)
                    if record is not None:
                        yield record

    def _note_ends(self, shards: list[Shard], turn: int) -> None:
        live = {
            (index, group_id): group
            for index, shard in enumerate(shards)
            for group_id, group in shard.groups.by_id.items()
        }
        for key, group in self._known.items():
            now = live.get(key)
            if now is None or (now is not group and not self._is_new_life):
                self._history.ends.setdefault(key[1], []).append(turn)
        self._known = live
        self._is_new_life = False


def _has_only_grown(before: list[tuple[int, int]], now: list[tuple[int, int]]) -> bool:
    """Whether nothing was exchanged, shortened or dropped: only the last one may have grown."""
    if len(now) < len(before) or not before:
        return len(now) >= len(before)
    if now[: len(before) - 1] != before[:-1]:
        return False
    base_offset, size = now[len(before) - 1]
    return base_offset == before[-1][0] and size >= before[-1][1]


def _differences(shard: Shard, replica: _Replica) -> list[str]:
    live = shard.groups.by_id
    durable = replica.groups.by_id
    name = shard.partition.name
    for group_id in dict.fromkeys([*live, *durable]):
        there = live.get(group_id)
        logged = durable.get(group_id)
        recorded = None if there is None else there.recorded
        offsets = {} if there is None else there.offsets
        if recorded != (None if logged is None else logged.recorded):
            return [
                f"group {group_id} is {recorded} in the broker, and the log of {name} says "
                f"{None if logged is None else logged.recorded}"
            ]
        if offsets != ({} if logged is None else logged.offsets):
            return [
                f"the offsets of group {group_id} are {offsets} in the broker, and the log of "
                f"{name} says {None if logged is None else logged.offsets}"
            ]
    return []
