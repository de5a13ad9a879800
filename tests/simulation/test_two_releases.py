"""A simulated cluster of two releases: what the older one cannot read is not written while it is
registered, and no broker stops at any time.
"""

from __future__ import annotations

import pytest
from tests.support.cluster.simulated_cluster import SIZE, SimulatedCluster

from tarry.base import errors
from tarry.base.etcd import Put
from tarry.base.settings import Settings
from tarry.broker.metadata.config_changes import RESOURCE_GROUP, ConfigAlteration, ConfigOutcome
from tarry.cluster.configs.config_changes import SET
from tarry.cluster.decisions.feature_updates import UPGRADE, FeatureUpdate, LevelWanted
from tarry.cluster.decisions.unregistration import Unregistration
from tarry.cluster.rows.rows import ROW_FORMAT, FeatureRow, GroupConfigsRow, Keys, encode_row
from tarry.cluster.state.levels import GROUP_CONFIGS, Release
from tarry.simulation import faults
from tarry.simulation.cluster.cluster_node import ClusterNode

OLDER = Release("0.8", {})
KEYS = Keys("/simulated/")
GROUP = "billing"
KEY = "consumer.session.timeout.ms"


class TwoReleases(SimulatedCluster):
    """A cluster whose last broker runs an older release; without topics, so that it may leave."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.older = self.nodes[-1]
        self.older.release = OLDER
        for node in self.nodes:
            node.start()
        self.run_until(self.all_know_all, "brokers that know each other")

    def set_of_group(self, node: ClusterNode, value: str) -> ConfigOutcome:
        """Have a broker change a setting of a group, which is a row of a new kind."""
        assert node.broker is not None
        outcome = ConfigOutcome(RESOURCE_GROUP, GROUP, [(KEY, SET, value)])
        store = node.broker.store
        change = ConfigAlteration([outcome], Settings({}), store.release, is_whole=False)
        store.change(change)
        self.run_until(lambda: change.is_ended, "the end of the change")
        assert not change.refusal
        return outcome

    def know_group(self, value: str) -> bool:
        return all(
            broker.store.state.group_configs == {GROUP: {KEY: value}} for broker in self.brokers()
        )

    def rows(self) -> list[bytes]:
        """The keys that came with the feature."""
        kinds = (KEYS.of_kind("features"), KEYS.of_kind("groups"))
        rows = self.etcd_node.etcd.rows(KEYS.prefix)
        return [row.key for row in rows if row.key.startswith(kinds)]

    def lives(self) -> dict[int, int]:
        """The epoch of each living broker: another one would be another life."""
        assert self.nodes[0].broker is not None
        brokers = self.nodes[0].broker.store.state.brokers
        return {broker_id: broker.broker_epoch for broker_id, broker in brokers.items()}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_older_release_is_named_until_it_has_left_and_no_broker_stops(seed: int) -> None:
    cluster = TwoReleases(seed)
    lives = cluster.lives()

    refused = cluster.set_of_group(cluster.nodes[0], "50000")
    asked_of_older = cluster.set_of_group(cluster.older, "50000")

    assert refused.error_code == errors.UNSUPPORTED_VERSION
    assert f"broker {SIZE} (Tarry 0.8) does not know it" in (refused.message or "")
    assert asked_of_older.error_code == errors.UNSUPPORTED_VERSION
    assert cluster.rows() == []
    cluster.world.run_for(5_000)
    assert cluster.lives() == lives

    leave(cluster)
    done = cluster.set_of_group(cluster.nodes[1], "50000")

    assert (done.error_code, done.message) == (errors.NONE, None)
    cluster.run_until(lambda: cluster.know_group("50000"), "the group's settings everywhere")
    assert cluster.rows() == [KEYS.feature(GROUP_CONFIGS), KEYS.group(GROUP)]
    cluster.world.run_for(5_000)
    left = {broker_id: epoch for broker_id, epoch in lives.items() if broker_id != SIZE}
    assert cluster.lives() == left


def leave(cluster: TwoReleases) -> None:
    """End the older broker for ever and take it out of the cluster."""
    cluster.older.lose(faults.KILL)
    cluster.older.is_cut_off = True
    first = cluster.nodes[0].broker
    assert first is not None
    cluster.run_until(
        lambda: first.store.state.brokers[SIZE].broker_epoch < 0, "the end of the older one"
    )
    change = Unregistration(SIZE)
    first.store.change(change)
    cluster.run_until(lambda: change.is_ended, "the unregistration")
    assert change.error_code == errors.NONE


def test_a_broker_that_is_upgraded_is_lacking_no_more() -> None:
    cluster = TwoReleases(4)
    cluster.older.release = Release("0.9")

    cluster.older.request_stop(faults.CLEAN)
    cluster.run_until(lambda: not cluster.older.is_ready, "the stop")
    cluster.run_until(cluster.all_know_all, "the start")
    done = cluster.set_of_group(cluster.nodes[0], "50000")

    assert (done.error_code, done.message) == (errors.NONE, None)


def test_rows_that_a_release_does_not_know_stop_no_broker_that_runs() -> None:
    cluster = TwoReleases(5)
    lives = cluster.lives()

    done, _ = cluster.etcd_node.etcd.transact(
        [],
        [
            Put(KEYS.feature(GROUP_CONFIGS), encode_row(FeatureRow(ROW_FORMAT, 1))),
            Put(KEYS.group(GROUP), encode_row(GroupConfigsRow(ROW_FORMAT, {KEY: "50000"}))),
            Put(KEYS.prefix + b"wonders/1", b"[1]"),
            Put(KEYS.producer_ids, b"[2,{}]"),
        ],
    )
    cluster.world.run_for(10_000)

    assert done
    assert cluster.lives() == lives
    assert cluster.older.broker is not None
    assert cluster.older.broker.store.state.group_configs == {}
    assert cluster.nodes[0].broker is not None
    assert cluster.nodes[0].broker.store.state.group_configs == {GROUP: {KEY: "50000"}}


def test_a_level_that_an_administrator_asks_for_is_refused_likewise() -> None:
    cluster = TwoReleases(6)
    broker = cluster.nodes[0].broker
    assert broker is not None
    change = FeatureUpdate([LevelWanted(GROUP_CONFIGS, 1, UPGRADE)], broker.store.release)

    broker.store.change(change)
    cluster.run_until(lambda: change.is_ended, "the end of the change")

    assert change.error_code == errors.INVALID_UPDATE_VERSION
    assert f"broker {SIZE} (Tarry 0.8) does not know it" in (change.message or "")
