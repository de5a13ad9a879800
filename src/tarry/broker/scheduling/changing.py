"""Changes of waiting records, as ChangeScheduledRecords requests them: cancels and moves.

The leader decides changes one after the other, by what it knows at that time.  An answer rests on
an offset of one of the partition's two logs: once that log's high watermark has passed the offset,
the answer is final.  `cancelled` and `moved` rest on their note, `already_released` on the record
in the partition, `unknown` after an earlier cancel on the note of that cancel.  Any other `unknown`
rests on a witness note, one a turn for all: only a committed note proves that this broker still
led.

A recurring record waits while another instance may come: a cancel ends it, whatever was released of
it before.  It is `already_released` only if it has ended by itself.  It cannot be moved.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.base.limits import DUE_MS_MAX, SCHEDULE_ID_BYTES_MAX, SCHEDULE_PLACES_MAX
from tarry.base.schedule_outcomes import (
    ALREADY_RELEASED,
    CANCELLED,
    MOVED,
    NO_DUE_MS,
    NO_OUTCOME,
    UNKNOWN,
)
from tarry.broker.scheduling.finding import FoundSchedule
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.partition.leader import AppendResult
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol.messages.change_scheduled_records import (
    ScheduledChange,
    ScheduledChangeResult,
)
from tarry.schedule.bodies import noted_due_ms
from tarry.schedule.notes import EACH_ITS_OWN, CancelledNote, ScheduledNote
from tarry.schedule.pending import WHOLE, Body
from tarry.schedule.places import RecordPlace
from tarry.schedule.recurring.bodies import RecurringBody
from tarry.schedule.state import ScheduleState

# Bytes of a moved batch that cost as much as one element of a long answer.
_MOVED_BYTES_PER_UNIT: Final = 4 * 1024

# Entries of a batch that cost one unit, in the search for the entry that has a record.
_ENTRIES_PER_UNIT: Final = 100

_NOT_MOVED: Final = (
    "a recurring record comes at the times of its x-sched-cron and is not moved: cancel it, or "
    "replace it by another one with its x-sched-id"
)
_TOO_FAR_BEHIND: Final = (
    f"only the first {SCHEDULE_PLACES_MAX:,} records of a batch can be changed alone, and the "
    "record lies behind them"
)


class ChangeStatus:
    """Status of one change: its answer, and the offset that `log` must have committed for it."""

    def __init__(self, result: ScheduledChangeResult) -> None:
        self.result = result
        self.log: ReplicatedLog | None = None
        self.required_offset = 0
        # `led_since` of the leadership at the decision: if it differs later, another broker has led
        # meanwhile, and the log may have other records.
        self.led_since = 0
        self.cost = 1

    def decide(self, outcome: int, s_offset: int = -1, offset: int = -1) -> None:
        """Note the outcome, with its s-offset and its offset in the partition."""
        result = self.result
        result.outcome = outcome
        result.s_offset = s_offset
        result.offset = offset

    def rest_on(self, log: ReplicatedLog, required_offset: int) -> None:
        """Let the answer wait until the log has committed everything below this offset."""
        self.log = log
        self.required_offset = required_offset
        self.led_since = log.leadership.led_since

    def fail(self, error_code: int, message: str | None = None) -> None:
        """Settle the change with an error."""
        self.log = None
        self.result.error_code = error_code
        self.result.error_message = message
        self.decide(NO_OUTCOME)

    def try_settle(self) -> bool:
        """Settle the change if its outcome is final; return whether it is settled."""
        log = self.log
        if log is None:
            return True
        leadership = log.leadership
        if leadership.gone_code != errors.NONE:
            # The replica is gone from this broker; another leader may have committed the note.
            self.fail(errors.NOT_LEADER_OR_FOLLOWER)
        elif leadership.led_since != self.led_since:
            self.fail(errors.NOT_LEADER_OR_FOLLOWER)
        elif log.high_watermark >= self.required_offset:
            self.log = None
        elif leadership.rests():
            self.fail(errors.NOT_LEADER_OR_FOLLOWER)
        else:
            return False
        return True

    def fail_what_was_not_written(self) -> None:
        """Fail the change if the turn's write has dropped its note with the log's tail."""
        log = self.log
        if log is not None and self.required_offset > log.log.written_end_offset:
            self.fail(errors.KAFKA_STORAGE_ERROR, f"the disk has not taken it: {log.name}")


def change_schedule(
    found: FoundSchedule, change: ScheduledChange, now_wall_ms: int
) -> ChangeStatus:
    """Carry out a change, or refuse it with an error."""
    status = ChangeStatus(ScheduledChangeResult())
    schedule, state = found.schedule, found.state
    if schedule is None or state is None:
        status.fail(found.error_code, found.message)
        return status
    code, sentence = _refusal(schedule, change, now_wall_ms)
    if code != errors.NONE:
        status.fail(code, sentence)
        return status
    s_offset = _named(state, change)
    if change.batch_s_offset >= 0:
        status.cost += (change.s_offset - change.batch_s_offset) // _ENTRIES_PER_UNIT
    body = None if s_offset is None else state.waiting(s_offset)
    if body is not None and change.batch_s_offset >= 0 and body.record_count > 1:
        status.fail(errors.INVALID_REQUEST, _not_alone(body.record_count))
    elif body is None:
        _answer_absent(schedule, state, s_offset, status)
        _name_record(change, status.result)
    elif change.due_ms == NO_DUE_MS:
        _cancel(schedule, state, body, status)
    elif isinstance(body, RecurringBody):
        status.fail(errors.INVALID_REQUEST, _NOT_MOVED)
    else:
        _move(schedule, body, change.due_ms, status)
    return status


def _refusal(
    schedule: PartitionSchedule, change: ScheduledChange, now_wall_ms: int
) -> tuple[int, str]:
    """Return the error of a change that is invalid or impossible now, whichever records wait."""
    schedule_id = change.schedule_id
    if (schedule_id is None) == (change.s_offset < 0):
        return errors.INVALID_REQUEST, "a change names either an id or an s-offset"
    if schedule_id is not None and not 0 < len(schedule_id) <= SCHEDULE_ID_BYTES_MAX:
        return (
            errors.INVALID_REQUEST,
            f"an id has 1 to {SCHEDULE_ID_BYTES_MAX} bytes, not {len(schedule_id)}",
        )
    if change.batch_s_offset >= 0:
        place = change.s_offset - change.batch_s_offset
        if place < 0:
            return errors.INVALID_REQUEST, "a record alone is named by its s-offset and its batch's"
        if place >= SCHEDULE_PLACES_MAX:
            return errors.INVALID_REQUEST, _TOO_FAR_BEHIND
    if not NO_DUE_MS <= change.due_ms <= DUE_MS_MAX:
        return (
            errors.INVALID_TIMESTAMP,
            f"{change.due_ms} is no due time: write milliseconds since 1970, before the year 10000",
        )
    partition = schedule.partition
    delay_max_ms = partition.config.delay_max_ms
    if change.due_ms - now_wall_ms > delay_max_ms:
        return (
            errors.INVALID_TIMESTAMP,
            f"the record would be due at {change.due_ms}, and delay.max.ms is {delay_max_ms}",
        )
    for log in (schedule.companion.log, partition.log):
        if log.flaw_offset >= 0:
            return errors.KAFKA_STORAGE_ERROR, f"a log of {partition.name} is damaged"
    if reason := partition.undone_write:
        # A crash could bring back a release that could not be written.
        return errors.KAFKA_STORAGE_ERROR, f"{reason}; send the change again"
    if partition.leadership.is_under_min_isr():
        return errors.NOT_ENOUGH_REPLICAS, f"too few replicas of {partition.name} are in sync"
    return errors.NONE, ""


def _not_alone(record_count: int) -> str:
    """Return the refusal of a change to one record of an entry: the others would change too."""
    return (
        f"the record waits together with others of its batch, {record_count} in all, and is not "
        "taken out of it: give a record a schedule_id that is to be cancelled or moved alone"
    )


def _named(state: ScheduleState, change: ScheduledChange) -> int | None:
    """Return the s-offset of the entry that a change names; None if no entry is known."""
    schedule_id = change.schedule_id
    if schedule_id is None:
        if change.batch_s_offset < 0:
            return change.s_offset
        return state.entry_of(change.batch_s_offset, change.s_offset)
    s_offset = state.ids.offset_of(schedule_id)
    if s_offset is None:
        s_offset = state.ids.cancelled_offset_of(schedule_id)
    return state.released.s_offset_of(schedule_id) if s_offset is None else s_offset


def _answer_absent(
    schedule: PartitionSchedule, state: ScheduleState, s_offset: int | None, status: ChangeStatus
) -> None:
    """Answer a change of an entry that does not wait: it was released, or it is not known."""
    if s_offset is not None:
        release = state.release_of(s_offset)
        if release is not None:
            status.decide(ALREADY_RELEASED, s_offset, release.base_offset)
            status.rest_on(schedule.partition, release.end_offset)
            return
        offset = state.released_offset(s_offset)
        if offset is not None:
            status.decide(ALREADY_RELEASED, s_offset, offset)
            return
    status.decide(UNKNOWN)
    note_offset = None if s_offset is None else state.ids.note_that_cancels(s_offset)
    if note_offset is not None:
        status.rest_on(schedule.companion, note_offset + 1)
        return
    _rest_on_append(schedule, schedule.append_witness(), status)


def _name_record(change: ScheduledChange, result: ScheduledChangeResult) -> None:
    """Set the offsets of one record in the answer, in place of those of its whole entry."""
    if change.batch_s_offset >= 0 and result.outcome == ALREADY_RELEASED:
        if result.offset >= 0:
            result.offset += change.s_offset - result.s_offset
        result.s_offset = change.s_offset


def _cancel(
    schedule: PartitionSchedule, state: ScheduleState, body: Body, status: ChangeStatus
) -> None:
    appended = schedule.append_note(CancelledNote(body.s_offset, due_ms=noted_due_ms(body)))
    if appended.error_code == errors.NONE:
        note_offset = appended.required_offset - 1
        state.cancel(body.s_offset, note_offset, note_offset)
        schedule.uncounted.add(appended.required_offset - 1, cancelled=body.record_count)
    status.decide(CANCELLED, body.s_offset)
    _rest_on_append(schedule, appended, status)


def _move(schedule: PartitionSchedule, body: Body, due_ms: int, status: ChangeStatus) -> None:
    """Cancel a waiting body and park it again with another due time, in one write."""
    if body.s_offset >= schedule.companion.high_watermark:
        status.fail(
            errors.COORDINATOR_LOAD_IN_PROGRESS,
            "what is to be moved has just been parked and does not count yet; ask again",
        )
        return
    reader = schedule.reader
    read_before = reader.bytes_read
    size = 0
    try:
        # A place stays a place: it is released with a header that has its due time.
        is_place = body.place != WHOLE
        batch = reader.read_uncompressed(body) if is_place else reader.batch_of(body)
        size = len(batch)
    except CorruptData as error:
        status.fail(errors.INVALID_RECORD, f"it is damaged on the disk: {error}")
        return
    except StorageError as error:
        status.fail(errors.KAFKA_STORAGE_ERROR, str(error))
        return
    finally:
        # A batch of several places is read whole, even for one record.
        bytes_read = reader.bytes_read - read_before
        status.cost = 1 + max(size, bytes_read) // _MOVED_BYTES_PER_UNIT
    places = []
    if body.schedule_id or is_place:
        places = [RecordPlace(0, body.record_count, due_ms, body.schedule_id)]
    noted_ms = EACH_ITS_OWN if is_place else due_ms
    note = ScheduledNote(noted_ms, places, [body.s_offset], [noted_due_ms(body)])
    appended = schedule.park_again(note, batch)
    status.decide(MOVED, appended.base_offset)
    _rest_on_append(schedule, appended, status)


def _rest_on_append(
    schedule: PartitionSchedule, appended: AppendResult, status: ChangeStatus
) -> None:
    if appended.error_code != errors.NONE:
        status.fail(appended.error_code, appended.message)
    else:
        status.rest_on(schedule.companion, appended.required_offset)
