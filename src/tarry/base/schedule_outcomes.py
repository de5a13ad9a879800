"""Changes of scheduled records: the values of fields in ChangeScheduledRecords and its answer.

A name is the id of a waiting entry, or its s-offset.  The leader decides the outcome when the
request reaches it, and answers when the outcome cannot change any more.
"""

from __future__ import annotations

from typing import Final

# The change failed; its error code says why.
NO_OUTCOME: Final = 0
# The entry was cancelled and is never released.
CANCELLED: Final = 1
# The entry has another due time.
MOVED: Final = 2
# The entry had been released before.
ALREADY_RELEASED: Final = 3
# No entry waits under that name.
UNKNOWN: Final = 4

# Due time of a change that cancels.
NO_DUE_MS: Final = -1

OUTCOMES: Final = {
    CANCELLED: "cancelled",
    MOVED: "moved",
    ALREADY_RELEASED: "already_released",
    UNKNOWN: "unknown",
}
