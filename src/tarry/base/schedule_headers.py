"""Headers by which a record says when it is due, and who may take it back."""

from __future__ import annotations

from typing import Final

DELIVER_AT: Final = "x-deliver-at"
DELIVER_AFTER: Final = "x-deliver-after"
SCHEDULE_ID: Final = "x-sched-id"
SCHEDULE_CANCEL: Final = "x-sched-cancel"
