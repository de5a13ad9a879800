"""What the broker does by the clock: retention, compaction, checkpoints, expiry, counters.

Each is a timer entry that adds itself again.  Retention and the expiry of offsets go by the
calendar, so they distrust one that jumped: a clock set wrong for a minute must delete nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from tarry.base.disk_trouble import INTERVAL_MS
from tarry.broker.calendar import CalendarWatch
from tarry.broker.compactions import Compactions
from tarry.broker.flush_rounds import FlushListener
from tarry.timer.entry import TimerEntry

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

logger = logging.getLogger("tarry.broker")

CHECKPOINT_INTERVAL_MS: Final = 5_000


class Recurring(TimerEntry):
    """A duty that comes again `interval_ms` after it was done."""

    def __init__(self, broker: Broker, interval_ms: int) -> None:
        super().__init__(broker.now_ms + interval_ms)
        self.broker = broker
        self.interval_ms = interval_ms
        broker.timer.add(self)

    def expire(self) -> None:
        self.run()
        self.deadline_ms = self.broker.now_ms + self.interval_ms
        self.broker.timer.add(self)

    def run(self) -> None:
        """Do it once."""


class ByCalendar(Recurring):
    """A duty that asks how old something is; it waits when the calendar jumped."""

    name = ""

    def __init__(self, broker: Broker, interval_ms: int) -> None:
        super().__init__(broker, interval_ms)
        self._calendar = CalendarWatch(broker)

    def run(self) -> None:
        jump_ms = self._calendar.jump_ms()
        if jump_ms != 0:
            logger.warning(
                "the wall clock jumped by %d s; %s waits until the next check in %d s",
                jump_ms // 1000,
                self.name,
                self.interval_ms // 1000,
            )
            return
        self.look()

    def look(self) -> None:
        """Do it once, by a calendar that can be trusted."""


class Retention(ByCalendar):
    """Deletes the segments that a topic's settings no longer keep."""

    name = "retention"

    def look(self) -> None:
        broker = self.broker
        for partition in broker.topics.partitions():
            partition.delete_old_segments(broker.now_wall_ms)


class ProducerExpiry(Recurring):
    """Forgets producers that have written nothing for `producer.id.expiration.ms`."""

    def run(self) -> None:
        for partition in self.broker.topics.partitions():
            partition.producers.expire(self.broker.now_ms)


class OffsetsExpiry(ByCalendar):
    """Removes offsets that nobody has committed for `offsets.retention.minutes`."""

    name = "the expiry of offsets"

    def look(self) -> None:
        self.broker.coordinator.expire_offsets()


class Counters(Recurring):
    """Sums up what clients and the disk did wrong, and tells purgatories' counters that changed."""

    def __init__(self, broker: Broker, interval_ms: int) -> None:
        super().__init__(broker, interval_ms)
        self.written = self._counters()

    def run(self) -> None:
        broker = self.broker
        broker.answers.faults.flush(broker.now_ms)
        broker.logs.trouble.flush()
        before = self.written
        self.written = self._counters()
        for counters in self.written:
            if counters in before:
                continue
            name, watched, delayed, completed, expired = counters
            logger.debug(
                "purgatory %s: watched %d, delayed %d, completed %d, expired %d",
                name,
                watched,
                delayed,
                completed,
                expired,
            )

    def _counters(self) -> list[tuple[str, int, int, int, int]]:
        return [
            (each.name, each.watched, each.delayed, each.completed_total, each.expired_total)
            for each in self.broker.parts.purgatories()
        ]


class Checkpoints(Recurring):
    """Writes recovery points, so that a start after a crash scans little."""

    def run(self) -> None:
        flush_id = self.broker.logs.recovery_points.begin(self.broker.now_ms)
        if flush_id >= 0:
            self.broker.record_deletions.on_round_begun()
        self._follow(flush_id)

    def on_flushed(self, flush_id: int) -> None:
        """One step of a round is durable; the next begins."""
        next_flush_id = self.broker.logs.recovery_points.on_flushed(flush_id)
        self._follow(next_flush_id)
        self.broker.record_deletions.on_step(is_round_over=next_flush_id < 0)

    def _follow(self, flush_id: int) -> None:
        if flush_id >= 0:
            self.broker.flush_listeners[flush_id] = CheckpointStep(self)


class CheckpointStep(FlushListener):
    """A flush that a round of checkpoints waits for."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self.checkpoints = checkpoints

    def on_flushed(self, flush_id: int) -> None:
        self.checkpoints.on_flushed(flush_id)


def begin_duties(broker: Broker) -> None:
    """Add every duty to the broker's timer."""
    settings = broker.settings
    Retention(broker, settings.log_retention_check_interval_ms)
    ProducerExpiry(broker, settings.producer_id_expiration_check_interval_ms)
    broker.record_deletions.checkpoints = Checkpoints(broker, CHECKPOINT_INTERVAL_MS)
    OffsetsExpiry(broker, settings.offsets_retention_check_interval_ms)
    Counters(broker, INTERVAL_MS)
    Compactions(broker)
