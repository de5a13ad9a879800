"""Scheduled records of the asyncio producer: what has to be known before one is appended."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tarry.client.core.delays import UNKNOWN_SOURCE
from tarry.client.core.producer.due import DueGiven, check_own_headers, with_due
from tarry.client.errors import BufferFull
from tarry.client.face.producer import check_receipt_alone
from tarry.client.settings import ProducerSettings

if TYPE_CHECKING:
    from tarry.client.aio.driver import LoopDriver
    from tarry.client.aio.receipt import Receipt
    from tarry.client.core.producer.core import ProducerCore
    from tarry.client.core.producer.intake import Appended
    from tarry.client.core.schedule.entries import ScheduleOutcome


async def scheduled_record(
    driver: LoopDriver[ProducerCore],
    settings: ProducerSettings,
    record: Appended,
    due: DueGiven,
    *,
    has_timestamp: bool,
) -> Appended:
    """Return a record that is due later in the form that its topic wants; wait at most
    `max.block.ms` until the topic's settings are known."""
    check_own_headers(record[5])
    core = driver.core
    topic = record[0]
    source = core.delays.source_of(topic, driver.now_ms())
    if source == UNKNOWN_SOURCE:
        begin = partial(core.begin_delay_query, topic)
        source = await driver.perform(begin, None, settings.block_ms_max)
    if core.partition_count(topic) == 0:
        await driver.perform(partial(core.begin_topic_query, topic), None, settings.block_ms_max)
    return with_due(core, record, due, source, driver.wall_ms(), has_timestamp=has_timestamp)


def scheduled_at_once(
    driver: LoopDriver[ProducerCore], record: Appended, due: DueGiven, *, has_timestamp: bool
) -> Appended:
    """Return a record that is due later in its topic's form; BufferFull if that is not known
    yet."""
    check_own_headers(record[5])
    core = driver.core
    topic = record[0]
    source = core.delays.source_of(topic, driver.now_ms())
    if source == UNKNOWN_SOURCE or core.partition_count(topic) == 0:
        raise BufferFull(
            f"how topic {topic!r} delays records is not known yet, and send_nowait does not wait "
            "for it: await send for the first record that is due later"
        )
    return with_due(core, record, due, source, driver.wall_ms(), has_timestamp=has_timestamp)


async def cancel_receipt(
    driver: LoopDriver[ProducerCore],
    settings: ProducerSettings,
    receipt: Receipt,
    *others: object,
) -> ScheduleOutcome:
    """Take back the record of a receipt, as soon as the broker has it; `others` name nothing."""
    check_receipt_alone(*others)
    await receipt
    begin = partial(driver.core.begin_cancel, receipt)
    return await driver.perform(begin, None, settings.api_timeout_ms)
