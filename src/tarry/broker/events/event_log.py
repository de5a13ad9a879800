"""Event log: the broker appends its events to `__tarry_events`, one batch in each interval.

Nothing is appended while nothing happens.  Events for which a batch has no room, or that the disk
refuses, are counted in a later batch; an interval keeps no more events than its batch holds.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import msgspec

from tarry.base import errors
from tarry.base.turn import Turn
from tarry.broker.coordinator.groups.history import History
from tarry.broker.events.group_events import GroupEventSource
from tarry.broker.events.kinds import (
    VERSION,
    BrokerEvent,
    Event,
    OperationEvent,
    OperationsEvent,
)
from tarry.broker.events.operation_waits import OperationWaits, Waits, subject_of
from tarry.broker.events.schedule_events import ScheduleEventSource
from tarry.broker.flushes import Flushes
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.part import Part
from tarry.broker.scheduling.scheduling import Scheduling
from tarry.broker.topics import Topics
from tarry.cluster.decisions.topic_decisions import TopicChange, TopicWanted
from tarry.cluster.state.topic_names import EVENTS_TOPIC
from tarry.partition.leader import append_own
from tarry.partition.replicated_log import ReplicatedLog
from tarry.purgatory.purgatory import Purgatory
from tarry.records.builder import BatchBuilder

# Bound on the bytes of a batch, and on the events that wait for it.
BATCH_BYTES_MAX: Final = 512 * 1024

TOPIC_CONFIGS: Final = (
    ("cleanup.policy", "delete"),
    ("retention.bytes", str(64 * 1024 * 1024)),
    ("retention.ms", "-1"),
    ("segment.bytes", str(16 * 1024 * 1024)),
)


class EventLog(Part):
    """Event log of one broker: collects events, and appends them at regular times."""

    def __init__(
        self,
        broker_id: int,
        turn: Turn,
        topics: Topics,
        flushes: Flushes,
        changes: MetadataChanges,
        scheduling: Scheduling,
    ) -> None:
        self._broker_id = broker_id
        self._turn = turn
        self._topics = topics
        self._flushes = flushes
        self._changes = changes
        self._creation: TopicChange | None = None
        self._waits: list[OperationWaits] = []
        self._since_ms = turn.now_ms
        self._stalled_ms = turn.stalled_ms
        self._flush_rounds = flushes.rounds_total
        self._dropped = 0
        self._told = _Batch()
        self._groups = GroupEventSource(broker_id, self.add)
        self._schedules = ScheduleEventSource(broker_id, turn, scheduling, self.add)
        # Offset that the log has to reach for the last append to be kept, and its number of events.
        self._required_offset = 0
        self._appended = 0
        self._tell_broker("started")

    def listen(self, purgatories: list[Purgatory], history: History) -> None:
        """Receive the waits of operations in these purgatories, and the notes and commits of
        groups.
        """
        history.report_to(self._groups)
        for purgatory in purgatories:
            waits = OperationWaits(purgatory.name, EVENTS_TOPIC)
            purgatory.listen(waits)
            self._waits.append(waits)

    # -- events of the broker

    def on_stall(self) -> None:
        stalled_ms = self._turn.stalled_ms
        self._tell_broker("stalled", stalled_ms=stalled_ms - self._stalled_ms)
        self._stalled_ms = stalled_ms

    def stop(self) -> None:
        self._tell_broker("stopped")
        self.append()

    # -- the interval

    def append(self) -> None:
        """Append the events since the last time, if there are any."""
        self._check_kept()
        self._tell_operations()
        self._dropped += self._groups.tell_lag(self._topics, self._turn.now_wall_ms)
        batch = self._told
        if batch.count == 0:
            return
        partition = self._partition()
        if partition is None:
            # The topic is created in one of the next turns; the events wait until then.
            return
        self._tell_counted()
        self._told = _Batch()
        result = append_own(partition, [batch.build()], self._turn)
        if result.error_code != errors.NONE:
            self._dropped += batch.count
            return
        self._flushes.touch(partition)
        self._required_offset = result.required_offset
        self._appended = batch.count

    def _check_kept(self) -> None:
        """Count the events of the last append as dropped if the log's write failed."""
        partition = self._topics.partition(EVENTS_TOPIC, 0)
        if self._appended and (
            partition is None or partition.log.written_end_offset < self._required_offset
        ):
            self._dropped += self._appended
        self._appended = 0

    def _partition(self) -> ReplicatedLog | None:
        partition = self._topics.partition(EVENTS_TOPIC, 0)
        if partition is not None:
            self._creation = None
        elif self._creation is None or self._creation.is_ended:
            wanted = TopicWanted(EVENTS_TOPIC, 1, 1, [], list(TOPIC_CONFIGS))
            self._creation = self._changes.creation([wanted])
            self._changes.store.change(self._creation)
        return partition

    def _tell_operations(self) -> None:
        now_ms = self._turn.now_ms
        interval_ms = now_ms - self._since_ms
        self._since_ms = now_ms
        self._schedules.tell(interval_ms)
        for waits in self._waits:
            if not waits.by_subject:
                continue
            for subject, counted in waits.by_subject.items():
                self._tell_counted_waits(waits.purgatory, subject, counted, interval_ms)
            longest = max(waits.by_subject.values(), key=lambda each: each.longest_ms)
            told = (longest.longest_key, int(longest.longest_ms))
            if not longest.is_longest_expired or told not in waits.expired:
                self._tell_operation(waits.purgatory, *told, longest.is_longest_expired)
            for key, waited_ms in waits.expired:
                self._tell_operation(waits.purgatory, key, waited_ms, True)
            waits.clear()

    def _tell_counted_waits(
        self, purgatory: str, subject: str, counted: Waits, interval_ms: int
    ) -> None:
        self.add(
            OperationsEvent(
                v=VERSION,
                at_ms=self._turn.now_wall_ms,
                broker=self._broker_id,
                interval_ms=interval_ms,
                purgatory=purgatory,
                subject=subject,
                completed=counted.completed,
                expired=counted.expired,
                sum_ms=counted.sum_ms,
                longest_ms=counted.longest_ms,
                buckets={str(each): count for each, count in sorted(counted.buckets.items())},
            )
        )

    def _tell_operation(
        self, purgatory: str, key: Hashable, waited_ms: int, is_expired: bool
    ) -> None:
        self.add(
            OperationEvent(
                v=VERSION,
                at_ms=self._turn.now_wall_ms,
                broker=self._broker_id,
                purgatory=purgatory,
                subject=subject_of(key),
                key=_key_text(key),
                waited_ms=waited_ms,
                expired=is_expired,
            )
        )

    def _tell_counted(self) -> None:
        """Add the broker's counters, only to a batch with other events: their append changes the
        counters.
        """
        rounds = self._flushes.rounds_total
        self._tell_broker("counted", flushes=rounds - self._flush_rounds, dropped=self._dropped)
        self._flush_rounds = rounds
        self._dropped = 0

    def _tell_broker(
        self, what: str, stalled_ms: int = 0, flushes: int = 0, dropped: int = 0
    ) -> None:
        event = BrokerEvent(
            v=VERSION,
            at_ms=self._turn.now_wall_ms,
            broker=self._broker_id,
            what=what,
            stalled_ms=stalled_ms,
            flushes=flushes,
            dropped=dropped,
        )
        # The broker's own events are few, and its start and stop must not be missing.
        self._told.add(event, self._turn.now_wall_ms)

    def add(self, event: Event) -> None:
        """Add an event to the next batch, if the batch has room."""
        if self._told.size >= BATCH_BYTES_MAX:
            self._dropped += 1
            return
        self._told.add(event, self._turn.now_wall_ms)


class _Batch:
    """Events of one batch, each encoded when it is added."""

    def __init__(self) -> None:
        self._builder = BatchBuilder()
        self._encoder = msgspec.json.Encoder()

    @property
    def size(self) -> int:
        return int(self._builder.size)

    @property
    def count(self) -> int:
        return int(self._builder.count)

    def add(self, event: Event, now_wall_ms: int) -> None:
        self._builder.append(now_wall_ms, None, self._encoder.encode(event))

    def build(self) -> bytes:
        return self._builder.build()


def _key_text(key: Hashable) -> str:
    """Return a readable text of what an operation waited for."""
    if not isinstance(key, tuple):
        return key if isinstance(key, str) else type(key).__name__
    if len(key) == 4:
        return f"{key[0]}-{key[1]}"
    return " ".join(str(each) for each in key)
