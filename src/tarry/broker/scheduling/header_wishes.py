"""Headers of a batch's records, on the way into a partition: their wishes, and the batch's note.

A batch with one due time is parked as it was sent.  A batch with several due times, or with records
that are never released or that recur, is parked uncompressed: then each place of it can be released
by itself.  Hot.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.limits import (
    RECORD_ERRORS_MAX,
    RECURRING_RECORDS_MAX,
    SCHEDULE_NOTE_BYTES_MAX,
    SCHEDULE_PLACES_MAX,
)
from tarry.log.config import LogConfig
from tarry.partition.leadership import BatchWishes
from tarry.records.batch import HEADER_SIZE, BatchCheck, BatchHeader
from tarry.schedule.bodies import noted_due_ms
from tarry.schedule.cancels import ScheduleIds
from tarry.schedule.due import NOT_DELAYED, due_ms
from tarry.schedule.notes import EACH_ITS_OWN, ScheduledNote
from tarry.schedule.opened import opened_batch
from tarry.schedule.places import NOT_RELEASED
from tarry.schedule.recurring.times import RecurringTimes
from tarry.schedule.state import ScheduleState
from tarry.schedule.wishes import (
    IdWalk,
    PlacesDecision,
    RecordsWalk,
    WishWalk,
    decide_named,
    decide_places,
)

# Room in a note for its other fields and its batch header.
_NOTE_OVERHEAD_BYTES: Final = 256
# Memory of one wish without its id: 10,000 wishes may take more than their records.
_WISH_BYTES: Final = 200


class RecordWishes(BatchWishes):
    """Wishes of the records in `content`."""

    def __init__(self, content: bytes, walk: RecordsWalk) -> None:
        self._content = content
        self._walk = walk
        self._wish_bytes = 0

    @property
    def held_bytes(self) -> int:
        return len(self._content) + self._wish_bytes

    @property
    def place_count(self) -> int:
        return len(self._walk.wishes)

    def step(self, count_max: int) -> bool:
        walk = self._walk
        if not walk.step(count_max):
            return False
        self._wish_bytes = sum([_WISH_BYTES + len(each.schedule_id) for each in walk.wishes])
        if walk.has_too_many or (len(walk.wishes) == 1 and not walk.wishes[0].has_own_place):
            # A batch with one due time is parked as it was sent: its content is not needed.
            self._content = b""
        return True

    def note_for(
        self, check: BatchCheck, config: LogConfig, state: ScheduleState | None, now_wall_ms: int
    ) -> ScheduledNote | None:
        """Return the note of the batch; None if it does not wait, or is refused in its check.

        `state` is None while the bodies of an earlier life are being read.
        """
        raise NotImplementedError

    def note_of(
        self,
        check: BatchCheck,
        config: LogConfig,
        state: ScheduleState | None,
        decision: PlacesDecision,
    ) -> ScheduledNote | None:
        """Return the note of a batch for a decision about its places, as `note_for` does."""
        if not decision.is_parked:
            return None
        recurring = decision.recurring
        if recurring and not _may_recur(check, recurring, state):
            return None
        # Due times of the bodies that the batch cancels, by s-offset.
        cancelled: dict[int, int] = {}
        for place in decision.places:
            if not place.schedule_id:
                continue
            if state is None:
                refuse_unread(check)
                return None
            s_offset = state.cancellable(place.schedule_id)
            if s_offset is not None:
                cancelled[s_offset] = noted_due_ms(state.waiting(s_offset))
        return self._park(check, config, decision, cancelled)

    def _park(
        self,
        check: BatchCheck,
        config: LogConfig,
        decision: PlacesDecision,
        cancelled: dict[int, int],
    ) -> ScheduledNote | None:
        places = decision.places
        gone, dues = list(cancelled), list(cancelled.values())
        is_opened = len(places) > 1 or places[0].terms is not None
        if not is_opened and places[0].due_ms != NOT_RELEASED:
            named = places if places[0].schedule_id else []
            return ScheduledNote(places[0].due_ms, named, gone, dues)
        note = ScheduledNote(EACH_ITS_OWN, places, gone, dues)
        if note.size + _NOTE_OVERHEAD_BYTES > SCHEDULE_NOTE_BYTES_MAX:
            check.refuse(
                errors.MESSAGE_TOO_LARGE,
                f"the batch has {len(places)} due times and ids, which are too long together: send "
                "fewer at once",
            )
            return None
        header = check.header
        assert header is not None
        if header.codec != 0:
            size = HEADER_SIZE + len(self._content)
            if size > config.max_message_bytes:
                check.refuse(
                    errors.MESSAGE_TOO_LARGE,
                    f"opened, since its records are due at different times, the batch has {size} "
                    f"bytes and max.message.bytes is {config.max_message_bytes}",
                )
                return None
            check.replace(opened_batch(header, self._content))
        return note


class HeaderWishes(RecordWishes):
    """Wishes in a topic whose records' headers say when they are due."""

    def __init__(
        self,
        header: BatchHeader,
        content: bytes,
        config: LogConfig,
        now_wall_ms: int,
        times: RecurringTimes,
    ) -> None:
        walk = WishWalk(content, int(header.record_count), config, now_wall_ms, times)
        super().__init__(content, walk)
        self._times = walk

    def note_for(
        self, check: BatchCheck, config: LogConfig, state: ScheduleState | None, now_wall_ms: int
    ) -> ScheduledNote | None:
        walk = self._times
        if walk.has_too_many and not walk.errors:
            refuse_too_many(check, "due times and ids")
            return None
        decision = decide_places(walk, config, now_wall_ms)
        if decision.error_code != errors.NONE:
            index, sentence = decision.record_errors[0]
            check.record_errors = decision.record_errors
            check.refuse(decision.error_code, f"record {index}: {sentence}")
            return None
        return self.note_of(check, config, state, decision)


class IdWishes(RecordWishes):
    """Wishes in a topic whose records' headers or keys name waiting records, and no due times."""

    def __init__(
        self,
        header: BatchHeader,
        content: bytes,
        config: LogConfig,
        waiting: ScheduleIds | None,
        now_wall_ms: int,
    ) -> None:
        is_delayed = due_ms(config, header, now_wall_ms) != NOT_DELAYED
        walk = IdWalk(content, int(header.record_count), config, waiting, is_delayed=is_delayed)
        super().__init__(content, walk)
        self._named = walk

    def note_for(
        self, check: BatchCheck, config: LogConfig, state: ScheduleState | None, now_wall_ms: int
    ) -> ScheduledNote | None:
        walk = self._named
        header = check.header
        assert header is not None
        if config.has_delay_by_header:
            refuse_early(check)
            return None
        due = max(int(due_ms(config, header, now_wall_ms)), now_wall_ms)
        if config.is_named_by_key and due > now_wall_ms and not walk.names_what_waits:
            refuse_early(check)
            return None
        if walk.errors:
            index, sentence = walk.errors[0]
            check.record_errors = walk.errors
            check.refuse(errors.INVALID_RECORD, f"record {index}: {sentence}")
            return None
        if walk.has_unclear:
            refuse_unread(check)
            return None
        if walk.has_too_many:
            refuse_too_many(check, "ids of what waits")
            return None
        return self.note_of(check, config, state, decide_named(walk, due, now_wall_ms))


def refuse_early(check: BatchCheck) -> None:
    """Refuse a batch whose topic's settings have changed after its headers or keys were read."""
    check.refuse(
        errors.KAFKA_STORAGE_ERROR,
        "the batch was on its way when the topic began to delay records by their headers, or to "
        "name them by their keys; send it again",
    )


def refuse_unread(check: BatchCheck) -> None:
    """Refuse a batch with ids while it is not known which of them wait."""
    check.refuse(
        errors.KAFKA_STORAGE_ERROR,
        "which ids wait is being read since this broker began to lead; send it again",
    )


def refuse_too_many(check: BatchCheck, what: str) -> None:
    """Refuse a batch whose records ask for too much at once."""
    check.refuse(
        errors.MESSAGE_TOO_LARGE,
        f"the batch has more than {SCHEDULE_PLACES_MAX} {what}: send fewer at once",
    )


def _may_recur(check: BatchCheck, recurring: list[int], state: ScheduleState | None) -> bool:
    """Return whether the partition has room for a batch's recurring records; else refuse it."""
    if state is None:
        check.refuse(
            errors.KAFKA_STORAGE_ERROR,
            "what recurs is being read since this broker began to lead; send it again",
        )
        return False
    count = len(state.recurring)
    if count + len(recurring) <= RECURRING_RECORDS_MAX:
        return True
    sentence = (
        f"the partition has {count} recurring records and {RECURRING_RECORDS_MAX} are the most: "
        "cancel some, or send it to another partition"
    )
    check.record_errors = [(index, sentence) for index in recurring[:RECORD_ERRORS_MAX]]
    check.refuse(errors.INVALID_RECORD, f"record {recurring[0]}: {sentence}")
    return False
