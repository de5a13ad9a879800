"""Scanner: ranges of offsets as record batches of pyarrow, without a group.

for batch in scan({("orders", 0): (0, 1_000_000)}, {"bootstrap.servers": "localhost:9092"}):
    write(batch)

A scan shares nothing with other clients, so many processes may scan parts of a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Unpack

from tarry.base.ids import TopicPartition
from tarry.client.arrow.consumer import ROWS_MAX
from tarry.client.arrow.tables import Choice, check_rows_max
from tarry.client.core.arguments import check_settings, epochs_of
from tarry.client.core.consumer.scan import OffsetRange, ScanCore, ranges_of, scan_settings
from tarry.client.face.chance import SystemRandom
from tarry.client.face.clock import monotonic_ms
from tarry.client.setting_arguments import ConsumerArguments
from tarry.client.settings import ConsumerSettings, SettingValue
from tarry.client.sync.driver import Driver

if TYPE_CHECKING:
    import pyarrow as pa


def scan(
    ranges: Mapping[TopicPartition, OffsetRange],
    settings: Mapping[str, SettingValue] | None = None,
    columns: Iterable[str] | None = None,
    max_rows: int = ROWS_MAX,
    *,
    views: bool = False,
    topic_ids: Mapping[str, str] | None = None,
    epochs: Mapping[TopicPartition, int] | None = None,
    **arguments: Unpack[ConsumerArguments],
) -> Iterator[pa.RecordBatch]:
    """Yield every record whose offset lies in these ranges (the first offset, and the one behind
    the last), in record batches of `max_rows` rows at most; or raise why that is not possible.

    A range that the log does not have raises OffsetOutOfRange before the first row.  Settings are
    a consumer's; `default.api.timeout.ms` is how long the next rows may take.  `columns` and
    `views` are those of `ArrowConsumer.batches`.  `topic_ids` has ids by topic, as `tarry topics
    describe` shows them: a topic with another id raises TopicRecreated before the first row.
    `epochs` has the leader epochs of the last records, as far as they are known: a record of a
    newer one raises LogTruncated, since the log was cut and written anew.
    """
    check_settings("scan", settings)
    check_rows_max(max_rows)
    made = scan_settings(ConsumerSettings(settings, **arguments))
    checked = ranges_of(ranges)
    newest = None if epochs is None else epochs_of("scan", epochs)

    def core(driver: Driver[ScanCore]) -> ScanCore:
        return ScanCore(made, SystemRandom(), monotonic_ms(), checked, topic_ids, newest)

    return _batches(made, core, Choice(columns, views=views), max_rows)


def _batches(
    settings: ConsumerSettings,
    make_core: Callable[[Driver[ScanCore]], ScanCore],
    choice: Choice,
    rows_max: int,
) -> Iterator[pa.RecordBatch]:
    driver = Driver(settings, make_core)
    try:
        while True:
            taker = choice.taker(rows_max)
            begin = partial(driver.core.begin_rows, taker)
            if not driver.perform(begin, None, settings.api_timeout_ms):
                return
            # Turn once, so that the next fetch leaves before the columns are built.
            driver.nudge()
            yield choice.batch(taker)
    finally:
        driver.close()
