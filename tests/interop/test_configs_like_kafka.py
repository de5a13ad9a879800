"""Every setting that Apache Kafka describes beside Tarry's, with source, type and synonyms.

What differs stands here by key, with its reason; anything else fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest
from tests.support.interop.both_brokers import (
    RUN,
    TARRYS_OWN,
    Both,
    KafkaConnection,
    wait_until_led,
)
from tests.support.patience import PATIENCE_S

from tarry.base.settings import SETTINGS
from tarry.base.settings_ignored import reason_without_effect
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tarry.simulation.by_hand import BrokerByHand

TOPIC = f"{RUN}-described"
SOURCE_FILE: Final = 4
SOURCE_DEFAULT: Final = 5


class Told(NamedTuple):
    """What is told of one setting."""

    value: str | None
    source: int
    type: int
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[tuple[str, str | None, int], ...]


# Key -> why Tarry tells it otherwise, whatever the value is.
OF_A_TOPIC: Final = {
    "min.insync.replicas": "Kafka's feature for eligible leader replicas writes it as a setting of "
    "every broker when the data is formatted; Tarry does not have that feature",
}
OF_A_BROKER: Final = {
    "min.insync.replicas": OF_A_TOPIC["min.insync.replicas"],
    "listeners": "Tarry's stay as they were opened",
    "listener.security.protocol.map": "Tarry's listeners stay as they were opened",
    "broker.heartbeat.interval.ms": "a dead broker is missed after 6 s instead of 9",
    "broker.session.timeout.ms": "a dead broker is missed after 6 s instead of 9",
    "node.id": "Kafka has no default for it",
    "log.dir": "Kafka's default is below /tmp, Tarry's below the working directory",
    "log.dirs": "Tarry tells the directory that counts",
}
ONLY_TARRYS: Final = {
    "follower.replication.throttled.rate": "Kafka tells it only while it is set",
    "leader.imbalance.per.broker.percentage": "Kafka took it out of what it tells",
    "producer.id.expiration.check.interval.ms": "internal in Kafka",
}


@pytest.fixture(scope="module")
def both(apache_kafka: str) -> Iterator[Both]:
    connection = KafkaConnection(apache_kafka)
    pair = Both(connection.ask, BrokerByHand().connect().ask)
    request = CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1)], PATIENCE_S * 1_000)
    pair.answers(api_keys.CREATE_TOPICS, 7, lambda _: request)
    wait_until_led(connection.ask, TOPIC)
    yield pair
    connection.close()


def told(both: Both, kind: int, name: str) -> tuple[dict[str, Told], dict[str, Told]]:
    resource = DescribeConfigsResource(kind, name, None)
    request = DescribeConfigsRequest([resource], include_synonyms=True)
    kafka, tarry = both.answers(api_keys.DESCRIBE_CONFIGS, 4, lambda _: request)
    return by_key(kafka), by_key(tarry)


def by_key(answer: Message) -> dict[str, Told]:
    assert isinstance(answer, DescribeConfigsResponse)
    (result,) = answer.results
    assert result.error_code == 0
    return {
        each.name: Told(
            each.value,
            each.config_source,
            each.config_type,
            each.read_only,
            each.is_sensitive,
            tuple((one.name, one.value, one.source) for one in each.synonyms),
        )
        for each in result.configs
    }


def is_from_its_file(setting: Told) -> bool:
    """Whether the file of the Kafka of these tests sets it."""
    return SOURCE_FILE in (setting.source, *[source for _, _, source in setting.synonyms])


def test_settings_of_a_topic_are_told_alike(both: Both) -> None:
    kafka, tarry = told(both, 2, TOPIC)

    assert sorted(key for key in tarry if not key.startswith(TARRYS_OWN)) == sorted(kafka)
    differing = [key for key in kafka if kafka[key] != tarry[key]]
    assert [key for key in differing if not is_from_its_file(kafka[key])] == list(OF_A_TOPIC)


@pytest.mark.parametrize(("kind", "name"), [(32, f"{RUN}-group"), (16, f"{RUN}-metrics")])
def test_settings_that_nobody_has_set_are_told_alike(both: Both, kind: int, name: str) -> None:
    kafka, tarry = told(both, kind, name)

    # Nothing keeps those of client metrics, so they cannot be set.
    assert {one.is_read_only for one in tarry.values()} == {kind == 16}
    assert {key: one._replace(is_read_only=False) for key, one in tarry.items()} == kafka


def test_settings_of_a_broker_are_told_alike(both: Both) -> None:
    kafka, tarry = told(both, 4, "1")

    unknown = [key for key in kafka if key not in tarry]
    assert [key for key in unknown if reason_without_effect(key) is None] == []
    added = [key for key in tarry if key not in kafka]
    assert [key for key in added if not SETTINGS[key].is_ours] == sorted(ONLY_TARRYS)
    shared = [key for key in kafka if key in tarry]
    assert [key for key in shared if kafka[key][2] != tarry[key][2]] == []
    differing = [key for key in shared if kafka[key] != tarry[key]]
    others = [key for key in differing if not is_from_its_file(kafka[key])]
    assert [key for key in others if key not in OF_A_BROKER] == []
    read_only = [key for key in shared if kafka[key].is_read_only != tarry[key].is_read_only]
    assert read_only == ["listener.security.protocol.map", "listeners"]


def test_no_dynamic_key_of_kafka_is_left_out_but_passwords_and_names_to_load(both: Both) -> None:
    kafka, tarry = told(both, 4, "1")

    left_out = [key for key, one in kafka.items() if not one.is_read_only and key not in tarry]

    assert sorted(key for key in left_out if not kafka[key].is_sensitive) == [
        "config.providers",
        "cordoned.log.dirs",
        "metric.reporters",
        "principal.builder.class",
        "ssl.engine.factory.class",
    ]
