"""Headers by which a record says when it is due, and who may take it back."""

from __future__ import annotations

from typing import Final

# When the record is due: a time.
DELIVER_AT: Final = "x-deliver-at"
# How long it waits from its append on: a duration.
DELIVER_AFTER: Final = "x-deliver-after"
# The name by which it is taken back or replaced.
SCHEDULE_ID: Final = "x-sched-id"
# With the value 1 the record takes back the one with its x-sched-id.
SCHEDULE_CANCEL: Final = "x-sched-cancel"

HEADER_NAMES: Final = (DELIVER_AT, DELIVER_AFTER, SCHEDULE_ID, SCHEDULE_CANCEL)
