"""Scheduled records of the synchronous producer: what is asked before one is appended."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tarry.client.core.delays import UNKNOWN_SOURCE
from tarry.client.core.producer.due import DueGiven, check_own_headers, with_due
from tarry.client.face.clock import wall_ms
from tarry.client.settings import ProducerSettings

if TYPE_CHECKING:
    from tarry.client.core.producer.core import ProducerCore
    from tarry.client.core.producer.intake import Appended
    from tarry.client.sync.driver import Driver


def scheduled_record(
    driver: Driver[ProducerCore],
    settings: ProducerSettings,
    record: Appended,
    due: DueGiven,
    *,
    has_timestamp: bool,
) -> Appended:
    """Return a record that is due later as its topic takes it; waits `max.block.ms` at most until
    it is known how that is."""
    check_own_headers(record[5])
    core = driver.core
    topic = record[0]
    with driver.lock:
        source = core.delays.source_of(topic, driver.now_ms())
    if source == UNKNOWN_SOURCE:
        begin = partial(core.begin_delay_query, topic)
        source = driver.perform(begin, None, settings.block_ms_max)
    if core.partition_count(topic) == 0:
        driver.perform(partial(core.begin_topic_query, topic), None, settings.block_ms_max)
    # Without the lock: a partitioner of the user's own may do as it likes.
    return with_due(core, record, due, source, wall_ms(), has_timestamp=has_timestamp)
