"""A rolling upgrade of three real brokers from the release before feature levels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.writer import Writer, take
from tests.support.older_release import older_python
from tests.support.raw_client import RawClient

from tarry.base import errors
from tarry.client import Admin, BrokerError, Consumer, NewTopic
from tarry.cluster.state.levels import GROUP_CONFIGS
from tarry.protocol import api_keys
from tarry.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC = "upgraded"
GROUP = 32
NEWER = [sys.executable, "-m", "tarry"]


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """How a broker of the older release is started."""
    return [older_python(tmp_path_factory.mktemp("older")), "-m", "tarry"]


@pytest.fixture
def cluster(older: list[str], tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers of the older release."""
    made = BrokerCluster(tmp_path)
    for broker in made.brokers.values():
        broker.program = older
    with made:
        yield made


def test_an_older_broker_that_has_left_is_in_the_way_no_more(
    older: list[str], tmp_path: Path
) -> None:
    made = BrokerCluster(tmp_path)
    made.brokers[3].program = older
    with made as cluster:
        refused = set_of_group(cluster, 1)
        assert are_running(cluster)
        assert cluster.brokers[3].stop() == 0
        with Admin(bootstrap_servers=cluster.brokers[1].address) as admin:
            wait_until(lambda: "yes" if cluster.serving(1) == [1, 2] else "", "the end of 3")
            admin.unregister_broker(3)
        done = set_of_group(cluster, 2)
        serving = cluster.serving(2)
        with Admin(bootstrap_servers=cluster.brokers[1].address) as admin:
            wait_until(partial(has_level, admin, 1), "the level at broker 1")

    assert refused.error_code == errors.UNSUPPORTED_VERSION
    assert "broker 3 (Tarry " in (refused.error_message or "")
    assert (done.error_code, done.error_message) == (errors.NONE, None)
    assert serving == [1, 2]


def test_an_older_release_comes_back_once_the_level_is_lowered(
    older: list[str], tmp_path: Path
) -> None:
    made = BrokerCluster(tmp_path)
    with made as cluster:
        with Admin(bootstrap_servers=cluster.brokers[1].address) as admin:
            admin.update_features({GROUP_CONFIGS: 1})
            admin.update_features({GROUP_CONFIGS: 0}, may_downgrade=True)
        assert cluster.brokers[3].stop() == 0
        cluster.brokers[3].program = older
        cluster.start_broker(3)
        cluster.wait_until_serving(1, [1, 2, 3])


def set_of_group(cluster: BrokerCluster, asked: int) -> AlterConfigsResourceResponse:
    """Change a setting of a group, which is a row of a kind that the older release lacks."""
    change = AlterableConfig("consumer.session.timeout.ms", 0, "50000")
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP, "billing", [change])])
    with RawClient(cluster.brokers[asked].port) as client:
        answer = client.ask(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    return answer.responses[0]


def upgrade(cluster: BrokerCluster, broker_id: int) -> None:
    broker = cluster.brokers[broker_id]
    assert broker.stop() == 0
    broker.program = NEWER
    cluster.start_broker(broker_id)
    wait_until(lambda: "yes" if is_whole(cluster) else "", "all replicas in sync")


def is_whole(cluster: BrokerCluster) -> bool:
    if cluster.serving(1) != [1, 2, 3]:
        return False
    return all(len(one.isr) == 3 for one in cluster.topic(1, TOPIC).partitions.values())


def are_running(cluster: BrokerCluster) -> bool:
    processes = [broker.process for broker in cluster.brokers.values()]
    return all(process is not None and process.poll() is None for process in processes)


def test_what_older_brokers_cannot_read_is_refused_until_all_are_upgraded(
    cluster: BrokerCluster, older: list[str]
) -> None:
    with Admin(bootstrap_servers=cluster.addresses) as admin:
        admin.create_topics([NewTopic(TOPIC, 6, 3)])
    writer = Writer(cluster.addresses, TOPIC)
    writer.start()
    lacking = {1: [2, 3], 2: [3], 3: []}
    for broker_id, left in lacking.items():
        writer.wait_for_more()
        upgrade(cluster, broker_id)
        answer = set_of_group(cluster, broker_id)
        if not left:
            break
        assert answer.error_code == errors.UNSUPPORTED_VERSION
        assert all(f"broker {one} (Tarry " in (answer.error_message or "") for one in left)
        assert f"broker {broker_id} (" not in (answer.error_message or "")
        with (
            Admin(bootstrap_servers=cluster.brokers[broker_id].address) as admin,
            pytest.raises(BrokerError, match=f"broker {left[0]} "),
        ):
            admin.update_features({GROUP_CONFIGS: 1})
    writer.wait_for_more()
    writer.end()

    assert (answer.error_code, answer.error_message) == (errors.NONE, None)
    assert are_running(cluster)
    for asked in cluster.brokers:
        with Admin(bootstrap_servers=cluster.brokers[asked].address) as admin:
            wait_until(partial(has_level, admin, asked), "the level")
    found: list[list[bytes]] = [[] for _ in range(6)]
    with Consumer(bootstrap_servers=cluster.addresses, auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, index) for index in range(6)])
        for index, value in take(consumer, sum(map(len, writer.written))):
            found[index].append(value)
    assert found == writer.written

    # An older release is refused now, and says what to do.
    broker = cluster.brokers[3]
    broker.stop()
    broker.program = older
    with pytest.raises(AssertionError, match="a newer release is in the cluster, start that one"):
        cluster.start_broker(3)
    assert cluster.serving(1) == [1, 2]


def has_level(admin: Admin, asked: int) -> str:
    """Whether this broker tells that the level is in force; "" if not."""
    levels = {one.name: one.level for one in admin.describe_features(asked)}
    return "yes" if levels[GROUP_CONFIGS] == 1 else ""
