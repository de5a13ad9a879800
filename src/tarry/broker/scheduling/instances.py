"""Instances of a partition's recurring records: the one that is due now, and the next one.

When a recurring record has no next due time and all its releases are committed, a note in the
companion log says that it has ended; it is the same as for a cancelled record.

The companion log is removed segment by segment, and a recurring record would keep its segment for
as long as it lives.  Therefore the recurring records of the first segment are parked again at the
end of the log, with what is left of their terms, once the log has a later segment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData
from tarry.base.turn import Turn
from tarry.partition.leader import AppendResult
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.notes import EACH_ITS_OWN, CancelledNote, ScheduledNote, ScheduleNote
from tarry.schedule.places import RecordPlace
from tarry.schedule.recurring.bodies import RecurringBody
from tarry.schedule.recurring.cron import CronError
from tarry.schedule.recurring.times import RecurringTimes
from tarry.schedule.state import ScheduleState

# Function that appends a note to the companion log, to be written in this turn.
AppendNote = Callable[[ScheduleNote], AppendResult]

# Time until a refused append of a note to the companion log is tried again.
_RETRY_MS: Final = 1_000
# Recurring records that are parked again in one turn, at most.
_RENEWED_MAX: Final = 20


class PartitionInstances:
    """Instances of one partition's recurring records."""

    def __init__(self, companion: ReplicatedLog, turn: Turn, times: RecurringTimes) -> None:
        self.times = times
        self._companion = companion
        self._turn = turn

    def is_due(self, state: ScheduleState, body: RecurringBody, append_note: AppendNote) -> bool:
        """Return whether the instance of a taken body is due; else the body is put off, rests, or
        has ended, which a note says that is appended with `append_note`.

        `CorruptData` if its due times cannot be computed here.
        """
        due_ms = self._next_ms(body)
        if due_ms is None:
            self._end(state, body, append_note)
            return False
        if due_ms > min(body.due_ms, self._turn.now_wall_ms):
            # The instance is not due yet: the body was looked at too early.
            state.put_off(body, due_ms)
            return False
        body.begin_instance(due_ms)
        return True

    def note_release(self, state: ScheduleState, body: RecurringBody, base_offset: int) -> None:
        """Note the release of the due instance, and let its body wait for the next one."""
        state.add_instance(body, base_offset)
        next_due_ms = self._next_ms(body)
        state.await_next(body, next_due_ms, self._turn.now_wall_ms)

    def holders(self, state: ScheduleState, first_offset: int) -> list[RecurringBody]:
        """Return some of the recurring bodies that keep the first needed segment, if the log has a
        later segment."""
        order = self._companion.log.segment_order
        at = order.kept.index(order.holding(first_offset))
        if at == len(order.kept) - 1:
            return []
        return state.idle_recurring(order.kept[at + 1].base_offset)[:_RENEWED_MAX]

    def _next_ms(self, body: RecurringBody) -> int | None:
        try:
            return self.times.next_ms(body, self._turn.now_wall_ms)
        except CronError as error:
            raise CorruptData(f"when the record comes again is not known: {error}") from None

    def _end(self, state: ScheduleState, body: RecurringBody, append_note: AppendNote) -> None:
        if body.open_count > 0:
            state.rest(body, has_ended=True)
            return
        result = append_note(CancelledNote(body.s_offset, has_come=body.committed_count > 0))
        if result.error_code == errors.NONE:
            state.end(body, result.base_offset)
        else:
            state.put_off(body, self._turn.now_wall_ms + _RETRY_MS)


def renewed_note(body: RecurringBody) -> ScheduledNote:
    """Return the note of a recurring body that is parked again; it cancels the body before."""
    terms = body.terms_from_now_on()
    place = RecordPlace(0, 1, body.due_ms, body.schedule_id, terms)
    return ScheduledNote(EACH_ITS_OWN, [place], [body.s_offset])
