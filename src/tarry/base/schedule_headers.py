"""Headers by which a record says when it is due, whether it recurs, and who may take it back."""

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

# When a record comes that recurs: a cron expression, and the time zone in which it is meant.
RECURRENCE_CRON: Final = "x-sched-cron"
RECURRENCE_ZONE: Final = "x-sched-tz"
# Until when it comes: a time; and how often at most.
RECURRENCE_END: Final = "x-sched-end"
RECURRENCE_COUNT: Final = "x-sched-count"
# Rule for times that were missed while the broker was down: once, skip or all.
RECURRENCE_MISFIRE: Final = "x-sched-misfire"

# Headers that the broker adds to a record which it releases alone: when the record was due, and the
# x-sched-id of the recurring record that it is an instance of.
SCHEDULE_DUE: Final = "x-sched-due"
SCHEDULE_INSTANCE_OF: Final = "x-sched-instance-of"

RECURRENCE_NAMES: Final = (
    RECURRENCE_CRON,
    RECURRENCE_ZONE,
    RECURRENCE_END,
    RECURRENCE_COUNT,
    RECURRENCE_MISFIRE,
)
# All that a topic with delay.source=header looks for.
HEADER_NAMES: Final = (DELIVER_AT, DELIVER_AFTER, SCHEDULE_ID, SCHEDULE_CANCEL, *RECURRENCE_NAMES)
