"""Loading of a partition's schedule in steps: its companion log S, then what P has released.

P is read from the last checkpoint of S that counts, to its end.  What is parked meanwhile is known
to the schedule itself.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.errors import CorruptData
from tarry.log.batch_walk import Flaw
from tarry.log.log import Log
from tarry.log.segments import LogPosition
from tarry.partition.replicated_log import ReplicatedLog
from tarry.records.batch import BatchHeader, decode_batch_header, has_valid_crc
from tarry.schedule.notes import UnreadableNote, read_note
from tarry.schedule.pending import PendingHeap
from tarry.schedule.rebuild import Rebuild
from tarry.schedule.release import NO_S_OFFSET, released_s_offset
from tarry.schedule.state import ScheduleState

# Bytes of a log that are gone through in one step: a millisecond or two.
READ_BYTES: Final = 512 * 1024


class _Reading:
    """Reading of a log's batches up to a position that was its end."""

    def __init__(self, log: Log, offset: int, end: LogPosition) -> None:
        self._log = log
        self._offset = offset
        self._end = end

    @property
    def is_over(self) -> bool:
        flaw_offset: int = self._log.flaw_offset
        return self._offset >= self._end.offset or 0 <= flaw_offset <= self._offset

    def read(self) -> bytes:
        """Return the next whole batches; none at the end."""
        if self.is_over:
            return b""
        # Its start may have moved since.
        self._offset = max(self._offset, self._log.log_start_offset)
        region = self._log.read(self._offset, self._end, READ_BYTES, True)
        if region is None:
            self._offset = self._end.offset
            return b""
        return region.file.read(region.position, region.size)

    def pass_by(self, header: BatchHeader) -> None:
        """Go on behind a batch."""
        self._offset = int(header.last_offset) + 1


class ScheduleLoad:
    """Loading of one partition's schedule; `state` is there when a step has returned True."""

    def __init__(self, partition: ReplicatedLog, companion: ReplicatedLog) -> None:
        self._partition = partition
        self._companion = companion
        self._rebuild = Rebuild()
        log = companion.log
        self._start_offset: int = log.log_start_offset
        self._bodies = _Reading(log, self._start_offset, log.end_position())
        self._releases: _Reading | None = None
        # From here on P was read: what lies before is noted in a checkpoint.
        self.read_from = partition.log.log_start_offset
        # Where the last release ends that was found there.
        self.released_end = 0
        self.state: ScheduleState | None = None

    @property
    def flaws(self) -> list[str]:
        """Sentences about what cannot be released, the first ones of many."""
        return self._rebuild.flaws

    @property
    def flaw_count(self) -> int:
        """Count of what cannot be released."""
        return self._rebuild.flaw_count

    def step(self) -> bool:
        """Read on; True when all is read.  `StorageError`: not now, the same step may succeed."""
        releases = self._releases
        if not self._bodies.is_over:
            try:
                self._take_bodies(self._bodies.read())
            except Flaw:
                # The log has noted it, and is read up to there.
                return False
        elif releases is None:
            self._releases = self._begin_releases()
        elif not releases.is_over:
            self._take_releases(releases, releases.read())
        elif self._partition.log.flaw_offset >= 0:
            raise CorruptData(self._partition.log.flaw_reason)
        else:
            self.state = self._rebuild.finish(PendingHeap(), self._companion.high_watermark)
            return True
        return False

    def _take_bodies(self, data: bytes) -> None:
        rebuild = self._rebuild
        position: i64 = 0
        while position < len(data):
            header = decode_batch_header(data, position)
            offset = int(header.base_offset)
            if not header.is_control:
                # A body whose note went with the segment before it is needed no more.  The CRC of
                # the others is looked at when they are released.
                if offset > self._start_offset:
                    rebuild.add_body(
                        offset, int(header.leader_epoch), int(header.record_count), int(header.size)
                    )
            elif has_valid_crc(data, position, header):
                rebuild.add_note(offset, read_note(data, position, header))
            else:
                sentence = f"the note at offset {offset} does not match its CRC"
                rebuild.add_note(offset, UnreadableNote(sentence, is_newer=False))
            position += header.size
            self._bodies.pass_by(header)

    def _begin_releases(self) -> _Reading:
        partition = self._partition
        log = partition.log
        end = log.end_position()
        self.read_from = self._rebuild.begin_releases(
            log.leader_epochs, log.log_start_offset, end.offset, partition.high_watermark
        )
        return _Reading(log, self.read_from, end)

    def _take_releases(self, releases: _Reading, data: bytes) -> None:
        position: i64 = 0
        while position < len(data):
            header = decode_batch_header(data, position)
            s_offset: i64 = released_s_offset(header)
            if s_offset != NO_S_OFFSET:
                self._rebuild.add_release(
                    int(s_offset), int(header.leader_epoch), int(header.base_offset)
                )
                self.released_end = int(header.last_offset) + 1
            position += header.size
            releases.pass_by(header)
