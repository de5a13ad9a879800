"""Our table of topic settings against the one in Kafka's jars: names, types, defaults, ranges."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.support.interop.kafka_server import KafkaUnavailable, java_command
from tests.support.patience import PATIENCE_S

from tarry.base.setting import value_text
from tarry.cluster.configs.topic_settings import TOPIC_SETTINGS

KAFKAS = {key: row for key, row in TOPIC_SETTINGS.items() if not row.is_ours}

SOURCE = Path(__file__).parent / "java" / "TopicKeys.java"

# Our scheduler is the flush itself, so that the second synonym says nothing.
SYNONYMS_LEFT_OUT = {"flush.ms": "log.flush.scheduler.interval.ms"}


@pytest.fixture(scope="module")
def kafkas_keys() -> dict[str, list[str]]:
    try:
        command = java_command(str(SOURCE))
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 4]
    return {row[0]: row[1:] for row in rows}


def range_of(validator: str) -> str:
    """Kafka's text of a validator in the notation of our table."""
    if "null" in validator or "[partitionId]" in validator:
        return ""
    alone = ""
    if " or " in validator:
        validator, _, alone = validator.partition(" or ")
        alone += "|"
    inside = validator.strip("[]")
    if "..." in inside:
        low, _, high = inside.partition(",...")
        return f"{alone}{low}..{high.strip(',')}"
    return "|".join(part.strip() for part in inside.split(","))


def test_every_topic_key_of_kafka_is_known_and_no_other(kafkas_keys):
    assert sorted(KAFKAS) == sorted(kafkas_keys)


def test_types_and_defaults_are_kafkas(kafkas_keys):
    for key, row in KAFKAS.items():
        type_, default, *_ = kafkas_keys[key]

        assert row.type == type_.lower(), key
        assert (value_text(row.default) or "") == default.replace("null", ""), key


def test_ranges_and_choices_are_kafkas(kafkas_keys):
    for key, row in KAFKAS.items():
        assert row.check == range_of(kafkas_keys[key][2]), key


def test_the_brokers_keys_behind_a_topics_are_kafkas(kafkas_keys):
    for key, row in KAFKAS.items():
        theirs = kafkas_keys[key][3].replace(SYNONYMS_LEFT_OUT.get(key, "-"), "").split()

        assert [behind for behind, _ in row.behind] == theirs, key
