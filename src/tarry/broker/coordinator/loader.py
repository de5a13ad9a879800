"""Loading of a shard in steps: the log's records, then the groups that they make.

Until the last step every request for the shard's groups is told to come again, so nobody reads
"no offset" where there is one.  A log that cannot be read keeps its groups unavailable, and no
others.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.broker.coordinator.chores import Chore, topic_ids
from tarry.group.loading import Loading
from tarry.group.offsets import decide_forget_topics
from tarry.group.outcomes import decide_load

if TYPE_CHECKING:
    from tarry.broker.coordinator.shard import Shard

logger = logging.getLogger("tarry.group")

# What is read, decoded or begun in one step: a few milliseconds each.
READ_BYTES: Final = 512 * 1024
RECORDS_PER_STEP: Final = 1_000
GROUPS_PER_STEP: Final = 200


class Loader(Chore):
    """See the module's text."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.began_ms = shard.coordinator.broker.now_ms
        self._offset: int = shard.partition.log.log_start_offset
        self._end = shard.partition.high_watermark_position
        self._loading = Loading()
        self._is_read = False
        self._groups_left: list[str] | None = None

    def step(self) -> bool:
        try:
            return self._step()
        except (CorruptData, StorageError) as error:
            self.shard.error_code = errors.COORDINATOR_NOT_AVAILABLE
            logger.error(
                "the groups of %s cannot be loaded: %s; restore its directory from a copy",
                self.shard.partition.name,
                error,
            )
            return True

    def _step(self) -> bool:
        shard = self.shard
        if shard.partition.is_closed:
            return True
        if shard.partition.log.flaw_offset >= 0:
            # The log ends at its flaw: what was committed before would pass for the newest.
            raise CorruptData(shard.partition.log.flaw_reason)
        if not self._is_read:
            self._is_read = self._read()
            return False
        if self._groups_left is None:
            if self._loading.step(shard.groups, RECORDS_PER_STEP):
                self._groups_left = list(reversed(shard.groups.by_id))
            return False
        known = topic_ids(shard.coordinator.broker)
        for _ in range(GROUPS_PER_STEP):
            if not self._groups_left:
                self._finish()
                return True
            self._begin(self._groups_left.pop(), known)
        return False

    def _read(self) -> bool:
        region = self.shard.partition.log.read(self._offset, self._end, READ_BYTES, True)
        if region is None:
            return True
        data = region.file.read(region.position, region.size)
        self._offset = self._loading.add_batches(data)
        return self._offset >= self._end.offset

    def _begin(self, group_id: str, known: dict[str, bytes]) -> None:
        shard = self.shard
        group = shard.group(group_id)
        moment = shard.coordinator.moment()
        shard.carry_out(group, decide_load(group, moment))
        # A topic that was deleted just before a crash: its offsets do not come back.
        shard.carry_out(group, decide_forget_topics(group, known, moment))

    def _finish(self) -> None:
        shard = self.shard
        shard.error_code = errors.NONE
        shard.coordinator.on_loaded(self.began_ms)
