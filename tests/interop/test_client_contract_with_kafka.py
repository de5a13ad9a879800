"""The contract of the client's faces, kept against Apache Kafka as it is against our broker."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from tests.contracts.test_client_contract import *  # noqa: F403  # every test, and its fixtures


class RunningKafka(NamedTuple):
    """An Apache Kafka that other tests use too."""

    address: str


@pytest.fixture(scope="module")
def broker(apache_kafka: str) -> RunningKafka:
    return RunningKafka(apache_kafka)
