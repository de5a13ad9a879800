"""Account of an audited day: what clients sent and asked, what they were answered, what was found.

The players of the day write into it, the judgement reads it.  Times are real milliseconds since
1970, which brokers with a stepped calendar do not share.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from tests.support.audit.calendars import Calendars

# Answers to a record that was sent.
OPEN = "open"
ACKED = "acked"
DOUBT = "doubt"
REFUSED = "refused"

# Requests about a record that waits.
CANCEL = "cancel"
MOVE = "move"
FIND = "find"
CANCEL_BY_HEADER = "cancel by header"
REPLACE = "replace"

# Outcomes beside those of the API.
CANCELLED = "cancelled"
MOVED = "moved"
ALREADY_RELEASED = "already_released"
UNKNOWN = "unknown"
FOUND = "found"
ABSENT = "absent"

Place = tuple[str, int]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Entrusted:
    """A record that a client was given to send.

    It is due at `due_ms`, or `after_ms` after its arrival at the leader.  Where neighbours of
    another due time may wait with it in one batch, `with_until_ms` is the last of their times; by
    headers they do only if all were due when they arrived, by a calendar that was ahead.
    """

    uid: str
    client: str
    place: Place
    sent_ms: int
    due_ms: int = -1
    after_ms: int = -1
    with_until_ms: int = -1
    is_by_header: bool = False
    schedule_id: str = ""
    # The uid of the record whose id it takes over.
    replaces: str = ""
    is_bad: bool = False
    answer: str = OPEN
    answered_ms: int = -1
    # The offset that the answer tells, -1 if it tells none.
    offset: int = -1
    error: str = ""


@dataclass(slots=True)
class Asked:
    """A question or a wish about a record that waits, and its answer."""

    what: str
    uid: str
    client: str
    asked_ms: int
    due_ms: int = -1
    outcome: str = OPEN
    answered_ms: int = -1
    offset: int = -1
    # An earlier try of the client had no answer.
    is_repeated: bool = False
    error: str = ""


@dataclass(slots=True)
class Recurring:
    """A record that comes again and again: at these minutes of the hour in a time zone."""

    uid: str
    client: str
    place: Place
    sent_ms: int
    minutes: frozenset[int]
    zone: str
    misfire: str
    schedule_id: str
    count: int = 0
    end_ms: int = -1
    answer: str = OPEN
    answered_ms: int = -1
    error: str = ""


@dataclass(slots=True)
class FoundRecord:
    """A record as the auditor read it at the end.

    `epoch` is the leader epoch in which it was appended, -1 if that is not known; `arrived_ms` is
    when a consumer of the day had it, -1 if it had not.
    """

    place: Place
    offset: int
    uid: str
    timestamp_ms: int
    # The header `x-sched-due`, -1 without one.
    told_due_ms: int = -1
    epoch: int = -1
    arrived_ms: int = -1


@dataclass(slots=True)
class Listed:
    """A record that still waits at the end."""

    place: Place
    uid: str
    due_ms: int


@dataclass(slots=True)
class Window:
    """Time from the beginning of a hardship until all was well again."""

    what: str
    brokers: list[int]
    begin_ms: int
    end_ms: int = -1


@dataclass
class Account:
    """Everything that was done and answered, and what was there at the end."""

    calendars: Calendars
    # Topics whose records have the leader's calendar at the append as their timestamp.
    stamped: frozenset[str] = frozenset()
    entrusted: dict[str, Entrusted] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    recurring: dict[str, Recurring] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    # Sentences about faults that concern neither a record nor an answer.
    troubles: list[str] = field(default_factory=list)
    found: list[FoundRecord] = field(default_factory=list)
    # By place and offset what a consumer of the day had read, and when.
    seen: dict[tuple[str, int, int], tuple[str, int]] = field(default_factory=dict)
    listed: list[Listed] = field(default_factory=list)
    # The broker that led a partition in an epoch.
    leaders: dict[tuple[str, int, int], int] = field(default_factory=dict)
    began_ms: int = 0
    read_ms: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def entrust(self, records: list[Entrusted]) -> None:
        """Note records before they are sent."""
        with self._lock:
            for each in records:
                assert each.uid not in self.entrusted
                self.entrusted[each.uid] = each

    def ask(self, asked: Asked) -> None:
        """Note a question before it is asked."""
        with self._lock:
            self.asked.append(asked)

    def recur(self, recurring: Recurring) -> None:
        with self._lock:
            self.recurring[recurring.uid] = recurring

    def trouble(self, sentence: str) -> None:
        with self._lock:
            self.troubles.append(sentence)
