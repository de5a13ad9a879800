"""The golden assignments are still what Kafka's own assignors print."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.interop.kafka_server import KafkaUnavailable, java_command
from tests.support.patience import PATIENCE_S

SOURCE = Path(__file__).parent / "java" / "Assignors.java"
GOLDEN = Path(__file__).parents[1] / "unit" / "client" / "golden" / "assignors.jsonl"


def test_kafka_prints_the_golden_assignments() -> None:
    try:
        command = java_command(str(SOURCE))
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))

    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert done.returncode == 0, done.stderr
    if os.environ.get("TARRY_REWRITE") == "1":
        GOLDEN.write_text(done.stdout, "utf-8")
    assert done.stdout == GOLDEN.read_text("utf-8")
