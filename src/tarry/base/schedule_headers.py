"""Headers of a record that say when it is due, whether it recurs, and how it can be cancelled."""

from __future__ import annotations

from typing import Final

# Due time.
DELIVER_AT: Final = "x-deliver-at"
# Wait from the append on: a duration.
DELIVER_AFTER: Final = "x-deliver-after"
# Id by which the record can be cancelled or replaced.
SCHEDULE_ID: Final = "x-sched-id"
# The value 1 cancels the record with the same x-sched-id.
SCHEDULE_CANCEL: Final = "x-sched-cancel"

# Cron expression of a recurring record, and its time zone.
RECURRENCE_CRON: Final = "x-sched-cron"
RECURRENCE_ZONE: Final = "x-sched-tz"
# Time at which the recurrence ends; and the largest number of its instances.
RECURRENCE_END: Final = "x-sched-end"
RECURRENCE_COUNT: Final = "x-sched-count"
# Rule for instances that were missed while the broker was down: once, skip or all.
RECURRENCE_MISFIRE: Final = "x-sched-misfire"

# Headers that the broker adds to a record that it releases alone: its due time, and the x-sched-id
# of the recurring record that it is an instance of.
SCHEDULE_DUE: Final = "x-sched-due"
SCHEDULE_INSTANCE_OF: Final = "x-sched-instance-of"

RECURRENCE_NAMES: Final = (
    RECURRENCE_CRON,
    RECURRENCE_ZONE,
    RECURRENCE_END,
    RECURRENCE_COUNT,
    RECURRENCE_MISFIRE,
)
# All headers that a topic with delay.source=header reads.
HEADER_NAMES: Final = (DELIVER_AT, DELIVER_AFTER, SCHEDULE_ID, SCHEDULE_CANCEL, *RECURRENCE_NAMES)
