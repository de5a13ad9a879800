"""Due time of a produced batch, by its topic's settings.

A batch is parked whole or not at all: it is due when the last of its records is.  The check of an
uncompressed batch has corrected the largest timestamp in its header; the header of a compressed
batch is believed.  The check of timestamps has refused a batch that is due later than
`delay.max.ms` allows.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.limits import DUE_MS_MAX
from tarry.log.config import LogConfig
from tarry.records.batch import NO_TIMESTAMP, BatchHeader

# Due time of a batch that is appended to the partition at once.
NOT_DELAYED: Final = -1


def due_ms(config: LogConfig, header: BatchHeader, now_wall_ms: i64) -> i64:
    """Return when a checked batch is due; `NOT_DELAYED` if it is not to be parked.

    The topic must not be one whose records' headers say when they are due.
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
    """Return `at_ms` plus `after_ms`, `DUE_MS_MAX` at most."""
    if after_ms > DUE_MS_MAX - at_ms:
        return DUE_MS_MAX
    return at_ms + after_ms
