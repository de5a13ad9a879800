"""Feature levels: who may bring one into force, and what becomes of a release that lacks one."""

from __future__ import annotations

from random import Random

import pytest
from tests.support.cluster.joining_scene import JoiningScene
from tests.support.cluster.life_scene import LifeScene
from tests.support.metadata_stores import EmbeddedSubject, EtcdSubject

from tarry.base import errors
from tarry.base.etcd import Operation, Put
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.cluster.decisions.topic_decisions import (
    TopicDecision,
    TopicIds,
    TopicWanted,
    decide_create_topics,
)
from tarry.cluster.etcd.joining import JoinRefused
from tarry.cluster.etcd.transactions import Transaction
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import (
    KINDS,
    ROW_FORMAT,
    BrokerRow,
    FeatureRow,
    Keys,
    decode_row,
    encode_row,
)
from tarry.cluster.state.levels import (
    FEATURES,
    GROUP_CONFIGS,
    LEVELS,
    SCHEDULED_RECORDS,
    LevelRefused,
    Release,
    decide_level,
    decide_use,
)
from tarry.cluster.state.records import (
    BrokerDescribed,
    BrokerRegistered,
    FeatureLevelChanged,
    GroupConfigChanged,
    LifeChanged,
    MetadataRecord,
    NewerFormat,
    TopicCreated,
)
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.embedded import open_store
from tarry.cluster.store.stored_metadata import read_stored_state
from tarry.log.logs import Logs

NEWER, OLDER = Release("2.0"), Release("1.0", {})


def cluster(*releases: Release) -> ClusterState:
    """Make brokers 1, 2, ... of these releases."""
    state = ClusterState()
    for broker_id, release in enumerate(releases, 1):
        state.apply(BrokerRegistered(broker_id=broker_id))
        state.apply(
            BrokerDescribed(
                broker_id=broker_id,
                directory_id="d",
                rack="",
                endpoints={},
                release=release.name,
                levels=dict(release.levels),
            )
        )
    return state


def in_force(state: ClusterState, level: int) -> ClusterState:
    state.apply(FeatureLevelChanged(name=GROUP_CONFIGS, level=level))
    return state


# -- Decisions


def test_the_first_use_brings_the_first_level_into_force_once() -> None:
    state = cluster(NEWER, NEWER)

    begun = decide_use(state, GROUP_CONFIGS, NEWER)

    assert begun == [FeatureLevelChanged(name=GROUP_CONFIGS, level=1)]
    assert decide_use(in_force(state, 1), GROUP_CONFIGS, NEWER) == []


@pytest.mark.parametrize(
    ("releases", "words"),
    [
        ((NEWER, OLDER), "broker 2 (Tarry 1.0) does not know it; upgrade it"),
        ((OLDER, NEWER, OLDER), "broker 1 (Tarry 1.0), broker 3 (Tarry 1.0) do not know it"),
        ((NEWER, Release("", {})), "broker 2 (an unknown release) does not know it"),
    ],
)
def test_registered_brokers_that_do_not_know_a_level_are_named(
    releases: tuple[Release, ...], words: str
) -> None:
    with pytest.raises(LevelRefused) as refusal:
        decide_use(cluster(*releases), GROUP_CONFIGS, NEWER)

    assert words in str(refusal.value)


def test_a_release_brings_no_level_into_force_that_it_does_not_know_itself() -> None:
    with pytest.raises(LevelRefused, match=r"runs Tarry 1\.0, which does not know tarry\.group"):
        decide_use(cluster(NEWER), GROUP_CONFIGS, OLDER)
    with pytest.raises(LevelRefused, match="up to level 1"):
        decide_level(cluster(NEWER), GROUP_CONFIGS, 2, NEWER)


def test_a_level_is_lowered_only_while_nothing_rests_on_it() -> None:
    state = in_force(cluster(NEWER), 1)
    state.apply(GroupConfigChanged(group_id="g", configs={"k": "1"}))

    with pytest.raises(LevelRefused, match="remove that first"):
        decide_level(state, GROUP_CONFIGS, 0, NEWER)
    state.apply(GroupConfigChanged(group_id="g", configs={}))

    lowered = decide_level(state, GROUP_CONFIGS, 0, NEWER)
    assert lowered == [FeatureLevelChanged(name=GROUP_CONFIGS, level=0)]


def test_every_kind_of_row_that_a_feature_brings_is_one_that_is_read() -> None:
    for feature in FEATURES:
        assert feature.level_max >= 1
        assert all(kind in KINDS for kind in feature.kinds), feature.name


# -- Registrations


def test_a_registration_tells_the_levels_and_an_older_one_tells_none() -> None:
    scene = JoiningScene()
    broker = scene.broker(1)
    scene.join(broker)
    broker.register()
    (row,) = scene.etcd.rows(broker.joining.keys.broker(1))

    registered = decode_row("brokers", row.key, row.value)
    older = decode_row("brokers", b"/demo/brokers/2", b'[1,"d","",{},"0.1"]')

    assert isinstance(registered, BrokerRow)
    assert isinstance(older, BrokerRow)
    assert (registered.release, registered.levels) == ("0.1.0", dict(LEVELS))
    assert older.levels == {}


def test_an_older_release_is_refused_at_its_start_while_a_level_is_in_force() -> None:
    scene = JoiningScene()
    newer = scene.broker(1)
    scene.join(newer)
    scene.etcd.transact([], [Put(newer.joining.keys.feature(GROUP_CONFIGS), b"[1,1]")])
    scene.release = OLDER

    with pytest.raises(JoinRefused) as refusal:
        scene.join(scene.broker(2))

    assert "use tarry.group.configs at level 1, and this release" in str(refusal.value)
    assert "tarry cluster features --downgrade tarry.group.configs=0" in str(refusal.value)


def test_a_level_of_a_feature_that_nobody_here_has_heard_of_refuses_a_start_too() -> None:
    scene = JoiningScene()
    broker = scene.broker(1)
    scene.etcd.transact([], [Put(b"/demo/features/tarry.wonders", b"[1,3]")])

    with pytest.raises(JoinRefused, match=r"tarry\.wonders at level 3"):
        scene.join(broker)


def test_a_damaged_level_refuses_a_start_and_stops_no_broker_that_runs() -> None:
    subject = EtcdSubject()
    subject.change(FeatureLevelChanged(name=GROUP_CONFIGS, level=1))
    subject.settle()

    subject.etcd.transact([], [Put(subject.keys.feature(GROUP_CONFIGS), b"[1,")])
    subject.run(lambda: subject.store.version >= subject.etcd.revision)

    assert subject.failures == []
    assert dict(subject.store.state.feature_levels) == {GROUP_CONFIGS: 1}
    scene = JoiningScene()
    scene.etcd.transact([], [Put(b"/demo/features/tarry.group.configs", b"[1,")])
    with pytest.raises(JoinRefused, match=r"group.configs in etcd cannot be read"):
        scene.join(scene.broker(1))


def test_a_life_waits_whose_broker_does_not_know_a_level_that_came_meanwhile() -> None:
    scene = LifeScene()
    key = Keys("/test/").feature("tarry.wonders")
    scene.etcd.transact([], [Put(key, encode_row(FeatureRow(ROW_FORMAT, 1)))])
    broker = scene.start(1)

    scene.run(lambda: "tarry.wonders" in broker.life.obstacle)
    scene.pass_ms(10_000)
    waited = (broker.life.has_lived, scene.etcd.rows(Keys("/test/").broker(1)))
    scene.etcd._remove([key])
    scene.run(lambda: broker.life.is_alive)

    assert waited == (False, [])


def test_no_broker_registers_if_a_level_came_that_it_has_not_heard_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = LifeScene()
    key = Keys("/test/").feature("tarry.wonders")
    broker = scene.start(1)
    written: list[bool] = []

    def just_before(operations: list[Operation]) -> int:
        """Let the level come when the registration is on its way already."""
        if not written:
            row = encode_row(FeatureRow(ROW_FORMAT, 1))
            written.append(scene.etcd.transact([], [Put(key, row)])[0])
        return 0

    broker.door.lateness = just_before
    scene.pass_ms(10_000)

    assert written == [True]
    assert not broker.life.has_lived
    assert caplog.text.count("does not live in the cluster: the metadata use tarry.wonders") == 1
    assert scene.etcd.rows(Keys("/test/").broker(1)) == []


def test_a_life_ends_whose_registration_was_taken_before_a_level_that_it_does_not_know() -> None:
    scene = LifeScene()
    keys = Keys("/test/")
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    level = Put(keys.feature("tarry.wonders"), encode_row(FeatureRow(ROW_FORMAT, 1)))
    scene.etcd._remove([keys.broker(1)])
    scene.etcd.transact([], [level])

    scene.run(lambda: not broker.life.is_alive)
    scene.run(lambda: scene.stored_lives() == [])
    scene.pass_ms(10_000)
    waited = (broker.life.is_alive, scene.etcd.rows(keys.broker(1)))
    obstacle = broker.life.obstacle
    scene.etcd._remove([level.key])
    scene.run(lambda: broker.life.is_alive)

    assert waited == (False, [])
    assert "tarry.wonders" in obstacle


# -- Two that decide at once


def test_a_level_is_not_written_if_a_broker_has_registered_since() -> None:
    subject = EtcdSubject()
    keys = subject.keys
    known = KnownRows(keys)
    known.apply(subject.etcd.rows(keys.prefix))
    transaction = Transaction(known)
    transaction.add(FeatureLevelChanged(name=GROUP_CONFIGS, level=1))
    older = Put(keys.broker(2), encode_row(BrokerRow(ROW_FORMAT, "", "", {}, "1.0")))
    subject.etcd.transact([], [older])

    is_done, _ = subject.etcd.transact(transaction.compares, transaction.operations)

    assert not is_done


def test_a_level_is_not_lowered_if_something_rests_on_it_since() -> None:
    subject = EtcdSubject()
    subject.change(FeatureLevelChanged(name=GROUP_CONFIGS, level=1))
    subject.settle()
    lowering, using = (transaction_of(subject, record) for record in LOWER_AND_USE)

    used = subject.etcd.transact(using.compares, using.operations)[0]
    lowered = subject.etcd.transact(lowering.compares, lowering.operations)[0]

    assert (used, lowered) == (True, False)


def test_nothing_new_is_written_if_the_level_was_lowered_since() -> None:
    subject = EtcdSubject()
    subject.change(FeatureLevelChanged(name=GROUP_CONFIGS, level=1))
    subject.settle()
    lowering, using = (transaction_of(subject, record) for record in LOWER_AND_USE)

    lowered = subject.etcd.transact(lowering.compares, lowering.operations)[0]
    used = subject.etcd.transact(using.compares, using.operations)[0]

    assert (lowered, used) == (True, False)


LOWER_AND_USE = (
    FeatureLevelChanged(name=GROUP_CONFIGS, level=0),
    GroupConfigChanged(group_id="g", configs={"k": "1"}),
)


def transaction_of(subject: EtcdSubject, record: MetadataRecord) -> Transaction:
    known = KnownRows(subject.keys)
    known.apply(subject.etcd.rows(subject.keys.prefix))
    transaction = Transaction(known)
    transaction.add(record)
    return transaction


# -- One broker with a store of its own


def test_a_snapshot_has_levels_and_settings_of_groups() -> None:
    state = ClusterState()
    state.apply(FeatureLevelChanged(name=GROUP_CONFIGS, level=1))
    state.apply(GroupConfigChanged(group_id="g", configs={"k": "1"}))
    again = ClusterState()
    for record in state.snapshot():
        again.apply(record)

    assert again.feature_levels == {GROUP_CONFIGS: 1}
    assert again.group_configs == {"g": {"k": "1"}}


def reopen(subject: EmbeddedSubject, release: Release) -> None:
    subject.disk.crash()
    logs = Logs(subject.disk)
    logs.load()
    open_store(logs, broker_id=1, random=subject.random, turn=Turn(0, 0), release=release)


@pytest.mark.parametrize("snapshot_bytes_min", [1, 1 << 20])
def test_the_store_of_one_broker_refuses_a_release_that_does_not_know_a_level(
    snapshot_bytes_min: int,
) -> None:
    subject = EmbeddedSubject(snapshot_bytes_min)
    subject.change(FeatureLevelChanged(name=GROUP_CONFIGS, level=1))
    subject.settle()

    with pytest.raises(NewerFormat, match="start a newer release, or have one lower"):
        reopen(subject, OLDER)
    reopen(subject, NEWER)


def test_a_lowered_level_lets_an_older_release_start() -> None:
    subject = EmbeddedSubject()
    for level in (1, 0):
        subject.change(FeatureLevelChanged(name=GROUP_CONFIGS, level=level))
        subject.settle()

    reopen(subject, OLDER)


def test_a_stopped_brokers_metadata_are_refused_with_a_level_that_is_not_known() -> None:
    subject = EmbeddedSubject()
    subject.change(FeatureLevelChanged(name="tarry.wonders", level=1))
    subject.settle()

    with pytest.raises(NewerFormat, match=r"tarry\.wonders"):
        read_stored_state(subject.disk)


# -- Scheduled records


def delayed_topic(state: ClusterState, release: Release) -> TopicDecision:
    """Decide about a new topic whose records may wait."""
    wanted = TopicWanted(
        "later", 1, 1, configs=[("delay.enable", "true"), ("delay.source", "timestamp")]
    )
    settings = Settings({"node.id": "1"})
    return decide_create_topics(state, [wanted], settings, TopicIds(Random(1)), release=release)


def test_a_topic_whose_records_may_wait_is_refused_while_a_release_cannot_replicate_them() -> None:
    (outcome,) = delayed_topic(cluster(NEWER, OLDER), NEWER).outcomes

    assert outcome.error_code == errors.UNSUPPORTED_VERSION
    assert "broker 2 (Tarry 1.0) does not know it" in str(outcome.message)


def test_the_first_topic_whose_records_may_wait_brings_its_level_into_force() -> None:
    state = cluster(NEWER)
    state.apply(LifeChanged(broker_id=1, broker_epoch=7, phase="serving"))

    decision = delayed_topic(state, NEWER)

    begun = FeatureLevelChanged(name=SCHEDULED_RECORDS, level=1)
    assert [each for each in decision.records if isinstance(each, FeatureLevelChanged)] == [begun]


def test_no_transaction_writes_such_a_topic_when_its_level_has_changed_meanwhile() -> None:
    known = KnownRows(Keys("/a/"))
    for configs, is_guarded in (({"delay.enable": "true"}, True), ({}, False)):
        transaction = Transaction(known)
        transaction.add(
            TopicCreated(
                topic_id=bytes(15) + b"1",
                name="later",
                partitions=[],
                configs=configs,
            )
        )

        key = known.keys.feature(SCHEDULED_RECORDS)
        assert any(each.key == key for each in transaction.compares) == is_guarded
