"""Rule of a compacted topic on a follower whose companion log may hold bodies of released batches.

A leader compacts its partition below the last checkpoint, which says what was released.  A follower
does not know that checkpoint.  If it became leader without a batch that says which body was
released, it would release the body again.  So each such batch stays without its records, as the
last batch of a producer does.  It goes once this replica leads.  Hot.
"""

from __future__ import annotations

from tarry.log.compaction.key_rule import KeyRule
from tarry.records.batch import BatchHeader
from tarry.records.rebuild import empty_batch
from tarry.schedule.release_identity import NO_S_OFFSET, is_instance, released_s_offset


class KeyAndReleaseRule(KeyRule):
    """Rule that keeps the last record of each key, and what each released batch says."""

    def keeps_header(self, header: BatchHeader) -> bool:
        if released_s_offset(header) != NO_S_OFFSET:
            return True
        return super().keeps_header(header)

    def emptied(self, header: BatchHeader) -> bytes:
        if released_s_offset(header) != NO_S_OFFSET and is_instance(header):
            # The base timestamp says which due time of a recurring body has come.
            return empty_batch(header, header.base_timestamp)
        return super().emptied(header)
