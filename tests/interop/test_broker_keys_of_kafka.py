"""The list of broker keys that the unit tests compare our table with, against Kafka's jars."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.support.interop.kafka_server import KafkaUnavailable, java_command
from tests.support.patience import PATIENCE_S
from tests.support.places import ROOT

SOURCE = Path(__file__).parent / "java" / "BrokerKeys.java"


def test_the_list_of_broker_keys_is_what_kafka_prints():
    try:
        command = java_command(str(SOURCE))
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    kept = (ROOT / "tests" / "unit" / "base" / "kafka_broker_keys.tsv").read_text().splitlines()

    assert [line for line in kept if not line.startswith("#")] == done.stdout.splitlines()
