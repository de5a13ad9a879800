"""Joining of a cluster: who makes it, who may not join it, and what is waited for."""

from __future__ import annotations

import pytest
from tests.support.cluster.joining_scene import JoiningBroker, JoiningScene

from tarry.base.errors import CorruptData, InvalidSetting
from tarry.base.etcd import Put
from tarry.base.ids import id_text
from tarry.cluster.etcd.joining import JoinRefused, check_release
from tarry.cluster.lives.identity import FILE, read_identity, refuse_members_directory
from tarry.cluster.rows.rows import BrokerRow, decode_row
from tarry.cluster.store.embedded import METADATA_DIRECTORY


@pytest.fixture
def scene() -> JoiningScene:
    return JoiningScene()


def cluster_ids(*brokers: JoiningBroker) -> list[str]:
    return [broker.joining.store.state.cluster_id for broker in brokers]


def test_brokers_that_come_at_once_make_one_cluster(scene: JoiningScene) -> None:
    brokers = [scene.broker(broker_id) for broker_id in (1, 2, 3)]
    scene.join(*brokers)

    assert len(set(cluster_ids(*brokers))) == 1
    assert all(len(found) == 22 for found in cluster_ids(*brokers))
    identities = [read_identity(broker.disk) for broker in brokers]
    assert [each.broker_id for each in identities if each is not None] == [1, 2, 3]
    assert len({each.directory_id for each in identities if each is not None}) == 3


def test_clusters_of_two_prefixes_know_nothing_of_each_other(scene: JoiningScene) -> None:
    one, other = scene.broker(1), scene.broker(1, prefix="other")
    scene.join(one, other)

    first, second = cluster_ids(one, other)
    assert first != second


def test_a_broker_finds_its_cluster_again(scene: JoiningScene) -> None:
    disk = scene.disk()
    first = scene.broker(1, disk)
    scene.join(first)
    first.register()
    disk.crash()
    again = scene.broker(1, disk)
    scene.join(again)

    assert cluster_ids(again) == cluster_ids(first)
    assert again.joining.store.state.brokers[1].endpoints == {"PLAINTEXT": ("127.0.0.1", 9091)}


def test_a_crash_while_the_directory_is_marked_is_harmless(scene: JoiningScene) -> None:
    disk = scene.disk()
    disk.open(f"{FILE}.new", create=True).append([b"half"])
    broker = scene.broker(1, disk)
    scene.join(broker)

    identity = read_identity(disk)
    assert identity is not None
    assert identity.broker_id == 1


def test_while_etcd_is_away_a_broker_waits_and_says_for_what(scene: JoiningScene) -> None:
    broker = scene.broker(1)
    broker.door.go_away()
    scene.run(lambda: broker.step() or scene.etcd.now_ms > 30_000)
    assert broker.joining.obstacle == "cannot be reached"
    assert not broker.joining.is_done

    broker.door.come_back()
    scene.join(broker)


def test_answers_that_are_lost_are_asked_for_again(scene: JoiningScene) -> None:
    broker = scene.broker(1)
    broker.door.lose_answers = 1
    scene.join(broker)
    other = scene.broker(2)
    other.door.lose_requests = 2
    scene.join(other)

    assert cluster_ids(other) == cluster_ids(broker)


def refusal_of(broker: JoiningBroker) -> str:
    with pytest.raises(JoinRefused) as refusal:
        broker.scene.join(broker)
    return str(refusal.value)


def test_a_directory_of_another_cluster_is_refused(scene: JoiningScene) -> None:
    disk = scene.disk()
    scene.join(scene.broker(1, disk), scene.broker(2, prefix="other"))

    sentence = refusal_of(scene.broker(1, disk, prefix="other"))

    assert "log.dirs belongs to cluster" in sentence
    assert "below /other/" in sentence


def test_an_etcd_that_refuses_the_reading_is_told_with_its_reason(scene: JoiningScene) -> None:
    broker = scene.broker(1)
    read = broker.door.begin_read

    def refuse(prefix: bytes) -> int:
        call_id = read(prefix)
        broker.door.cancel(call_id)
        return call_id

    broker.door.begin_read = refuse  # type: ignore[method-assign]

    def is_told() -> bool:
        broker.step()
        return broker.joining.obstacle == "the rows in etcd cannot be read: not answered in time"

    scene.run(is_told)
    broker.door.begin_read = read  # type: ignore[method-assign]
    scene.join(broker)


def test_a_directory_whose_cluster_is_gone_from_etcd_makes_no_new_one(scene: JoiningScene) -> None:
    disk = scene.disk()
    scene.join(scene.broker(1, disk))

    sentence = refusal_of(scene.broker(1, disk, prefix="empty"))

    assert "restore etcd" in sentence
    assert scene.etcd.rows(b"/empty/") == []


def test_a_directory_of_another_broker_is_refused(scene: JoiningScene) -> None:
    disk = scene.disk()
    scene.join(scene.broker(1, disk))

    assert "write node.id=1" in refusal_of(scene.broker(2, disk))


def registered_directory(scene: JoiningScene) -> str:
    (row,) = scene.etcd.rows(b"/demo/brokers/1")
    found = decode_row("brokers", row.key, row.value)
    assert isinstance(found, BrokerRow)
    return found.directory_id


def test_a_new_disk_under_an_id_that_lives_is_refused_after_a_while_and_not_marked(
    scene: JoiningScene,
) -> None:
    first = scene.broker(1)
    scene.join(first)
    first.register()
    second = scene.broker(1, scene.disk())
    began_ms = scene.etcd.now_ms

    def are_stepped() -> bool:
        first.live()
        second.step()
        return False

    with pytest.raises(JoinRefused, match="lives in the cluster already"):
        scene.run(are_stepped)
    # Longer than a lease that nobody renews.
    assert scene.etcd.now_ms - began_ms > 6_000
    assert read_identity(second.disk) is None


def test_a_new_disk_under_an_old_id_joins_when_the_old_lease_is_over(scene: JoiningScene) -> None:
    first = scene.broker(1)
    scene.join(first)
    first.register()
    old = registered_directory(scene)
    second = scene.broker(1, scene.disk())
    scene.join(second)

    assert second.joining.is_other_disk
    assert not first.joining.is_other_disk
    second.register()
    assert registered_directory(scene) == old

    identity = read_identity(second.disk)
    assert identity is not None
    assert second.joining.life is not None
    second.joining.life.register_disk()

    def is_registered() -> bool:
        second.live()
        return registered_directory(scene) == identity.directory_id

    scene.run(is_registered)


@pytest.mark.parametrize(
    "row", [b"[7]", b'[1,"orders",{},[[0,[[]],[]]]]'], ids=["topic", "partition"]
)
def test_a_new_disk_is_refused_while_it_cannot_leave_every_isr(
    scene: JoiningScene, row: bytes
) -> None:
    """A topic that cannot be read may have it in sync, and an empty log would count as whole."""
    first = scene.broker(1)
    scene.join(first)
    first.register()
    keys, topic_id = first.joining.keys, b"orders".ljust(16, b".")
    name = f'[1,"orders","{id_text(topic_id)}"]'.encode()
    puts = [Put(keys.name("orders"), name), Put(keys.topic(topic_id), row)]
    assert scene.etcd.transact([], puts)[0]

    with pytest.raises(JoinRefused, match=r"metadata check.*/topics/"):
        scene.join(scene.broker(1, scene.disk()))

    sound = b'[1,"orders",{},[[0,[[1]],[]]]]'
    assert scene.etcd.transact([], [Put(keys.topic(topic_id), sound)])[0]
    scene.join(scene.broker(1, scene.disk()))


def test_the_directory_of_a_broker_with_a_store_of_its_own_is_refused(scene: JoiningScene) -> None:
    disk = scene.disk()
    disk.make_directory(METADATA_DIRECTORY)

    assert "keeps its metadata itself" in refusal_of(scene.broker(1, disk))


def test_a_members_directory_is_refused_to_a_broker_with_a_store_of_its_own(
    scene: JoiningScene,
) -> None:
    disk = scene.disk()
    scene.join(scene.broker(7, disk))

    with pytest.raises(InvalidSetting, match=r"broker 7 of cluster .* name it in metadata\.store"):
        refuse_members_directory(disk)


def test_a_damaged_mark_of_a_directory_is_named(scene: JoiningScene) -> None:
    disk = scene.disk()
    disk.open(FILE, create=True).append([b"{"])

    with pytest.raises(CorruptData, match=r"\.tarry_cluster in log\.dirs cannot be read"):
        read_identity(disk)


@pytest.mark.parametrize("version", ["3.5.28", "3.5.100", "3.6.9", "3.6.16", "3.7.0", "4.0.0"])
def test_releases_that_keep_their_promises_are_taken(version: str) -> None:
    check_release(version)


@pytest.mark.parametrize("version", ["3.4.40", "3.5.27", "3.6.0", "3.6.8", "2.3.8", "", "devel"])
def test_releases_that_do_not_are_refused(version: str) -> None:
    with pytest.raises(JoinRefused, match=r"install 3\.6\.9 or newer"):
        check_release(version)
