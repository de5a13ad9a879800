"""Program: three brokers of Apache Kafka whose controller is frozen, under members that commit.

    python -m tests.support.cluster.frozen_controllers [SECONDS ...]

What `etcd_hardships --faults frozen` does to Tarry, for a comparison: a controller in a process of
its own is stopped by SIGSTOP for so many seconds, 20 by default, and woken.  A line each: the
longest commit, the longest time without one, and how many were refused.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import confluent_kafka.admin
from tests.support.broker_process import wait_until
from tests.support.cluster.client_load import PARTITIONS, LibrdkafkaTopic
from tests.support.cluster.etcd_hardships import (
    AWAY_S,
    HEARTBEAT_MS,
    MEMBERS,
    SESSION_MS,
    TOPIC,
    Commits,
    LoggedMember,
)
from tests.support.interop.group_members import Watch
from tests.support.interop.kafka_server import KafkaServer, free_port

CONTROLLER: Final = 9
BROKERS: Final = (1, 2, 3)


def nodes(directory: Path) -> dict[int, KafkaServer]:
    """A controller and three brokers, not started."""
    controller_port = free_port()
    common = {
        "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{controller_port}",
        "default.replication.factor": "3",
        "offsets.topic.replication.factor": "3",
        "min.insync.replicas": "2",
        # The brokers of `etcd_hardships` have the same settings.
        "broker.session.timeout.ms": "6000",
        "broker.heartbeat.interval.ms": "1500",
        "group.initial.rebalance.delay.ms": "0",
    }
    made: dict[int, KafkaServer] = {}
    for node_id in (CONTROLLER, *BROKERS):
        is_controller = node_id == CONTROLLER
        port = controller_port if is_controller else free_port()
        listener = "CONTROLLER" if is_controller else "PLAINTEXT"
        own = {
            "process.roles": "controller" if is_controller else "broker",
            "node.id": str(node_id),
            "listeners": f"{listener}://127.0.0.1:{port}",
            "advertised.listeners": f"{listener}://127.0.0.1:{port}",
        }
        made[node_id] = KafkaServer(
            directory / f"node-{node_id}", port, properties={**common, **own}
        )
    return made


def main() -> None:
    directory = Path(tempfile.mkdtemp(prefix="frozen-kafka-"))
    cluster = nodes(directory)
    members: list[LoggedMember] = []
    try:
        for node in cluster.values():
            node.start()
        addresses = ",".join(cluster[each].address for each in BROKERS)
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": addresses})
        wait_until(lambda: "yes" if len(admin.list_topics().brokers) == 3 else "", "brokers")
        wanted = confluent_kafka.admin.NewTopic(TOPIC, PARTITIONS, 3)
        admin.create_topics([wanted])[TOPIC].result(30)
        watch = Watch()
        words = [addresses, "group", TOPIC, "range", str(SESSION_MS), str(HEARTBEAT_MS)]
        for number in range(MEMBERS):
            log = directory / f"{number}.log"
            members.append(LoggedMember(f"member {number}", watch, "confluent-kafka", words, log))
        load = LibrdkafkaTopic(addresses)
        load.start()
        wait_for_all(members, time.monotonic_ns())
        frozen = cluster[CONTROLLER].process
        assert frozen is not None
        for seconds in [float(each) for each in sys.argv[1:]] or [20.0]:
            began_ns = time.monotonic_ns()
            frozen.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            frozen.send_signal(signal.SIGCONT)
            missing = wait_for_all(members, time.monotonic_ns())
            time.sleep(10)
            told = [Commits(each, began_ns) for each in members]
            sys.stdout.write(
                f"frozen {seconds:.0f} s: longest commit {max(e.longest_s for e in told):.1f} s, "
                f"without {max(e.longest_without_s for e in told):.1f} s, refused "
                f"{sum(e.refusals.total() for e in told)}, away {missing}\n"
            )
            sys.stdout.flush()
        load.is_over = True
    finally:
        for member in members:
            member.close()
        # The controller last: without it brokers wait for their end.
        for node in reversed(cluster.values()):
            node.stop()


def wait_for_all(members: list[LoggedMember], since_ns: int) -> list[str]:
    """Wait until each has committed since; the names of those that have not."""
    end = time.monotonic() + AWAY_S
    missing = [each.name for each in members]
    while missing and time.monotonic() < end:
        time.sleep(0.1)
        missing = [each.name for each in members if Commits(each, since_ns).last_ns == since_ns]
    return missing


if __name__ == "__main__":
    main()
