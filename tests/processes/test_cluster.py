"""Three real brokers that share their metadata in a real etcd: one cluster to every client.

A partition has one replica, so a client waits for the one broker that has it; what was
acknowledged is there when that broker is back.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.etcd_server import ROOT, free_ports, program
from tests.support.cluster.writer import Writer, take
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, Consumer, NewTopic, Producer


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    """A cluster whose brokers all serve; whoever kills one starts it again."""
    with BrokerCluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def create(cluster: BrokerCluster, name: str, partitions: int = 6) -> None:
    with Admin(bootstrap_servers=cluster.addresses) as admin:
        assert [each.error for each in admin.create_topics([NewTopic(name, partitions)])] == [None]


def leaders(cluster: BrokerCluster, asked: int, name: str) -> list[tuple[int, int]]:
    """Leader and leader epoch of each partition, as this broker tells; empty: no such topic."""
    with Admin(bootstrap_servers=cluster.brokers[asked].address) as admin:
        topic = admin.find_topics([name]).get(name)
        return (
            []
            if topic is None
            else [(p.leader_id, p.leader_epoch) for _, p in sorted(topic.partitions.items())]
        )


def _is_told(cluster: BrokerCluster, asked: int) -> str:
    return "yes" if leaders(cluster, asked, "spread") else ""


def test_every_broker_tells_of_the_same_cluster(cluster: BrokerCluster) -> None:
    create(cluster, "spread")
    for asked in cluster.brokers:
        cluster.wait_until_serving(asked, [1, 2, 3])
        wait_until(partial(_is_told, cluster, asked), "the topic")
        assert sorted({leader for leader, _ in leaders(cluster, asked, "spread")}) == [1, 2, 3]
    with Admin(bootstrap_servers=cluster.brokers[2].address) as admin:
        told = admin.describe_cluster()
    ports = {broker.broker_id: broker.address[1] for broker in told.brokers}
    assert ports == {number: broker.port for number, broker in cluster.brokers.items()}
    assert told.controller_id == 1


def test_records_written_through_one_broker_are_read_through_another(
    cluster: BrokerCluster,
) -> None:
    create(cluster, "through")
    with Producer(bootstrap_servers=cluster.brokers[1].address) as producer:
        for number in range(600):
            producer.send("through", b"%d" % number, partition=number % 6)
        producer.flush()
    with Consumer(
        bootstrap_servers=cluster.brokers[3].address, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([("through", index) for index in range(6)])
        found = sorted(int(value) for _, value in take(consumer, 600))

    assert found == list(range(600))


def test_groups_are_spread_and_keep_their_offsets(cluster: BrokerCluster) -> None:
    create(cluster, "grouped")
    with Producer(bootstrap_servers=cluster.addresses) as producer:
        for number in range(60):
            producer.send("grouped", b"%d" % number, partition=number % 6)
        producer.flush()
    for number in range(6):
        with Consumer(
            bootstrap_servers=cluster.brokers[number % 3 + 1].address,
            group_id=f"group-{number}",
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.subscribe(["grouped"])
            take(consumer, 60)
            consumer.commit()
    with Admin(bootstrap_servers=cluster.brokers[2].address) as admin:
        groups = admin.list_groups()
        assert {f"group-{number}" for number in range(6)} <= {each.group_id for each in groups}
        for number in range(6):
            offsets = admin.group_offsets([f"group-{number}"])[f"group-{number}"]
            assert isinstance(offsets, dict)
            assert sorted(each.offset for each in offsets.values()) == [10] * 6


def test_brokers_killed_in_turn_lose_double_and_reorder_nothing(cluster: BrokerCluster) -> None:
    create(cluster, "killed")
    writer = Writer(cluster.addresses, "killed")
    writer.start()
    for broker_id in cluster.brokers:
        writer.wait_for_more()
        cluster.brokers[broker_id].kill()
        cluster.start_broker(broker_id)
    writer.wait_for_more()
    for broker_id in cluster.brokers:
        writer.wait_for_more()
        cluster.brokers[broker_id].stop_cleanly()
        cluster.start_broker(broker_id)
    writer.wait_for_more()
    writer.end()

    count = sum(map(len, writer.written))
    found: list[list[bytes]] = [[] for _ in range(6)]
    with Consumer(bootstrap_servers=cluster.addresses, auto_offset_reset="earliest") as consumer:
        consumer.assign([("killed", index) for index in range(6)])
        for index, value in take(consumer, count):
            found[index].append(value)
    assert found == writer.written
    # Each life leads in an epoch of its own.
    assert all(epoch >= 2 for _, epoch in leaders(cluster, 1, "killed"))


def test_partitions_of_a_broker_that_is_away_have_no_leader(cluster: BrokerCluster) -> None:
    create(cluster, "away")
    cluster.brokers[3].stop()
    cluster.wait_until_serving(1, [1, 2])
    told = leaders(cluster, 2, "away")
    cluster.start_broker(3)
    cluster.wait_until_serving(1, [1, 2, 3])

    assert sorted({leader for leader, _ in told}) == [-1, 1, 2]
    assert sorted({leader for leader, _ in leaders(cluster, 1, "away")}) == [1, 2, 3]


def test_a_broker_that_slept_through_its_lease_serves_again_without_a_restart(
    cluster: BrokerCluster,
) -> None:
    create(cluster, "slept")
    sleeper = cluster.brokers[2]
    before = leaders(cluster, 1, "slept")
    sleeper.send_signal(signal.SIGSTOP)
    cluster.wait_until_serving(1, [1, 3])
    sleeper.send_signal(signal.SIGCONT)
    cluster.wait_until_serving(1, [1, 2, 3])
    after = leaders(cluster, 1, "slept")

    assert "counts as dead to the cluster" in sleeper.wait_for_log("begins another life")
    for (leader, old), (same, new) in zip(before, after, strict=True):
        assert leader == same
        assert new == (old + 1 if leader == 2 else old)


def test_while_etcd_is_away_records_go_on_and_changes_are_refused(cluster: BrokerCluster) -> None:
    create(cluster, "goes-on")
    # A leader that has not read of the topic yet can not while etcd is away.
    cluster.wait_until_known("goes-on")
    with cluster.etcd.away():
        with Producer(bootstrap_servers=cluster.addresses) as producer:
            for index in range(6):
                producer.send("goes-on", b"x", partition=index).result(PATIENCE_S)
        with Admin(bootstrap_servers=cluster.addresses) as admin:
            wanted = [NewTopic("not-made", 1)]
            outcome = admin.create_topics(wanted, outcomes=True, timeout=PATIENCE_S)[0]
    # All lives may end now, at once: a creation is asked for again until a broker serves.
    create(cluster, "made-again")
    for asked in cluster.brokers:
        cluster.wait_until_serving(asked, [1, 2, 3])

    assert outcome.error is not None
    assert "etcd does not answer" in str(outcome.error)


def test_a_start_while_etcd_is_away_waits_with_its_port_closed(
    cluster: BrokerCluster, tmp_path: Path
) -> None:
    cluster.brokers[3].stop()
    with cluster.etcd.away():
        starting = threading.Thread(target=lambda: cluster.start_broker(3))
        starting.start()
        cluster.brokers[3].wait_for_log("waiting for etcd, the port is closed")
        with socket.socket() as one, pytest.raises(ConnectionRefusedError):
            one.connect(("127.0.0.1", cluster.brokers[3].port))
    starting.join(PATIENCE_S)

    cluster.wait_until_serving(1, [1, 2, 3])


def test_a_deleted_topic_is_gone_everywhere_and_can_be_made_again(cluster: BrokerCluster) -> None:
    create(cluster, "deleted")
    with Admin(bootstrap_servers=cluster.addresses) as admin:
        assert [each.error for each in admin.delete_topics(["deleted"])] == [None]
    directories = [broker.directory / "data" for broker in cluster.brokers.values()]
    wait_until(
        lambda: "" if [path for data in directories for path in data.glob("deleted-*")] else "yes",
        "an end of the directories",
    )

    def remake() -> str:
        with Admin(bootstrap_servers=cluster.brokers[2].address) as admin:
            (made,) = admin.create_topics([NewTopic("deleted", 6)], outcomes=True)
            return "" if made.error else "yes"

    wait_until(remake, "the topic again")
    with Producer(bootstrap_servers=cluster.addresses) as producer:
        offsets = [producer.send("deleted", b"x", partition=n).result().offset for n in range(6)]
    assert offsets == [0] * 6


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (
            {"node.id": "1", "broker.session.timeout.ms": "2000"},
            "lives in the cluster already, with another log directory",
        ),
        ({"metadata.store": "etcd://{etcd}/other"}, ""),
        ({"metadata.store": "etcd://{etcd}"}, "names no prefix"),
    ],
    ids=["id-of-another", "another-prefix", "no-prefix"],
)
def test_who_may_not_join_is_told_why(
    cluster: BrokerCluster, tmp_path: Path, texts: dict[str, str], sentence: str
) -> None:
    stranger = BrokerProcess(tmp_path)
    given = {"node.id": "9", "metadata.store": f"etcd://{cluster.etcd.address}/test", **texts}
    given = {key: text.format(etcd=cluster.etcd.address) for key, text in given.items()}
    if sentence:
        with pytest.raises(AssertionError, match=sentence):
            stranger.start(given)
    else:
        # A cluster of its own, which the other one never hears of.
        stranger.start(given)
        stranger.stop()
    assert cluster.serving(1) == [1, 2, 3]


def test_a_members_directory_does_not_serve_alone(cluster: BrokerCluster) -> None:
    member = cluster.brokers[3]
    member.stop()
    alone = BrokerProcess(member.directory)
    with pytest.raises(AssertionError, match=r"name it in metadata\.store"):
        alone.start({"node.id": "3"})
    cluster.start_broker(3)
    cluster.wait_until_serving(1, [1, 2, 3])


def test_the_program_of_make_cluster_serves_until_it_is_ended(tmp_path: Path) -> None:
    port = free_ports(5)
    words = ["--etcd", program(), "--directory", str(tmp_path), "--port", str(port)]
    run = subprocess.Popen(
        [sys.executable, str(ROOT / "tools" / "cluster.py"), *words, "--etcd-port", str(port + 3)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    first = run.stdout.readline()
    with Producer(bootstrap_servers=f"127.0.0.1:{port + 2}") as producer:
        receipt = producer.send("orders", b"x").result(PATIENCE_S)
    run.terminate()

    assert f"127.0.0.1:{port}, 127.0.0.1:{port + 1}, 127.0.0.1:{port + 2}" in first
    assert receipt.offset == 0
    assert run.wait(PATIENCE_S) == 0
    run.stdout.close()
    for number in range(5):
        with socket.socket() as one, pytest.raises(ConnectionRefusedError):
            one.connect(("127.0.0.1", port + number))
