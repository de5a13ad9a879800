"""Peers that the interop tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from kafka_server import KafkaServer, KafkaUnavailable, free_port


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Apache Kafka; `TARRY_TEST_KAFKA` names one that runs already."""
    running = os.environ.get("TARRY_TEST_KAFKA")
    if running:
        yield running
        return
    server = KafkaServer(tmp_path_factory.mktemp("kafka"), free_port())
    try:
        server.start()
    except KafkaUnavailable as reason:
        pytest.skip(f"Apache Kafka cannot run here: {reason}")
    try:
        yield server.address
    finally:
        server.stop()
