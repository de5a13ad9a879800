"""The metadata store that several brokers share: rows in etcd, changed by transactions.

One change is under way at a time.  It is decided on what the watch has brought, written if no row
that it rests on has changed, and it ends when the watch brings its rows back.  Only what the watch
brings is applied, so a broker's own changes take the same way as those of other brokers.

If the answer to a transaction is lost, it is open whether etcd has done the transaction.  Then a
read, which etcd does after every earlier write, gives the revision to wait for, and the change is
decided again: it has kept what it drew at random, so it recognizes its own rows.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from tarry.base.errors import CorruptData
from tarry.base.etcd import (
    COMPARES_MAX,
    OPERATIONS_MAX,
    TALLIED_MAX,
    CallFailed,
    Compare,
    Etcd,
    EtcdAnswer,
    Operation,
    Put,
    Removed,
    RevisionSeen,
    Row,
    RowsRead,
    RowsTallied,
    TransactionEnded,
    WatchEnded,
)
from tarry.base.turn import Turn
from tarry.cluster.etcd.transactions import ConditionalChange, Transaction
from tarry.cluster.rows.row_records import NOBODY, KnownRows, KnownTally
from tarry.cluster.rows.rows import Keys
from tarry.cluster.state.levels import THIS_RELEASE, Release
from tarry.cluster.state.records import NewerFormat
from tarry.cluster.store.change import Change
from tarry.cluster.store.store import MetadataStore
from tarry.purgatory.alarm import Alarm
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.cluster")

# Time after which a call without an answer is given up.
ANSWER_MS_MAX: Final = 2_000
# Time after which a change that was not made is refused.
CHANGE_MS_MAX: Final = 10_000
# Pause before etcd is asked again after a failure.
RETRY_MS: Final = 250
# Interval of questions for progress.  A watch that is silent for one more interval is opened again.
PROGRESS_MS: Final = 2_000

# Interval of tallies of the rows: releases of etcd have had faults by which a watch lost events.
TALLY_MS: Final = 60_000

AWAY: Final = "etcd does not answer; nothing was changed"
UNKNOWN: Final = (
    "etcd did not answer in time; whether the change was made is not known yet, look before you "
    "ask again"
)
TOO_LARGE: Final = (
    "the request is too large for one transaction of etcd, and nothing was changed: ask for less "
    "in one request"
)
# Bound on the keys and values of a transaction; etcd takes 1.5 MiB with the framing around them.
BYTES_MAX: Final = 1 << 20


class _AskedChange:
    """A change that somebody waits for."""

    __slots__ = (
        "change",
        "compares",
        "deadline_ms",
        "decide_at",
        "done_at",
        "has_failed",
        "is_unknown",
        "was_decided",
        "was_read",
    )

    def __init__(self, change: Change, deadline_ms: int) -> None:
        self.change = change
        self.deadline_ms = deadline_ms
        self.was_decided = False
        # Compares of the last transaction, and whether etcd has refused it because one did not
        # hold.
        self.compares: list[Compare] = []
        self.has_failed = False
        # True once all rows were read again because of this change.
        self.was_read = False
        # Revision that the watch has to reach before the change is decided again; -1 if not known
        # yet.
        self.decide_at = 0
        # Revision in which the change was made; 0 before.
        self.done_at = 0
        # True if a transaction of the change may have been done, or may still be done.
        self.is_unknown = False


class EtcdStore(MetadataStore):
    """A store in etcd, below the keys' prefix.  `begin` reads the rows; `on_answer` takes the
    answers.

    `fail` is called with a sentence if this release cannot read the rows.
    """

    keeper = "etcd"
    # The answer of etcd may have been lost, so the change may have been made all the same.
    refused = "not confirmed by etcd, look whether it was done"
    # The deletion of a topic takes four operations, and etcd takes 128 in a transaction.
    topics_max = 30
    # A topic's row names all of its replicas, and a transaction has at most `BYTES_MAX` bytes.
    partitions_max = 10_000

    def __init__(
        self,
        etcd: Etcd,
        keys: Keys,
        turn: Turn,
        timer: TimingWheel,
        fail: Callable[[str], None],
        *,
        release: Release = THIS_RELEASE,
        broker_id: int = NOBODY,
    ) -> None:
        super().__init__(release)
        self._etcd = etcd
        self._keys = keys
        self._turn = turn
        self._fail = fail
        self.known = KnownRows(keys, release, broker_id)
        # Why the last read of all rows failed; "" if it did not fail.
        self.reading_trouble = ""
        self._asked: deque[_AskedChange] = deque()
        # Id of the call for the first change: its transaction, or the read after an unknown
        # outcome.
        self._call_id = 0
        self._call_deadline = Alarm(timer, turn, self._on_call_late)
        self._retry = Alarm(timer, turn, self._go_on)
        # True while `_retry` is armed because the watch is behind the revision that the change
        # needs.
        self._awaits_watch = False
        # Id of the watch, and of the read of all rows that comes before it.
        self._watch_id = 0
        self._reading_id = 0
        self._watch_alarm = Alarm(timer, turn, self._on_watch_silent)
        self._was_progress_asked = False
        # True if all rows have to be read again, because the watch has missed a change.
        self._must_read = False
        # Id and revision of the tally under way, and the rows known at that revision.
        self._tally_id = 0
        self._tallied_at = 0
        self._known_tally = KnownTally(0, {})
        # Revision from which on the next tally compares rows: rows of earlier ones were compared.
        self._tally_from = 0
        self._tally_alarm = Alarm(timer, turn, self._tally)
        # Revisions that the watch brought while a transaction was under way: the transaction's
        # answer is handled before them.
        self._held: list[RevisionSeen] = []

    @property
    def is_ready(self) -> bool:
        """True once all rows were read: from then on the state is that of some moment in etcd."""
        return self.version > 0

    @property
    def is_changing(self) -> bool:
        """True while a change waits or is under way."""
        return len(self._asked) > 0

    def begin(self) -> None:
        """Read all rows, then watch them."""
        self._reading_id = self._etcd.begin_read(self._keys.prefix)
        self._watch_alarm.arm(ANSWER_MS_MAX)
        self._give_up_tally()
        self._tally_alarm.arm(TALLY_MS)

    # --- Changes.

    def change(self, change: Change) -> None:
        self._asked.append(_AskedChange(change, self._turn.now_ms + CHANGE_MS_MAX))
        if len(self._asked) == 1:
            self._go_on()

    def _go_on(self) -> None:
        """Decide the first change, if the watch has reached the revision that the change needs."""
        while self._asked and not self._call_id and not self._retry.is_pending:
            asked = self._asked[0]
            if asked.done_at:
                return
            if self._turn.now_ms >= asked.deadline_ms:
                self._refuse(asked)
            elif asked.decide_at < 0:
                self._call(self._etcd.begin_read(self._keys.cluster))
            elif not self.is_ready or self._must_read or self.version < asked.decide_at:
                # The change continues with a message of the watch; the alarm only keeps the
                # change's deadline.
                self._awaits_watch = True
                self._retry.arm(RETRY_MS)
            elif not self._decide(asked):
                return

    def _decide(self, asked: _AskedChange) -> bool:
        """Decide a change; true if it has ended, false if its transaction is under way."""
        records = asked.change.decide(self.view)
        asked.was_decided = True
        if not records:
            self._asked.popleft()
            self._applied([], asked.change, self.version)
            return True
        transaction = Transaction(self.known)
        for record in records:
            transaction.add(record)
        wished = asked.change.wished
        if isinstance(wished, ConditionalChange):
            wished.guard(transaction)
        compares, operations = transaction.compares, transaction.operations
        if transaction.obstacle:
            self._asked.popleft()
            self._refused(asked.change, UNKNOWN if asked.is_unknown else transaction.obstacle)
            return True
        if _is_too_large(compares, operations):
            # etcd would refuse the transaction each time, and hold up all changes behind it until
            # its end.
            self._asked.popleft()
            self._refused(asked.change, UNKNOWN if asked.is_unknown else TOO_LARGE)
            return True
        if asked.has_failed and compares == asked.compares:
            # The watch has passed the revision in which a compare failed, and has not brought the
            # reason.
            asked.has_failed = False
            if asked.was_read:
                self._awaits_watch = False
                self._retry.arm(RETRY_MS)
            else:
                asked.was_read = True
                self._read_anew()
            return True
        asked.compares, asked.has_failed = compares, False
        self._call(self._etcd.begin_transaction(compares, operations))
        return False

    def _call(self, call_id: int) -> None:
        self._call_id = call_id
        self._call_deadline.arm(ANSWER_MS_MAX)

    def _refuse(self, asked: _AskedChange) -> None:
        self._asked.popleft()
        if not asked.was_decided:
            # Deciding gives the change its outcomes, which the refusal then turns into errors.
            asked.change.decide(self.view)
        self._refused(asked.change, UNKNOWN if asked.is_unknown else AWAY)

    def _on_call_late(self) -> None:
        self._etcd.cancel(self._call_id)

    # --- Answers.

    def on_answer(self, answer: EtcdAnswer) -> bool:
        """Take an answer to a call or the watch of this store; return false if it belongs to
        another.
        """
        if answer.call_id == self._call_id:
            self._call_id = 0
            self._call_deadline.cancel()
            self._end_call(self._asked[0], answer)
        elif answer.call_id == self._reading_id:
            self._reading_id = 0
            self._end_reading(answer)
        elif answer.call_id == self._watch_id:
            self._hear(answer)
        elif answer.call_id == self._tally_id:
            self._tally_id = 0
            if isinstance(answer, RowsTallied):
                self._compare_tally(answer)
        else:
            return False
        return True

    def _end_call(self, asked: _AskedChange, answer: EtcdAnswer) -> None:
        match answer:
            case TransactionEnded() if answer.is_done and answer.revision <= self.version:
                # All rows were read again meanwhile, those of this change among them.
                self._asked.popleft()
                self._applied([], asked.change, self.version)
            case TransactionEnded() if answer.is_done:
                asked.done_at = answer.revision
            case TransactionEnded():
                asked.decide_at = answer.revision
                asked.has_failed = True
            case RowsRead():
                asked.decide_at = answer.revision
            case CallFailed():
                if answer.is_unknown:
                    asked.is_unknown = True
                    asked.decide_at = -1
                self._awaits_watch = False
                self._retry.arm(RETRY_MS)
        held, self._held = self._held, []
        for seen in held:
            self._take_seen(seen)
        self._go_on()

    def _end_reading(self, answer: EtcdAnswer) -> None:
        self._watch_alarm.cancel()
        if not isinstance(answer, RowsRead):
            if isinstance(answer, CallFailed):
                self.reading_trouble = answer.reason
            self._watch_alarm.arm(RETRY_MS)
            return
        self.reading_trouble = ""
        self._must_read = False
        changes = self.known.difference(answer.rows)
        self._tally_from = answer.revision + 1
        self._take(answer.revision, changes)
        if self._must_read:
            self.begin()
        else:
            self._watch()

    def _watch(self) -> None:
        self._watch_id = self._etcd.watch(self._keys.prefix, self.version + 1)
        self._was_progress_asked = False
        self._watch_alarm.arm(PROGRESS_MS)

    def _hear(self, answer: EtcdAnswer) -> None:
        if isinstance(answer, RevisionSeen):
            self._was_progress_asked = False
            self._watch_alarm.arm(PROGRESS_MS)
            if self._call_id:
                self._held.append(answer)
            else:
                self._take_seen(answer)
        elif isinstance(answer, WatchEnded):
            self._watch_id = 0
            if answer.compact_revision or self._must_read:
                self.begin()
            else:
                self._watch_alarm.arm(RETRY_MS)

    def _tally(self) -> None:
        """Ask etcd to count and list its rows as they were at the revision that this store has
        reached.
        """
        self._give_up_tally()
        self._tally_alarm.arm(TALLY_MS)
        if not self.is_ready or self._reading_id or self._must_read:
            return
        self._known_tally = self.known.tally(self._tally_from)
        self._tallied_at = self.version
        self._tally_id = self._etcd.begin_tally(
            self._keys.prefix, self._tally_from, self._tallied_at
        )

    def _give_up_tally(self) -> None:
        if self._tally_id:
            self._etcd.cancel(self._tally_id)
            self._tally_id = 0

    def _compare_tally(self, told: RowsTallied) -> None:
        """Read all rows again if etcd had other rows than were known."""
        if not self._known_tally.fits(told):
            self._read_anew()
        elif len(told.changed) < TALLIED_MAX:
            self._tally_from = self._tallied_at + 1
        else:
            # The tally is full, and may lack rows of the last revision in it, so that one is
            # tallied again.
            self._tally_from = max(told.changed.values())
            self._tally_alarm.arm(RETRY_MS)

    def _read_anew(self) -> None:
        """Read all rows again, since the known ones are out of date and the watch does not say
        so.
        """
        logger.error(
            "the watch of etcd has not told of a change that was made: all rows are read anew; "
            "look whether its release has faults that are known"
        )
        self._must_read = True
        if self._watch_id:
            self._etcd.cancel(self._watch_id)

    def _on_watch_silent(self) -> None:
        """Ask a silent watch for its progress; end the watch if it has not answered that
        question.
        """
        if self._reading_id:
            self._etcd.cancel(self._reading_id)
        elif not self.is_ready or (self._must_read and not self._watch_id):
            self.begin()
        elif not self._watch_id:
            self._watch()
        elif self._was_progress_asked:
            self._etcd.cancel(self._watch_id)
        else:
            self._was_progress_asked = True
            self._etcd.ask_progress()
            self._watch_alarm.arm(PROGRESS_MS)

    # --- What is applied.

    def _take_seen(self, seen: RevisionSeen) -> None:
        if seen.revision > self.version:
            self._take(seen.revision, seen.changes)

    def _take(self, revision: int, changes: list[Row | Removed]) -> None:
        """Apply the changes up to a revision; end the first change if it was made by then."""
        try:
            records = self.known.apply(changes)
        except (NewerFormat, CorruptData) as error:
            self._fail(str(error))
            return
        self.state.apply_all(records)
        self.version = revision
        if self._awaits_watch:
            self._awaits_watch = False
            self._retry.cancel()
        asked = self._asked[0] if self._asked else None
        # After a read of all rows the records are those of many revisions, not of the change alone.
        if asked is not None and 0 < asked.done_at <= revision:
            self._asked.popleft()
            self._applied(records, asked.change, revision)
        elif records:
            self._applied(records, None, revision)
        self._go_on()


def _is_too_large(compares: list[Compare], operations: list[Operation]) -> bool:
    if len(compares) > COMPARES_MAX or len(operations) > OPERATIONS_MAX:
        return True
    size = sum(len(each.key) for each in compares)
    for each in operations:
        size += len(each.key) + (len(each.value) if isinstance(each, Put) else 0)
    return size > BYTES_MAX
