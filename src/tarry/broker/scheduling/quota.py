"""Quota of waiting bytes: of each partition by its topic, and of all that this broker leads.

A batch that would exceed a limit is refused with the setting's name.  Near a limit batches are
parked and their answers ask for a pause: the less room there is, the longer.  The bytes of an
earlier life are not known before they are read: until then the size of the companion log stands for
them, which is never less.  What cannot be read takes no room: nothing is parked beside it, and
other partitions must not wait for a count that never ends.  Hot.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.settings import Settings
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.records.batch import BatchCheck
from tarry.schedule.bodies import released_bytes
from tarry.schedule.notes import ScheduledNote
from tarry.schedule.state import ScheduleState

# Share of a limit from which on answers ask for pauses.
_THROTTLED_FROM: Final = 0.9
# Pause at the limit: as long as Kafka's largest.
_THROTTLE_MS_MAX: Final = 1_000

_TOPIC_KEY: Final = "delay.pending.max.bytes"
_BROKER_KEY: Final = "delay.pending.total.max.bytes"


class PendingTotal:
    """Bytes that wait in all partitions that this broker leads; `estimated` is the part of them in
    partitions that are not read yet."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.size = 0
        self.estimated = 0

    def add(self, size: int, estimated: int) -> None:
        """Add what the bytes of a partition, and the estimated part of them, have grown by."""
        self.size += size
        self.estimated += estimated

    @property
    def size_max(self) -> int:
        """Limit of the broker; -1 if there is none."""
        return self._settings.delay_pending_total_max_bytes


class PendingQuota:
    """Quota of one partition, and its share in that of the broker."""

    def __init__(self, total: PendingTotal, config: LogConfig, companion: Log) -> None:
        self._total = total
        self._config = config
        self._companion = companion
        self._size = 0
        self._is_estimated = False
        self.count(None)

    def count(self, state: ScheduleState | None, *, is_given_up: bool = False) -> None:
        """Count the bytes that wait in the partition now; `state` is None until they are read.

        `is_given_up`: this broker will not read them.
        """
        if state is not None:
            self._set(state.waiting_bytes)
        elif is_given_up:
            self._set(0)
        else:
            self._set(int(self._companion.size_bytes), is_estimated=True)

    def _set(self, size: int, *, is_estimated: bool = False) -> None:
        before = self._size if self._is_estimated else 0
        self._total.add(size - self._size, (size if is_estimated else 0) - before)
        self._size = size
        self._is_estimated = is_estimated

    def may_park(self, check: BatchCheck, note: ScheduledNote, state: ScheduleState | None) -> bool:
        """Return whether the quota has room for a batch; else refuse the batch in its check."""
        if self._config.delay_pending_max_bytes < 0 and self._total.size_max < 0:
            return True
        header = check.header
        assert header is not None
        added = released_bytes(note, int(header.size))
        for s_offset in note.cancelled:
            body = None if state is None else state.waiting(s_offset)
            if body is not None:
                added -= body.size
        code, sentence = self._refusal(added)
        if code != errors.NONE:
            check.refuse(code, sentence)
        return code == errors.NONE

    def _refusal(self, added: int) -> tuple[int, str]:
        """Return the error if the quota has no room for `added` bytes more."""
        if added <= 0:
            return errors.NONE, ""
        size_max = self._config.delay_pending_max_bytes
        if 0 <= size_max < self._size + added:
            if self._is_estimated:
                return _not_counted()
            return _beyond(
                f"in this partition wait {self._size} bytes", added, _TOPIC_KEY, size_max
            )
        total = self._total
        size_max = total.size_max
        if 0 <= size_max < total.size + added:
            if total.size - total.estimated + added <= size_max:
                return _not_counted()
            what = f"{total.size} bytes wait on this broker"
            return _beyond(what, added, _BROKER_KEY, size_max)
        return errors.NONE, ""

    def throttle_ms(self) -> int:
        """Return how long a producer that has parked a batch should pause, in ms."""
        of_topic = _pause_ms(self._size, self._config.delay_pending_max_bytes)
        return max(of_topic, _pause_ms(self._total.size, self._total.size_max))


def _pause_ms(size: int, size_max: int) -> int:
    if size_max < 0:
        return 0
    begin = int(size_max * _THROTTLED_FROM)
    if size <= begin:
        return 0
    return min((size - begin) * _THROTTLE_MS_MAX // max(size_max - begin, 1), _THROTTLE_MS_MAX)


def _beyond(what: str, added: int, key: str, size_max: int) -> tuple[int, str]:
    return (
        errors.POLICY_VIOLATION,
        f"{what}, the batch has {added} more, and {key} is {size_max}: send it when some of them "
        "have come, or raise that setting",
    )


def _not_counted() -> tuple[int, str]:
    return (
        errors.KAFKA_STORAGE_ERROR,
        "how much waits is being counted since this broker began to lead; send it again",
    )
