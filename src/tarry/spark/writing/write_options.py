"""Options of a write, checked before anything starts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from tarry.client.settings import CLIENT_SETTINGS, COMMON, ProducerSettings
from tarry.spark.option_table import WRITING, names_of
from tarry.spark.options import KAFKA_PREFIX, OptionRefused, OptionTexts
from tarry.spark.writing.directory import local_path

log = logging.getLogger("tarry.spark")

TOPIC: Final = "topic"
SINK_LOCATION: Final = "sinkLocation"
CHECKPOINT_LOCATION: Final = "checkpointLocation"
DELIVERY: Final = "delivery"

AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"

# What `DataStreamWriter.queryName` leaves among the options.
QUERY_NAME: Final = "queryName"

NAMES: Final = (*names_of(WRITING), QUERY_NAME)

# Settings that the sink decides: another value would not do what it says.
DECIDED: Final = {
    "acks": "the sink always waits for all replicas in sync",
    "enable.idempotence": "the sink is idempotent by its own plans",
    "transactional.id": "the sink needs no transactions",
    "key.serializer": "keys are bytes or text already",
    "value.serializer": "values are bytes or text already",
}

REQUEST_SIZE: Final = "max.request.size"
REQUEST_SIZE_MAX: Final = 2**31 - 1

# Of a batch before compression, where kafka.batch.size says nothing.
BATCH_BYTES: Final = 512 * 1024
# The same of a batch at least once; the producer splits what its topic does not take.
TASK_BATCH_BYTES: Final = 256 * 1024


class WriteOptions(NamedTuple):
    """Options of one write."""

    # None: the column topic says where each row goes.
    topic: str | None
    is_exactly_once: bool
    # Directory of the sink; None: not needed.
    location: str | None
    # Checkpoint of the query; None: not known.
    checkpoint: str | None
    # Of a producer, by Kafka's keys.
    settings: dict[str, str]

    @property
    def client_settings(self) -> dict[str, str]:
        """Settings that every client has."""
        known = CLIENT_SETTINGS
        return {key: text for key, text in self.settings.items() if known[key].scope == COMMON}

    @property
    def producer_settings(self) -> ProducerSettings:
        return ProducerSettings(self.settings)

    def settings_of_any_size(self) -> ProducerSettings:
        """Return the settings of a producer that takes records of any size, unless one is given."""
        return ProducerSettings({REQUEST_SIZE: str(REQUEST_SIZE_MAX), **self.settings})

    @property
    def batch_bytes(self) -> int:
        """Bytes that a batch is filled to, before compression."""
        if "batch.size" in self.settings:
            return self.producer_settings.batch_bytes
        return BATCH_BYTES


def is_decided_so(key: str, text: str) -> bool:
    """Return true if a setting asks for what the sink does anyway."""
    return key == "acks" and text in ("all", "-1")


def parse_write_options(options: Mapping[str, str], *, is_stream: bool) -> WriteOptions:
    """Read the options of a write.  Raises OptionRefused, or the client's InvalidSetting."""
    texts = OptionTexts(options)
    texts.check_known(NAMES)
    settings = texts.kafka_settings()
    for key, reason in DECIDED.items():
        if key in settings and not is_decided_so(key, settings[key]):
            raise OptionRefused(f"{KAFKA_PREFIX}{key} cannot be set: {reason}")
    ProducerSettings(settings)
    delivery = texts.text(DELIVERY) or (EXACTLY_ONCE if is_stream else AT_LEAST_ONCE)
    if delivery not in (AT_LEAST_ONCE, EXACTLY_ONCE):
        raise OptionRefused(
            f"{DELIVERY}={delivery!r:.60} is neither {AT_LEAST_ONCE} nor {EXACTLY_ONCE}"
        )
    checkpoint = texts.text(CHECKPOINT_LOCATION)
    location = texts.text(SINK_LOCATION)
    is_exactly_once = delivery == EXACTLY_ONCE
    if is_stream and not is_exactly_once:
        raise OptionRefused(f"a stream is written {EXACTLY_ONCE}: leave the option {DELIVERY} out")
    if not is_stream:
        _check_batch(checkpoint, location, is_exactly_once=is_exactly_once)
    if is_stream and checkpoint is None:
        raise OptionRefused(
            "a stream needs the option checkpointLocation at its own writer, such as "
            '.option("checkpointLocation", "/shared/checkpoints/orders"): the sink keeps its plans '
            "there and belongs to the query that is named there"
        )
    if location is None and is_stream:
        location = f"{(checkpoint or '').rstrip('/')}/sink"
    if is_exactly_once and location is None:
        raise OptionRefused(
            f"{DELIVERY}={EXACTLY_ONCE} needs the option {SINK_LOCATION}: a directory of this "
            "write that driver and workers share. The same directory means the same write"
        )
    if is_stream and checkpoint is not None:
        # The query's id is read there.
        local_path(checkpoint, CHECKPOINT_LOCATION)
    if is_exactly_once and location is not None:
        # Workers may have another working directory than the driver.
        location = str(local_path(location).absolute())
    return WriteOptions(texts.text(TOPIC), is_exactly_once, location, checkpoint, settings)


def _check_batch(checkpoint: str | None, location: str | None, *, is_exactly_once: bool) -> None:
    """Tell of what a batch does not look at; refuse a place for plans that it does not make, since
    who gives one wants rows written once."""
    if checkpoint is not None:
        log.warning("the option %s has no effect in a batch", CHECKPOINT_LOCATION)
    if location is not None and not is_exactly_once:
        raise OptionRefused(
            f"{SINK_LOCATION} acts with {DELIVERY}={EXACTLY_ONCE} only: add that, or leave it out"
        )
