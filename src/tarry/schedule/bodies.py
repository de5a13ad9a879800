"""Bodies of a parked batch, as its note describes them: the whole batch, or places of it.

Parking a batch and reading it at a start use the same functions.  Hot.
"""

from __future__ import annotations

from tarry.base.errors import CorruptData
from tarry.schedule.entries import NO_POSITION
from tarry.schedule.notes import EACH_ITS_OWN, NEVER_DONE, ScheduledNote
from tarry.schedule.pending import UNKNOWN, Body
from tarry.schedule.places import NOT_RELEASED, RecordPlace
from tarry.schedule.recurring.bodies import RecurringBody


def bodies_of(
    note: ScheduledNote,
    s_offset: int,
    leader_epoch: int,
    record_count: int,
    size: int,
    position: int = NO_POSITION,
) -> list[Body]:
    """Return the bodies of the batch at `s_offset`, in the order of their records.

    `position` is the position of the batch's note in its segment.

    Raises `CorruptData` if the note has no due times.
    """
    places = note.places
    if note.due_ms != EACH_ITS_OWN:
        schedule_id = places[0].schedule_id if places else b""
        return [
            Body(
                s_offset,
                note.due_ms,
                leader_epoch,
                record_count,
                size,
                schedule_id=schedule_id,
                position=position,
            )
        ]
    if not places:
        raise CorruptData("no times are noted")
    # Records as the note counts them: the header's count was read without checking its CRC.
    noted = sum([place.count for place in places])
    bodies: list[Body] = []
    for place in places:
        if place.due_ms != NOT_RELEASED:
            # The bytes of single records are not known: each place gets a share of the batch.
            share = max(size * place.count // noted, 1)
            offset = s_offset + place.first
            bodies.append(_body_of(place, offset, leader_epoch, share, position))
    return bodies


def released_bytes(note: ScheduledNote, size: int) -> int:
    """Return the bytes of those records of the batch that are to be released."""
    if note.due_ms != EACH_ITS_OWN:
        return size
    noted = sum([place.count for place in note.places])
    released = sum([place.count for place in note.places if place.due_ms != NOT_RELEASED])
    return size * released // max(noted, 1)


def _body_of(
    place: RecordPlace, s_offset: int, leader_epoch: int, size: int, position: int
) -> Body:
    terms = place.terms
    if terms is not None:
        return RecurringBody(
            s_offset,
            place.due_ms,
            leader_epoch,
            size,
            terms,
            place=place.first,
            schedule_id=place.schedule_id,
            position=position,
        )
    return Body(
        s_offset,
        place.due_ms,
        leader_epoch,
        place.count,
        size,
        place=place.first,
        schedule_id=place.schedule_id,
        position=position,
    )


def noted_due_ms(body: Body | None) -> int:
    """Return the due time to write into a note that cancels `body`; `NEVER_DONE` if the body
    recurs or its due time is not known.
    """
    if body is None or isinstance(body, RecurringBody) or body.due_ms == UNKNOWN:
        return NEVER_DONE
    return body.due_ms
