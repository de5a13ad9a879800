"""Loading of a shard in steps: the log's records first, then the state that follows from them.

Until the last step every request for the shard is told to try again, so no client reads an empty
state too early.  If the log cannot be read, its shard stays unavailable, and others are not
affected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.broker.coordinator.runtime import ShardRuntime, ShardState
from tarry.log.segments import LogPosition
from tarry.records.batch import decode_batch_header
from tarry.records.record import decode_records

# Number of bytes that one step reads and decodes in a few milliseconds.
READ_BYTES: Final = 512 * 1024
# Bound on the size of a compressed batch after decompression, in bytes.
BATCH_BYTES_MAX: Final = 1 << 30


class Chore:
    """Work on much of a coordinator's state, in steps of a few milliseconds, one step a turn.

    While there is a chore, the next turn begins at once.  So a chore must not wait for time, the
    disk or other brokers; it may wait for other chores.
    """

    def step(self) -> bool:
        """Do a part of the work; return true when all of it is done."""
        raise NotImplementedError


class Loader(Chore):
    """Loading of one shard; `shards` are all shards of its coordinator, for the log line about
    all.
    """

    def __init__(self, runtime: ShardRuntime, shards: Mapping[int, ShardState[Any, Any]]) -> None:
        self.runtime = runtime
        self.shards = shards
        self.began_ms = runtime.context.turn.now_ms
        runtime.is_being_read = True
        self._offset: int = runtime.partition.log.log_start_offset
        # Position of the high watermark at the first step, up to which the log is read.
        self._end: LogPosition | None = None
        self._load = runtime.state.begin_load()
        self._is_read = False

    def step(self) -> bool:
        runtime = self.runtime
        if not runtime.is_loading():
            # The shard was unloaded meanwhile.
            return True
        try:
            is_loaded = self._step()
        except (CorruptData, StorageError) as error:
            runtime.is_being_read = False
            runtime.error_code = errors.COORDINATOR_NOT_AVAILABLE
            runtime.context.logger.error(
                "the %s of %s cannot be loaded: %s; restore its directory from a copy",
                runtime.context.content,
                runtime.partition.name,
                error,
            )
            return True
        if is_loaded:
            runtime.is_being_read = False
            runtime.error_code = errors.NONE
            self._tell()
        return is_loaded

    def _step(self) -> bool:
        log = self.runtime.partition.log
        if log.flaw_offset >= 0:
            # The readable part ends at the flaw, and its last values would pass for the newest
            # ones.
            raise CorruptData(log.flaw_reason)
        if self._is_read:
            return self._load.step()
        end = self._end
        if end is None:
            end = self._end = log.position_of(self.runtime.partition.high_watermark)
        region = log.read(self._offset, end, READ_BYTES, True)
        if region is not None:
            self._offset = self._add_batches(region.file.read(region.position, region.size))
        self._is_read = region is None or self._offset >= end.offset
        return False

    def _add_batches(self, data: bytes) -> int:
        """Give the records of whole batches to the load; return the offset behind the last
        batch.
        """
        load = self._load
        position = 0
        end_offset = -1
        while position < len(data):
            header = decode_batch_header(data, position)
            records = decode_records(data, size_max=BATCH_BYTES_MAX, position=position)
            for record in records:
                if header.is_control:
                    load.add_control(header, record)
                elif record.key is not None:
                    load.add(record.key, record.value, record.offset)
            position += header.size
            end_offset = header.last_offset + 1
        return end_offset

    def _tell(self) -> None:
        """Write one log line when the last of the coordinator's shards is loaded."""
        shards = self.shards.values()
        if any(each.runtime.is_loading() for each in shards):
            return
        context = self.runtime.context
        context.logger.info(
            "%s loaded: %d in %d ms",
            context.content,
            sum(each.size() for each in shards),
            context.turn.now_ms - self.began_ms,
        )
