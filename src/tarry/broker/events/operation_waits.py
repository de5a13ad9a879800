"""Waits of the operations of one purgatory, counted by topic or group between two events.

Hot: if the event log is on, every produce that waits is counted here.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from mypy_extensions import i64

from tarry.base.wait_buckets import bucket_of
from tarry.purgatory.operation import DelayedOperation, OperationListener

# Number of topics and groups with counts of their own in an interval; others are counted under "".
SUBJECTS_MAX: Final = 1_000
# Number of expired operations of each purgatory that an interval reports one by one.
EXPIRED_MAX: Final = 20


class Waits:
    """Waits of the operations of one topic or group.

    `buckets` counts them by the numbers of `wait_buckets`.
    """

    def __init__(self) -> None:
        self.completed: i64 = 0
        self.expired: i64 = 0
        self.sum_ms: i64 = 0
        self.longest_ms: i64 = 0
        self.longest_key: Hashable = None
        self.is_longest_expired = False
        self.buckets: dict[int, int] = {}

    def add(self, waited_ms: i64, key: Hashable, is_expired: bool) -> None:
        """Count one more operation."""
        self.completed += 1
        if is_expired:
            self.expired += 1
        self.sum_ms += waited_ms
        if waited_ms > self.longest_ms or self.completed == 1:
            self.longest_ms = waited_ms
            self.longest_key = key
            self.is_longest_expired = is_expired
        number = bucket_of(waited_ms)
        self.buckets[number] = self.buckets.get(number, 0) + 1


class OperationWaits(OperationListener):
    """Listener to one purgatory.  `ignored` is the topic or group whose waits are not counted."""

    def __init__(self, purgatory: str, ignored: str) -> None:
        self.purgatory = purgatory
        self.ignored = ignored
        self.by_subject: dict[str, Waits] = {}
        # Key and wait in ms of the first operations that expired in the interval.
        self.expired: list[tuple[Hashable, int]] = []

    def on_completed(
        self, operation: DelayedOperation, key: Hashable, waited_ms: int, is_expired: bool
    ) -> None:
        subject = subject_of(key)
        if subject == self.ignored:
            return
        waits = self.by_subject.get(subject)
        if waits is None:
            if len(self.by_subject) >= SUBJECTS_MAX:
                subject = ""
                waits = self.by_subject.get(subject)
            if waits is None:
                waits = self.by_subject[subject] = Waits()
        waits.add(waited_ms, key, is_expired)
        if is_expired and len(self.expired) < EXPIRED_MAX:
            self.expired.append((key, waited_ms))

    def clear(self) -> None:
        """Begin the next interval."""
        self.by_subject = {}
        self.expired = []


def subject_of(key: Hashable) -> str:
    """Return the topic or group in a watch key; "" if it has neither."""
    if isinstance(key, tuple):
        first = key[0]
        return first if isinstance(first, str) else ""
    return key if isinstance(key, str) else ""
