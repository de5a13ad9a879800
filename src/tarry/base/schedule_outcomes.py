"""Changes of scheduled records: what their fields mean in ChangeScheduledRecords and its answer.

A name is the id of what waits, or its s-offset.  Which outcome it is the leader decides when the
request reaches it, and answers when it can no more become another one.
"""

from __future__ import annotations

from typing import Final

# The change failed, and its error code says why.
NO_OUTCOME: Final = 0
# It waits no more and is never released.
CANCELLED: Final = 1
# It is due at another time.
MOVED: Final = 2
# It was released before.
ALREADY_RELEASED: Final = 3
# Nothing waits by that name.
UNKNOWN: Final = 4

# Due time of a change that cancels.
NO_DUE_MS: Final = -1

OUTCOMES: Final = {
    CANCELLED: "cancelled",
    MOVED: "moved",
    ALREADY_RELEASED: "already_released",
    UNKNOWN: "unknown",
}
