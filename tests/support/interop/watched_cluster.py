"""Three brokers whose clients come through recorders, and what a test does to a partition."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.interop.answer_recorder import AnswerRecorder, Told
from tests.support.raw_client import RawClient, one_batch

from tarry.base import errors
from tarry.client import Admin, NewTopic

# So long that nobody dies or lags by a machine that is busy; brokers are stopped, which ends their
# lives at once.
SETTINGS: Final = {
    "broker.session.timeout.ms": "60000",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.replication.factor": "3",
}
LAG_MS_MAX: Final = "60000"
# Partitions that this broker leads show what a replica that lags does.
IMPATIENT: Final = 2
IMPATIENT_LAG_MS_MAX: Final = "1000"


class WatchedCluster(BrokerCluster):
    """Brokers that tell clients the addresses of their recorders."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, SETTINGS, has_proxies=True)
        self.recorders: dict[int, AnswerRecorder] = {}
        for broker_id, broker in self.brokers.items():
            recorder = AnswerRecorder()
            recorder.broker_port = broker.port
            self.recorders[broker_id] = recorder
            own = broker.texts["advertised.listeners"]
            broker.texts["advertised.listeners"] = own.replace(
                f"PLAINTEXT://{broker.address}", f"PLAINTEXT://{recorder.address}"
            )
            lag = IMPATIENT_LAG_MS_MAX if broker_id == IMPATIENT else LAG_MS_MAX
            broker.texts["replica.lag.time.max.ms"] = lag

    @property
    def watched(self) -> str:
        """Where clients begin whose answers are of interest."""
        return ",".join(recorder.address for recorder in self.recorders.values())

    def was_told(self, client: str, api_key: int, error_code: int) -> list[Told]:
        """Every such answer to this client, by any broker."""
        return [
            told
            for recorder in self.recorders.values()
            for told in list(recorder.told)
            if told[:3] == (client, api_key, error_code)
        ]

    def wait_until_told(self, client: str, api_key: int, error_code: int) -> None:
        wait_until(
            lambda: "yes" if self.was_told(client, api_key, error_code) else "",
            f"{errors.error_name(error_code)} to {client}",
        )

    def wait_until_fetched_from(self, client: str, offset: int) -> None:
        """Wait until this client has everything below the offset."""
        wait_until(
            lambda: (
                "yes"
                if any(
                    recorder.fetched_from.get(client, -1) >= offset
                    for recorder in self.recorders.values()
                )
                else ""
            ),
            f"a fetch of {client} from offset {offset}",
        )

    def make_coordinators(self) -> None:
        """Have all brokers in it when the offsets of groups begin: librdkafka looks for them."""
        with Admin(bootstrap_servers=self.brokers[1].address) as admin:
            admin.group_offsets(["nobody"])
        self.wait_until_known("__consumer_offsets")

    # -- topics of one partition

    def create(self, name: str, replicas: list[int], **configs: str) -> None:
        """Make a topic whose first replica leads; keys of settings have underscores for dots."""
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        wanted = NewTopic(name, configs=settings, assignment=[replicas])
        with Admin(bootstrap_servers=self.brokers[1].address) as admin:
            assert [each.error for each in admin.create_topics([wanted])] == [None]
        for broker_id in self.brokers:
            self.wait_for_row(broker_id, name, replicas[0], replicas)

    def wait_for_row(self, asked: int, name: str, leader: int, isr: list[int]) -> None:
        """Wait until this broker tells this leader, and these and no others in sync."""

        def is_so() -> str:
            rows = self.topic(asked, name).partitions
            told = [(row.leader_id, sorted(row.isr)) for row in rows.values()]
            return "yes" if told == [(leader, sorted(isr))] else ""

        wait_until(is_so, f"{name} led by {leader} and in sync at {isr}, as {asked} tells")

    def prefer(self, asked: int, name: str, leader: int) -> None:
        """Have this broker be the first of the replicas; it need not lead yet."""
        row = self.topic(asked, name).partitions[0]
        order = [leader, *(each for each in row.replicas if each != leader)]
        place = (name, 0)
        with Admin(bootstrap_servers=self.brokers[asked].address) as admin:
            assert admin.alter_partition_reassignments({place: order}) == {place: None}
        wait_until(
            lambda: "yes" if self.topic(asked, name).partitions[0].replicas == order else "",
            f"replicas {order} of {name}",
        )

    def elect(self, asked: int, name: str, leader: int, *, unclean: bool = False) -> None:
        """Have the first replica lead, or any; as soon as it may."""
        place = (name, 0)

        def leads() -> str:
            with Admin(bootstrap_servers=self.brokers[asked].address) as admin:
                admin.elect_leaders([place], unclean=unclean, outcomes=True)
            return "yes" if self.topic(asked, name).partitions[0].leader_id == leader else ""

        wait_until(leads, f"{name} led by broker {leader}")

    def have_lead(self, asked: int, name: str, leader: int) -> None:
        """Have this broker lead, and every one that runs know it."""
        self.prefer(asked, name, leader)
        self.elect(asked, name, leader)
        for broker_id, broker in self.brokers.items():
            if broker.process is not None:
                wait_until(
                    lambda asked=broker_id: (  # type: ignore[misc]
                        "yes" if self.topic(asked, name).partitions[0].leader_id == leader else ""
                    ),
                    f"{name} led by broker {leader}, as {broker_id} tells",
                )

    def write(self, leader: int, name: str, *values: bytes) -> None:
        """Append records by one request with acks=all."""
        with RawClient(self.brokers[leader].port) as client:
            answer = client.produce(one_batch(*values), name)
        assert answer.error_code == errors.NONE, errors.error_name(answer.error_code)

    def log_bytes(self, broker_id: int, name: str) -> bytes:
        """What a broker has of the partition on its disk."""
        directory = self.brokers[broker_id].directory / "data" / f"{name}-0"
        return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))

    def close(self) -> None:
        super().close()
        for recorder in self.recorders.values():
            recorder.close()
