"""Judge of what compaction may have dropped of a companion log, by both logs of its partition.

The judge does not use the rule of the compaction.  A body is over if all its entries were released
or cancelled.  The last checkpoint that counts is never dropped.
"""

from __future__ import annotations

from tarry.records.batch import BatchHeader
from tarry.schedule.bodies import bodies_of
from tarry.schedule.notes import CancelledNote, CheckpointNote, ScheduledNote, read_note
from tarry.schedule.release_identity import is_instance, released_s_offset
from tarry.simulation.cluster.disk_log import DiskBatch


class CompanionDrops:
    """Batches of one companion log that are over, found by reading both logs."""

    def __init__(self) -> None:
        # s-offsets of the entries that were released or cancelled.
        self._done: dict[int, None] = {}
        # s-offsets of the entries of each body, by the body's offset.
        self._waiting: dict[int, list[int]] = {}
        self._checkpoint_offset = -1
        self._taken = [0, 0]
        self._note: tuple[int, ScheduledNote] | None = None

    def follow(self, companion: list[DiskBatch], records: list[DiskBatch]) -> None:
        """Read the batches that were committed in the two logs since the last call."""
        for batch in companion[self._taken[1] :]:
            self._take_of_companion(batch)
        for batch in records[self._taken[0] :]:
            header = BatchHeader(batch.data, 0)
            if not is_instance(header):
                self._done[int(released_s_offset(header))] = None
        self._taken = [len(records), len(companion)]

    def _take_of_companion(self, batch: DiskBatch) -> None:
        header = BatchHeader(batch.data, 0)
        noted, self._note = self._note, None
        if not header.is_control:
            if noted is None or noted[0] != batch.base_offset - 1:
                return
            note = noted[1]
            self._done.update(dict.fromkeys(note.cancelled))
            bodies = bodies_of(note, batch.base_offset, 0, int(header.record_count), 1)
            self._waiting[batch.base_offset] = [body.s_offset for body in bodies]
            return
        note_read = read_note(batch.data, 0, header)
        if isinstance(note_read, ScheduledNote):
            self._note = (batch.base_offset, note_read)
        elif isinstance(note_read, CancelledNote):
            self._done[note_read.s_offset] = None
        elif isinstance(note_read, CheckpointNote):
            self._checkpoint_offset = batch.base_offset

    def may_lack(self, batch: DiskBatch) -> bool:
        """Return whether a replica may be without this batch."""
        if not BatchHeader(batch.data, 0).is_control:
            return all(each in self._done for each in self._waiting.get(batch.base_offset, []))
        if batch.base_offset == self._checkpoint_offset:
            return False
        # A note may be dropped together with its body.
        return all(each in self._done for each in self._waiting.get(batch.base_offset + 1, []))
