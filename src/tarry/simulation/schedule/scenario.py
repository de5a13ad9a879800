"""Scenario of scheduled records: that of records, with topics and producers that delay."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.simulation.clients.topic_admin import TopicPlan
from tarry.simulation.records.producer import ProducerPlan
from tarry.simulation.records.scenario import RecordsScenario, draw_records_scenario

# Delays: none, the same turn or the next one, within a flush, after a crash, the end of a run.
_DELAYS_MS: Final = (0, 60, 70, 90, 150, 400, 1_500, 6_000)
DELAY_DEFAULT_MS_MAX: Final = 4_000
_DEFAULTS_MS: Final = (1, 30, 500, DELAY_DEFAULT_MS_MAX)


def draw_schedule_scenario(random: Random) -> RecordsScenario:
    """Draw the scenario of one run."""
    scenario = draw_records_scenario(random)
    for plan in scenario.topics:
        _delay(random, plan)
    for producer in scenario.producers:
        _schedule(random, producer)
    if scenario.duration_ms % 2 == 0 and 0 < scenario.duration_ms % 5 < 4:
        # The duration chooses: with small segments compaction drops released batches in the run.
        scenario.settings["log.cleaner.backoff.ms"] = str(50 + scenario.duration_ms % 300)
        for plan in scenario.topics:
            plan.configs["segment.index.bytes"] = str(8 * (3 + scenario.duration_ms % 6))
            plan.configs["index.interval.bytes"] = "300"
    if random.randrange(2) == 0:
        # Many batches that are due at nearly the same time.
        for producer in scenario.producers:
            producer.pause_ms_max = 1 + random.randrange(20)
    return scenario


def delay_ms_min(plan: TopicPlan) -> int:
    """Return how much later records must be due to wait; -1 where all wait equally long."""
    if plan.configs.get("delay.source") != "timestamp":
        return -1
    return int(plan.configs.get("delay.min.ms", "0"))


def _delay(random: Random, plan: TopicPlan) -> None:
    configs = plan.configs
    configs["delay.enable"] = "true"
    if random.randrange(4) == 0:
        configs["delay.default.ms"] = str(_DEFAULTS_MS[random.randrange(len(_DEFAULTS_MS))])
    else:
        configs["delay.source"] = "timestamp"
        # The broker refuses this setting beside delays by timestamp.
        configs.pop("message.timestamp.type", None)
    if random.randrange(4) == 0:
        configs["delay.min.ms"] = str(random.randrange(300))


def _schedule(random: Random, plan: ProducerPlan) -> None:
    plan.batches += random.randrange(20)
    # One kind of delay in some producers, so that the order of arrival counts.
    if random.randrange(3) == 0:
        plan.delays_ms = (_DELAYS_MS[random.randrange(len(_DELAYS_MS))],)
        plan.lateness_ms_max = 1 + random.randrange(2)
    else:
        first = random.randrange(len(_DELAYS_MS))
        plan.delays_ms = (*_DELAYS_MS[first:], 0)
