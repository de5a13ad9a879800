"""The page for who comes from other clients: its defaults are what these clients have."""

from __future__ import annotations

import ctypes
import functools
import re
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient

import tarry.client
from tarry.client import aio
from tarry.client.settings import CLIENT_SETTINGS
from tarry.client.settings_foreign import foreign_hint

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/how-to/moving-from-other-clients.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("## Defaults")[2].splitlines()
    if line.startswith("| `")
]


SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
CLIENTS = {"kafka": "kafka-python", "aiokafka": "aiokafka"}
# librdkafka's names of Kafka's keys.
NAMES_OF_LIBRDKAFKA = {
    "acks": "request.required.acks",
    "delivery.timeout.ms": "message.timeout.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "linger.ms": "queue.buffering.max.ms",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "max.request.size": "message.max.bytes",
}
# The same in other words, or nobody's to compare.
NOT_COMPARED = (
    "auto.offset.reset",
    "bootstrap.servers",
    "client.id",
    "client.rack",
    "close.timeout.ms",
    "compression.type",
    "default.api.timeout.ms",
    "group.id",
    "group.instance.id",
    "receive.buffer.bytes",
    "security.protocol",
    "send.buffer.bytes",
)


@functools.cache
def defaults_of_librdkafka() -> dict[str, str]:
    """What its library says of itself; skips where the wheel hides it."""
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    found = sorted(folder.glob("librdkafka*"))
    if not found:
        pytest.skip("confluent-kafka's wheel has no librdkafka of its own here")
    library = ctypes.CDLL(str(found[0]))
    defaults: dict[str, str] = {}
    # A key of both is one of a whole client, and of topics for old programs.
    for kind in ("rd_kafka_topic_conf", "rd_kafka_conf"):
        make, dump = getattr(library, f"{kind}_new"), getattr(library, f"{kind}_dump")
        make.restype = ctypes.c_void_p
        dump.restype = ctypes.POINTER(ctypes.c_char_p)
        dump.argtypes = (ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))
        count = ctypes.c_size_t()
        words = dump(make(), ctypes.byref(count))
        texts = [(words[place] or b"").decode() for place in range(count.value)]
        defaults.update(zip(texts[::2], texts[1::2], strict=True))
    defaults["buffer.memory"] = str(int(defaults["queue.buffering.max.kbytes"]) * 1024)
    for key, name in NAMES_OF_LIBRDKAFKA.items():
        defaults[key] = defaults[name]
    return defaults


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


@pytest.mark.parametrize("row", [row for row in ROWS if len(row) == 5], ids=lambda row: row[0])
def test_a_default_of_the_page_is_librdkafkas(row: list[str]) -> None:
    key = row[0].strip("`").partition("`")[0]
    if key in ("partitioner", "max.poll.records"):
        # Its words are others; and its key is for share groups.
        return
    theirs = defaults_of_librdkafka().get(key, "-")

    assert row[4] == ("all" if theirs == "-1" else theirs)


def test_each_default_that_differs_is_on_the_page() -> None:
    of_others: list[dict[str, Any]] = [
        kafka.KafkaProducer.DEFAULT_CONFIG,
        kafka.KafkaConsumer.DEFAULT_CONFIG,
        {key.replace(".", "_"): text for key, text in defaults_of_librdkafka().items()},
        *(
            {name: one.default for name, one in signature(face).parameters.items()}
            for face in (aiokafka.AIOKafkaProducer, aiokafka.AIOKafkaConsumer)
        ),
    ]
    told = {row[0].strip("`").partition("`")[0] for row in ROWS if len(row) == 5}

    differing = [
        key
        for key, row in CLIENT_SETTINGS.items()
        if key not in NOT_COMPARED
        and any(
            as_written(row.default) != as_written(other[key.replace(".", "_")])
            for other in of_others
            if key.replace(".", "_") in other
        )
    ]

    assert [key for key in differing if key not in told] == []


def is_compared(client: str) -> bool:
    """True if the page was written for the version that is here: another one may have more."""
    return f"{client} {version(client)}" in PAGE


@pytest.mark.parametrize(
    ("section", "other"),
    [
        ("From kafka-python", kafka.KafkaProducer),
        ("From kafka-python", kafka.KafkaConsumer),
        ("Administration", kafka.KafkaAdminClient),
        ("From confluent-kafka", confluent_kafka.Producer),
        ("From confluent-kafka", confluent_kafka.Consumer),
        ("From confluent-kafka", confluent_kafka.Message),
        ("Administration", AdminClient),
        ("From aiokafka", aiokafka.AIOKafkaProducer),
        ("From aiokafka", aiokafka.AIOKafkaConsumer),
        ("Administration", AIOKafkaAdminClient),
    ],
)
def test_the_page_says_what_takes_the_place_of_each_call(section: str, other: Any) -> None:
    words = set(re.findall(r"\w+", SECTIONS[section] + SECTIONS["What has no counterpart"]))

    calls = [name for name in dir(other) if name[0] != "_" and callable(getattr(other, name))]

    # All have these, and where there is no poll the client polls by itself.
    missing = set(calls) - words - {"close", "start", "stop", "poll", "error"}
    package = other.__module__.partition(".")[0]
    if is_compared(CLIENTS.get(package, "confluent-kafka")):
        assert missing == set()


def test_each_setting_of_other_clients_is_taken_or_answered_with_what_to_do() -> None:
    names = {
        *kafka.KafkaProducer.DEFAULT_CONFIG,
        *kafka.KafkaConsumer.DEFAULT_CONFIG,
        *kafka.KafkaAdminClient.DEFAULT_CONFIG,
        *signature(aiokafka.AIOKafkaProducer).parameters,
        *signature(aiokafka.AIOKafkaConsumer).parameters,
        *defaults_of_librdkafka(),
    } - {"topics"}
    if not all(is_compared(client) for client in ("confluent-kafka", *CLIENTS.values())):
        return
    keys = sorted(name.replace("_", ".") for name in names)

    assert [key for key in keys if key not in CLIENT_SETTINGS and not foreign_hint(key)] == []


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
