"""Scenario of records: topics with small segments, producers and readers, drawn from the seed."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.simulation.clients.topic_admin import TopicPlan
from tarry.simulation.records.producer import ProducerPlan
from tarry.simulation.records.reader import ReaderPlan
from tarry.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD

_LONG_MS: Final = 75_000
_EXPIRATION_MS: Final = 50_000
_COMPRESSION_TYPES: Final = ("gzip", "uncompressed", "snappy", "lz4", "zstd")


class RecordsScenario:
    """Topics and kinds of clients of one run."""

    def __init__(self) -> None:
        self.duration_ms = 4_000
        self.settings: dict[str, str] = {}
        self.topics: list[TopicPlan] = []
        self.producers: list[ProducerPlan] = []
        self.readers: list[ReaderPlan] = []
        self.codecs: list[int] = [NONE]
        self.admin_pause_ms_max = 300
        self.has_operator = False
        self.has_pipeliner = False


def draw_records_scenario(random: Random) -> RecordsScenario:
    """Draw the scenario of one run: small enough to be cheap, odd enough to be interesting."""
    scenario = RecordsScenario()
    # Some runs are long, since recovery points are a minute apart.
    slowness = 1 if random.randrange(4) else 15
    scenario.duration_ms = slowness * (1_500 + random.randrange(8_000))
    scenario.admin_pause_ms_max = 300 * slowness
    scenario.settings = {
        "log.retention.check.interval.ms": str(500 + random.randrange(3_000)),
        "log.segment.delete.delay.ms": str(random.randrange(2_000)),
    }
    if random.randrange(12) == 0:
        scenario.settings["flush.policy"] = "os"
    if random.randrange(3) == 0:
        scenario.codecs = [NONE, NONE, GZIP, SNAPPY, LZ4, ZSTD]
    for number in range(1 + random.randrange(2)):
        scenario.topics.append(_draw_topic(random, f"lasting-{number}", is_lasting=True))
    if random.randrange(3) == 0:
        scenario.topics.append(_draw_topic(random, "passing", is_lasting=False))
    for number in range(1 + random.randrange(3)):
        scenario.producers.append(_draw_producer(random, number, slowness))
    for _ in range(1 + random.randrange(2)):
        scenario.readers.append(_draw_reader(random, slowness))
    # The duration chooses the runs with an operator: all others stay as they were.
    scenario.has_operator = scenario.duration_ms % 3 == 0
    if scenario.duration_ms >= _LONG_MS:
        _let_producers_expire(scenario)
    if scenario.duration_ms % 7 == 1:
        _ask_for_compression(scenario)
    scenario.has_pipeliner = scenario.duration_ms % 4 == 1
    if scenario.has_pipeliner:
        scenario.settings["offsets.topic.num.partitions"] = "1"
    return scenario


def _let_producers_expire(scenario: RecordsScenario) -> None:
    """Let producers rest longer than the broker remembers them.  A retry is never so late."""
    scenario.settings["producer.id.expiration.ms"] = str(_EXPIRATION_MS)
    scenario.settings["producer.id.expiration.check.interval.ms"] = "1000"
    for plan in scenario.producers:
        plan.rest_ms = _EXPIRATION_MS + 3_000
        plan.timeout_ms = min(plan.timeout_ms, 3_000)


def _ask_for_compression(scenario: RecordsScenario) -> None:
    """Give each topic a codec of its own; some batches take several turns."""
    scenario.codecs = [NONE, NONE, GZIP, SNAPPY, LZ4, ZSTD]
    for number, plan in enumerate(scenario.topics):
        codec = (scenario.duration_ms // 7 + number) % len(_COMPRESSION_TYPES)
        plan.configs["compression.type"] = _COMPRESSION_TYPES[codec]
    for producer in scenario.producers:
        producer.value_bytes_max = 40_000


def _draw_topic(random: Random, name: str, *, is_lasting: bool) -> TopicPlan:
    plan = TopicPlan(name, 1 + random.randrange(3), is_lasting=is_lasting)
    configs = plan.configs
    # A clock that jumps back must not make a retried batch come from the future.
    configs["message.timestamp.after.max.ms"] = str(1 << 62)
    # An index entry for every batch or two, and a new segment for every few entries.
    configs["index.interval.bytes"] = str(random.randrange(400))
    if random.randrange(2) == 0:
        configs["segment.index.bytes"] = str(8 * (3 + random.randrange(8)))
    if random.randrange(4) == 0:
        configs["segment.ms"] = str(200 + random.randrange(2_000))
    if random.randrange(5) < 2:
        configs["retention.bytes"] = str(random.randrange(4_000))
    if random.randrange(5) == 0:
        configs["message.timestamp.type"] = "LogAppendTime"
    return plan


def _draw_producer(random: Random, number: int, slowness: int) -> ProducerPlan:
    plan = ProducerPlan()
    plan.batches = 6 + random.randrange(20)
    plan.pause_ms_max = 1 + random.randrange(300 * slowness)
    plan.in_flight_max = 1 + random.randrange(5)
    plan.timeout_ms = (1_000, 3_000, 30_000)[random.randrange(3)]
    if random.randrange(2) == 0:
        # Several sectors, so that a crash may lose the middle of a batch.
        plan.value_bytes_max = 2_000
    if number > 0 and random.randrange(2) == 0:
        plan.is_idempotent = False
        plan.acks = (-1, 1, 1, 0)[random.randrange(4)]
        plan.gives_up_on_storage_errors = plan.batches % 2 == 0
    if plan.batches % 3 == 0:
        plan.lateness_ms_max = 5_000
    return plan


def _draw_reader(random: Random, slowness: int) -> ReaderPlan:
    plan = ReaderPlan()
    plan.max_wait_ms = (50, 500, 2_000, 10_000)[random.randrange(4)]
    plan.min_bytes = (1, 1, 1, 700)[random.randrange(4)]
    plan.partition_bytes_max = (1, 200, 65_536, 65_536)[random.randrange(4)]
    plan.pause_ms_max = 20 * slowness * slowness
    plan.jumps_per_mille = 50 + random.randrange(300)
    return plan
