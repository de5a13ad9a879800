"""Replay of the log of `__consumer_offsets`, compared with the live groups after each turn.

Records that a turn has added are applied to a replica of the groups.  When segments were exchanged
or dropped, and in every new life, the replica is rebuilt from the whole log.  The bytes come from
the simulated disk, not from the product's reading code.

A tombstone that no request asked for must belong to an offset that has expired.  A group that is
removed must leave no offsets behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.broker import Broker
from tarry.broker.coordinator.groups.shard import GroupShard
from tarry.group.classic.records import GroupMetadata, GroupTombstone
from tarry.group.classic.state import ClassicGroup
from tarry.group.offsets.records import OffsetTombstone
from tarry.group.records import (
    NO_TIMESTAMP,
    GroupRecord,
)
from tarry.group.state import Groups, GroupState, Kinds
from tarry.log.log import Log
from tarry.log.segment import LOG_SUFFIX
from tarry.records.batch import decode_batch_header
from tarry.records.record import decode_records
from tarry.simulation.disk import SimulatedDisk
from tarry.simulation.groups.history import (
    REFUSED,
    GroupHistory,
    OffsetWrite,
    Register,
    register_name,
)

_RECORD_BYTES_MAX: Final = 1 << 20


class _Replica:
    """Groups of one partition as its log has them."""

    def __init__(self, log: Log, kinds: Kinds) -> None:
        # The log that was read; a partition whose topic was deleted and made again has another one.
        self.log = log
        self.groups = Groups(kinds)
        self.end_offset = -1
        # True until the first read: its records may be as old as the log.
        self.is_new = True
        # Base offset of the segment in which the end offset lies, and position in its file.
        self.place = (-1, 0)
        # Base offset and size of each segment, as they were when they were read.
        self.segments: list[tuple[int, int]] = []


class LogReplay:
    """Checker that follows the partitions of one broker life after the other."""

    def __init__(
        self, disk: SimulatedDisk, history: GroupHistory, is_topic_deleted: Callable[[str], bool]
    ) -> None:
        self.disk = disk
        self._history = history
        self._is_topic_deleted = is_topic_deleted
        self._replicas: dict[int, _Replica] = {}
        # For each partition, the live groups of the last look: they show which group has ended.
        self._known: dict[int, dict[str, GroupState]] = {}
        # Partitions whose groups were loaded in this life.
        self._followed: dict[int, None] = {}
        # How often a replica was made from a whole log, for tests of this checker.
        self.replays = 0

    def on_life_begins(self) -> None:
        """Forget the replicas of the broker's last life: only its log outlives it."""
        self._replicas = {}
        self._followed = {}

    def forget_others(self, broker: Broker) -> None:
        """Forget partitions that this broker does not lead now: their logs may be cut."""
        for index in [each for each in self._replicas if each not in broker.groups.shards]:
            del self._replicas[index]
            self._followed.pop(index, None)

    def after_turn(self, broker: Broker, turn: int) -> list[str]:
        """Return a sentence for each difference of log and groups after a turn."""
        sentences: list[str] = []
        for index, shard in broker.groups.shards.items():
            if shard.runtime.error_code == errors.NONE:
                sentences += self._follow(index, shard, turn)
                self._note_ends(index, shard, turn)
        return sentences

    def _follow(self, index: int, shard: GroupShard, turn: int) -> list[str]:
        log = shard.runtime.partition.log
        segments = [(segment.base_offset, segment.written_size) for segment in log.segments]
        replica = self._replicas.get(index)
        is_same = replica is not None and replica.log is log
        if replica is None or not is_same or not _has_only_grown(replica.segments, segments):
            self.replays += 1
            replica = self._replicas[index] = _Replica(log, shard.groups.kinds)
            replica.end_offset = log.log_start_offset
        high_watermark = shard.runtime.partition.high_watermark
        sentence = ""
        if replica.end_offset < high_watermark:
            sentence = self._read(replica, log, high_watermark, turn)
        replica.segments = segments
        return [sentence] if sentence else _differences(shard, replica)

    def _read(self, replica: _Replica, log: Log, end_offset: int, turn: int) -> str:
        """Apply the added records; return a sentence about the first violation, or ""."""
        sentence = ""
        for record, timestamp in self._records(log, replica, end_offset):
            if isinstance(record, OffsetTombstone) and not replica.is_new:
                sentence = sentence or self._note_tombstone(replica, record, timestamp, turn)
            replica.groups.apply(record)
            if isinstance(record, GroupTombstone) and replica.groups.group(record.group_id).offsets:
                sentence = sentence or f"group {record.group_id} is removed and has offsets"
        replica.end_offset = end_offset
        replica.is_new = False
        return sentence

    def _note_tombstone(
        self, replica: _Replica, record: OffsetTombstone, timestamp: int, turn: int
    ) -> str:
        group = replica.groups.group(record.group_id)
        committed = group.offset(record.topic, record.partition)
        if committed is None:
            return ""
        if NO_TIMESTAMP != committed.expire_timestamp_ms <= timestamp:
            self._note_expiry(record, turn)
            return ""
        since_ms = committed.commit_timestamp_ms
        recorded = _recorded(group)
        if recorded is not None and recorded.protocol_type and not recorded.members:
            # KIP-211: in a group that had members, retention begins when the last one has left.
            since_ms = recorded.state_timestamp_ms
        register = (record.group_id, record.topic, record.partition)
        if timestamp - since_ms >= self._history.retention_ms:
            self._note_expiry(record, turn)
            return ""
        if self._is_asked_for(register):
            return ""
        return (
            f"the offset of {register_name(register)} was removed {timestamp - since_ms} ms after "
            f"its time began, and it has {self._history.retention_ms} ms"
        )

    def _note_expiry(self, record: OffsetTombstone, turn: int) -> None:
        """Note the expiry of an offset, which needs no request."""
        write = OffsetWrite((record.group_id, record.topic, record.partition), "", -1)
        write.sent_turn = 0
        write.end_turn = turn
        self._history.writes.append(write)

    def _is_asked_for(self, register: Register) -> bool:
        """Return true if a request deleted the offset, its group or its topic."""
        return self._is_topic_deleted(register[1]) or any(
            write.is_deletion and write.is_of(register) and write.outcome != REFUSED
            for write in self._history.writes
        )

    def _records(
        self, log: Log, replica: _Replica, end_offset: int
    ) -> Iterator[tuple[GroupRecord, int]]:
        """Yield the records from the replica's end offset on and their times, from the files."""
        segments = log.segments
        start_offset = replica.end_offset
        for place, segment in enumerate(segments):
            if place + 1 < len(segments) and segments[place + 1].base_offset <= start_offset:
                continue
            data = self.disk.content(segment.path + LOG_SUFFIX)[: segment.written_size]
            position = replica.place[1] if replica.place[0] == segment.base_offset else 0
            while position < len(data):
                header = decode_batch_header(data, position)
                if header.base_offset >= end_offset:
                    return
                batch = data[position : position + header.size]
                position += header.size
                replica.place = (segment.base_offset, position)
                if header.last_offset < start_offset:
                    continue
                for found in decode_records(batch, size_max=_RECORD_BYTES_MAX):
                    assert found.key is not None
                    record = replica.groups.kinds.decode(found.key, found.value)
                    if record is not None:
                        yield record, found.timestamp

    def _note_ends(self, index: int, shard: GroupShard, turn: int) -> None:
        is_same_life = index in self._followed
        self._followed[index] = None
        live = shard.groups.by_id
        for group_id, group in self._known.get(index, {}).items():
            now = live.get(group_id)
            if now is None or (now is not group and is_same_life):
                self._history.ends.setdefault(group_id, []).append(turn)
        self._known[index] = dict(live)


def _has_only_grown(before: list[tuple[int, int]], now: list[tuple[int, int]]) -> bool:
    """Return true if the log has only grown at its end since it had the segments `before`."""
    if len(now) < len(before) or not before:
        return len(now) >= len(before)
    if now[: len(before) - 1] != before[:-1]:
        return False
    base_offset, size = now[len(before) - 1]
    return base_offset == before[-1][0] and size >= before[-1][1]


def _differences(shard: GroupShard, replica: _Replica) -> list[str]:
    live = shard.groups.by_id
    durable = replica.groups.by_id
    name = shard.runtime.partition.name
    for group_id in dict.fromkeys([*live, *durable]):
        there = live.get(group_id)
        logged = durable.get(group_id)
        recorded = _recorded(there)
        offsets = {} if there is None else there.offsets
        if recorded != _recorded(logged):
            return [
                f"group {group_id} is {recorded} in the broker, and the log of {name} says "
                f"{_recorded(logged)}"
            ]
        if offsets != ({} if logged is None else logged.offsets):
            return [
                f"the offsets of group {group_id} are {offsets} in the broker, and the log of "
                f"{name} says {None if logged is None else logged.offsets}"
            ]
    return []


def _recorded(group: GroupState | None) -> GroupMetadata | None:
    return group.recorded if isinstance(group, ClassicGroup) else None
