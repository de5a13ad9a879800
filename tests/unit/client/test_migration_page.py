"""The page for who comes from other clients: its defaults are what these clients have."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path
from typing import Any

import aiokafka
import kafka
import pytest

import tarry.client
from tarry.client import aio
from tarry.client.settings import CLIENT_SETTINGS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/how-to/moving-from-other-clients.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("## Defaults")[2].splitlines()
    if line.startswith("| `")
]


def as_written(default: Any) -> str:
    """A default as the page writes it."""
    if isinstance(default, bool):
        return str(default).lower()
    if default == -1:
        return "all"
    if isinstance(default, tuple):
        return ",".join(one.name for one in default)
    return "none" if default is None else str(default)


@pytest.mark.parametrize("row", [row for row in ROWS if len(row) == 5], ids=lambda row: row[0])
def test_a_default_of_the_page_is_the_clients_own(row: list[str]) -> None:
    key = row[0].strip("`").partition("`")[0]
    argument = key.replace(".", "_")

    assert row[1] == as_written(CLIENT_SETTINGS[key].default)
    if key == "partitioner":
        return
    of_kafka_python = {**kafka.KafkaProducer.DEFAULT_CONFIG, **kafka.KafkaConsumer.DEFAULT_CONFIG}
    of_aiokafka = {
        name: one.default
        for face in (aiokafka.AIOKafkaProducer, aiokafka.AIOKafkaConsumer)
        for name, one in signature(face).parameters.items()
    }
    assert row[2] == (as_written(of_kafka_python[argument]) if argument in of_kafka_python else "-")
    if key == "acks":
        # 1 unless idempotence is asked for; the signature does not tell.
        return
    if key == "batch.size":
        argument = "max_batch_size"
    assert row[3] == (as_written(of_aiokafka[argument]) if argument in of_aiokafka else "-")


def test_every_method_of_the_right_column_is_there() -> None:
    faces = [tarry.client.Producer, tarry.client.Consumer, tarry.client.Admin, aio.Consumer]
    right = [
        line.split("|")[2]
        for line in PAGE.partition("## Defaults")[0].splitlines()
        if line.startswith("| `")
    ]

    names = {name for cell in right for name in re.findall(r"`(?:await )?\(?(\w+)\(", cell)}

    missing = [
        name
        for name in sorted(names)
        if not any(hasattr(face, name) for face in faces) and not hasattr(tarry.client, name)
    ]
    assert missing == ["f", "on_delivery", "skip"]
