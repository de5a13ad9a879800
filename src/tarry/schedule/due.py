"""Due time of a produced batch, by its topic's settings.

A batch is parked whole or not at all: it is due when the last of its records is.  The check of a
batch has put its largest timestamp right where the records are not compressed; of a compressed one
the header is believed.  What is due later than `delay.max.ms` allows was refused by the check of
timestamps before.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.limits import DUE_MS_MAX
from tarry.log.config import LogConfig
from tarry.records.batch import NO_TIMESTAMP, BatchHeader

# Of a batch that goes into the partition at once.
NOT_DELAYED: Final = -1


def due_ms(config: LogConfig, header: BatchHeader, now_wall_ms: i64) -> i64:
    """Return when a checked batch is due; `NOT_DELAYED` if it is not to be parked.

    Not of a topic whose records' headers say when they are due.
    """
    assert not config.has_delay_by_header
    if not config.has_delay:
        return NOT_DELAYED
    due: i64
    if config.has_delay_by_timestamp:
        due = header.max_timestamp
        if due == NO_TIMESTAMP:
            return NOT_DELAYED
    else:
        due = _sum_within_time(now_wall_ms, config.delay_default_ms)
    if due <= now_wall_ms or due - now_wall_ms < config.delay_min_ms:
        return NOT_DELAYED
    return due


def _sum_within_time(at_ms: i64, after_ms: i64) -> i64:
    """Return the time `after_ms` later, the last that may be if it lies behind that."""
    if after_ms > DUE_MS_MAX - at_ms:
        return DUE_MS_MAX
    return at_ms + after_ms
