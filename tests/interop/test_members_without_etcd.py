"""Members of real clients that commit while etcd is frozen, and while their coordinator alone has
lost it; `tests/support/cluster/etcd_hardships.py` does it in full length.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from tests.support.cluster.etcd_hardships import (
    CLIENTS,
    SESSION_MS,
    Commits,
    Hardships,
    cut,
    frozen,
)
from tests.support.interop.confluent_face import confluent_kafka, missing

pytestmark = [
    pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}"),
    pytest.mark.slow,
]

# Short sessions of brokers, and faults that outlast them.
SETTINGS: Final = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
FAULT_S: Final = 6


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hardships]:
    made = Hardships(tmp_path_factory.mktemp("hardships"), CLIENTS, SETTINGS)
    yield made
    made.close()


@pytest.mark.parametrize("do", [frozen, cut])
def test_every_commit_ends_and_every_member_goes_on(
    run: Hardships, do: Callable[[Hardships, float], None]
) -> None:
    began_ns = time.monotonic_ns()
    do(run, FAULT_S)

    assert run.wait_for_all(time.monotonic_ns()) == []
    for member in run.every_member():
        assert Commits(member, began_ns).longest_s < SESSION_MS / 1000, member.name
