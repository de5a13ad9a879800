"""A broker and `tarry metadata` over TLS, with a certificate, as a user of etcd."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.cluster.secured_etcd import SecuredEtcd
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, NewTopic, Producer

TARRY = Path(sys.executable).parent / "tarry"


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredEtcd]:
    made = SecuredEtcd(tmp_path_factory.mktemp("secured"), "/safe/")
    made.start()
    made.secure()
    yield made
    made.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    made = BrokerProcess(tmp_path)
    yield made
    made.close()


def words(etcd: SecuredEtcd) -> list[str]:
    return [
        *("--store", f"etcds://{etcd.address}/safe", "--ca", str(etcd.ca)),
        *("--cert", str(etcd.certificate), "--key", str(etcd.key)),
        *("--credentials", str(etcd.credentials)),
    ]


def settings(etcd: SecuredEtcd) -> dict[str, str]:
    return {
        "node.id": "1",
        "metadata.store": f"etcds://{etcd.address}/safe",
        "metadata.store.ssl.ca.location": str(etcd.ca),
        "metadata.store.ssl.certificate.location": str(etcd.certificate),
        "metadata.store.ssl.key.location": str(etcd.key),
        "metadata.store.credentials.location": str(etcd.credentials),
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }


def run(*given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TARRY, "metadata", *given],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )


def produce(broker: BrokerProcess, topic: str) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        assert [each.error for each in admin.create_topics([NewTopic(topic, 1)])] == [None]
    with Producer(bootstrap_servers=broker.address) as producer:
        producer.send(topic, b"x").result(PATIENCE_S)


def test_a_broker_is_moved_and_lives_there(etcd: SecuredEtcd, broker: BrokerProcess) -> None:
    broker.start({"node.id": "1"})
    produce(broker, "before")
    broker.stop_cleanly()
    moved = run("migrate", broker.texts["log.dirs"], *words(etcd))
    broker.start(settings(etcd))
    produce(broker, "after")
    # The link is lost, and with it the token.
    etcd.kill()
    etcd.start()
    produce(broker, "later")
    checked = run("check", *words(etcd))

    assert moved.returncode == 0, moved.stderr
    assert f"metadata.store.credentials.location={etcd.credentials}" in moved.stdout
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "3 with 3 partitions" in checked.stdout


def test_wrong_files_are_told_by_starts_that_wait(etcd: SecuredEtcd, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("tarry:guess")
    changes = {
        "its certificate is not accepted": {"metadata.store.ssl.ca.location": str(etcd.other_ca)},
        "authentication failed": {"metadata.store.credentials.location": str(wrong)},
        "permission denied": {"metadata.store": f"etcds://{etcd.address}/other"},
        "TLS": {"metadata.store.ssl.certificate.location": ""},
    }
    brokers: dict[str, BrokerProcess] = {}
    processes: list[subprocess.Popen[bytes]] = []
    for number, (reason, change) in enumerate(changes.items()):
        directory = tmp_path / str(number)
        directory.mkdir()
        brokers[reason] = broker = BrokerProcess(directory)
        texts = settings(etcd) | change
        if reason == "TLS":
            # Nothing is shown to an etcd that asks for a certificate.
            del texts["metadata.store.ssl.certificate.location"]
            del texts["metadata.store.ssl.key.location"]
        with broker.log_path.open("wb") as log:
            processes.append(subprocess.Popen(broker.command(texts), stderr=log, cwd=directory))
    try:
        told = {
            reason: broker.wait_for_log("waiting for etcd, the port is closed")
            for reason, broker in brokers.items()
        }
    finally:
        for process in processes:
            process.kill()
            process.wait(PATIENCE_S)

    assert {reason: reason in log for reason, log in told.items()} == dict.fromkeys(told, True), (
        told
    )
