"""Program: fresh clusters of three, started one after the other beside a load of processes.

    python -m tests.support.cluster.fresh_clusters [CLUSTERS] [--load N]

How long each takes until every broker serves, and until the first record with acks=all of a topic
of three replicas is acknowledged; both in s, a line a cluster.  N processes that do nothing but
count run beside.  The directory of one that took longer than 30 s stays.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from tests.support.cluster.broker_cluster import BrokerCluster

from tarry.client import Producer

SETTINGS: Final = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1500",
}
LATE_S: Final = 30.0


def start(directory: Path) -> tuple[float, float]:
    """Start a cluster, all brokers at once, and write a record; when both were done."""
    cluster = BrokerCluster(directory, SETTINGS)
    began = time.monotonic()
    try:
        cluster.etcd.start()
        threads = [
            threading.Thread(target=cluster.start_broker, args=[broker_id])
            for broker_id in cluster.brokers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        serving_s = time.monotonic() - began
        with Producer(bootstrap_servers=cluster.addresses, acks="all") as producer:
            producer.send("fresh", b"a").result(300)
        return serving_s, time.monotonic() - began
    finally:
        cluster.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("clusters", nargs="?", type=int, default=6)
    parser.add_argument("--load", type=int, default=20)
    words = parser.parse_args()
    counting = [sys.executable, "-c", "while True: pass"]
    load = [subprocess.Popen(counting) for _ in range(words.load)]
    try:
        for _ in range(words.clusters):
            directory = Path(tempfile.mkdtemp(prefix="fresh-"))
            serving_s, written_s = start(directory)
            is_late = written_s > LATE_S
            where = f"; see {directory}" if is_late else ""
            sys.stdout.write(f"serving {serving_s:.1f}, written {written_s:.1f}{where}\n")
            sys.stdout.flush()
            if not is_late:
                shutil.rmtree(directory)
    finally:
        for each in load:
            each.kill()
            each.wait()


if __name__ == "__main__":
    main()
