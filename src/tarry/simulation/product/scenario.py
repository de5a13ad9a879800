"""Scenario of the product's clients: topics, clients and their settings, drawn from the seed."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.client.settings import SettingValue
from tarry.simulation.clients.topic_admin import TopicPlan

# Faults of a client, by name; a caller names a kind several times to draw it more often.
KILL: Final = "kill"
STALL: Final = "stall"
SLOW: Final = "slow"
COME: Final = "come"
LEAVE: Final = "leave"

# The only group of a run.
GROUP: Final = "readers"

_COMPRESSION_TYPES: Final = ("none", "none", "none", "gzip", "snappy", "lz4", "zstd")
_ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
_COMMON: Final[dict[str, SettingValue]] = {
    "bootstrap.servers": "localhost:9092",
    "request.timeout.ms": 2_000,
    "metadata.max.age.ms": 5_000,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.max.ms": 200,
    "default.api.timeout.ms": 10_000,
}


class ProductScenario:
    """Topics of one run, and how many clients of which kind there are."""

    def __init__(self) -> None:
        self.duration_ms = 5_000
        self.settings: dict[str, str] = {}
        self.topics: list[TopicPlan] = []
        self.producers: list[dict[str, SettingValue]] = []
        self.consumers = 0
        self.members = 0
        self.producer_pause_ms_max = 200
        self.work_ms_max = 100
        self.consumer_settings: dict[str, SettingValue] = {}
        self.member_settings: dict[str, SettingValue] = {}
        # Number of members that are static, the first ones.
        self.static_members = 0
        # Time and kind of each fault of a client.
        self.client_faults: list[tuple[int, str]] = []


def draw_clients_scenario(random: Random) -> ProductScenario:
    """Draw producers and consumers that choose their partitions."""
    scenario = _draw(random)
    for _ in range(1 + random.randrange(2)):
        scenario.producers.append(_draw_producer(random))
    scenario.consumers = 1 + random.randrange(2)
    scenario.producer_pause_ms_max = (30, 300)[random.randrange(2)]
    scenario.work_ms_max = (20, 400)[random.randrange(2)]
    _draw_client_faults(random, scenario, (KILL, STALL, SLOW))
    return scenario


def draw_members_scenario(random: Random) -> ProductScenario:
    """Draw a producer, and a group that reads what it writes."""
    scenario = _draw(random)
    scenario.duration_ms += 2_500
    scenario.producers.append(_draw_producer(random))
    scenario.producers[0]["acks"] = "all"
    scenario.producers[0]["enable.idempotence"] = True
    scenario.producer_pause_ms_max = 400
    scenario.members = 1 + random.randrange(3)
    scenario.static_members = random.randrange(3)
    scenario.work_ms_max = (20, 300, 3_000)[random.randrange(3)]
    scenario.settings["group.min.session.timeout.ms"] = "500"
    scenario.settings["group.initial.rebalance.delay.ms"] = "0"
    scenario.settings["offsets.topic.num.partitions"] = "1"
    scenario.member_settings = {
        **_COMMON,
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": _ASSIGNORS[random.randrange(len(_ASSIGNORS))],
        "session.timeout.ms": 1_500 + random.randrange(1_000),
        "heartbeat.interval.ms": 400,
        "auto.commit.interval.ms": (200, 1_000)[random.randrange(2)],
        "max.poll.interval.ms": 6_000,
        "fetch.max.wait.ms": 300,
        "close.timeout.ms": 2_000,
    }
    _draw_client_faults(random, scenario, (KILL, STALL, STALL, SLOW, COME, LEAVE))
    return scenario


def _draw(random: Random) -> ProductScenario:
    scenario = ProductScenario()
    scenario.duration_ms = 1_500 + random.randrange(2_500)
    for number in range(1 + random.randrange(2)):
        plan = TopicPlan(f"lasting-{number}", 1 + random.randrange(3), is_lasting=True)
        # A clock that jumps back must not make a retried batch come from the future.
        plan.configs["message.timestamp.after.max.ms"] = str(1 << 62)
        plan.configs["index.interval.bytes"] = str(random.randrange(400))
        if random.randrange(2) == 0:
            plan.configs["segment.index.bytes"] = str(8 * (3 + random.randrange(8)))
        scenario.topics.append(plan)
    scenario.consumer_settings = {
        **_COMMON,
        "auto.offset.reset": "earliest",
        "fetch.max.wait.ms": (50, 500)[random.randrange(2)],
        "max.partition.fetch.bytes": (100, 65_536)[random.randrange(2)],
    }
    return scenario


def _draw_producer(random: Random) -> dict[str, SettingValue]:
    settings: dict[str, SettingValue] = {
        **_COMMON,
        "linger.ms": (0, 5, 50)[random.randrange(3)],
        "batch.size": (200, 16_384)[random.randrange(2)],
        "compression.type": _COMPRESSION_TYPES[random.randrange(len(_COMPRESSION_TYPES))],
        "max.in.flight.requests.per.connection": 1 + random.randrange(5),
        "delivery.timeout.ms": (3_000, 15_000)[random.randrange(2)],
        "max.block.ms": 4_000,
    }
    if random.randrange(4) == 0:
        settings["enable.idempotence"] = False
        settings["acks"] = ("all", "1", "0")[random.randrange(3)]
    return settings


def _draw_client_faults(random: Random, scenario: ProductScenario, kinds: tuple[str, ...]) -> None:
    for _ in range(random.randrange(5)):
        at_ms = random.randrange(scenario.duration_ms)
        scenario.client_faults.append((at_ms, kinds[random.randrange(len(kinds))]))
