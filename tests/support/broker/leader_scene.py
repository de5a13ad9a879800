"""A broker of a cluster that leads, and followers made by hand: each fetch says what it has."""

from __future__ import annotations

from tests.support.broker.admin_user import Operator
from tests.support.broker.broker_user import a_batch
from tests.support.broker.stand_in_member import join
from tests.support.metadata_stores import GivenChange

from tarry.base.etcd import Removed, Row
from tarry.base.ids import id_text
from tarry.base.partition_row import PartitionRow
from tarry.broker.replication.start import begin_leading
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import ROW_FORMAT, Keys, LifeRow, encode_row
from tarry.cluster.state.records import (
    BrokerDescribed,
    ConfigChanged,
    LifeChanged,
    LifeEnded,
    MetadataRecord,
    PartitionChanged,
    TopicCreated,
)
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from tarry.simulation.by_hand import BrokerByHand, ClientByHand

LEADER, SECOND, THIRD = 1, 2, 3
SHARED = b"shared".ljust(16, b".")
# The lives of the three, as they begin.
LIVES = {LEADER: 11, SECOND: 12, THIRD: 13}
FETCH_VERSION = 17
# Of a broker whose lease is not over, by its own clock.
LEASE_MS = 60_000


def directory_of(broker_id: int) -> bytes:
    return broker_id.to_bytes(16, "big")


class LeaderScene:
    """The topic `shared` of one partition, unless a test says otherwise; broker 1 leads it."""

    def __init__(
        self,
        isr: tuple[int, ...] = (1, 2, 3),
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        partitions: int = 1,
        settings: dict[str, str] | None = None,
        **configs: str,
    ) -> None:
        self.operator = Operator(BrokerByHand(settings))
        self.hand = self.operator.hand
        broker = self.broker = self.hand.broker
        self.is_alive = True
        self.lease_ms = LEASE_MS
        self.known = KnownRows(Keys("/test/"))
        self.member = join(broker, LIVES[LEADER])
        begin_leading(broker, self.known, lambda: self.lease_ms if self.is_alive else 0)
        for broker_id, epoch in LIVES.items():
            self.live(broker_id, epoch)
        row = self.row = PartitionRow(LEADER, 0, LIVES[LEADER], 0, list(replicas), list(isr))
        settings_of_topic = {key.replace("_", "."): value for key, value in configs.items()}
        self.change(
            TopicCreated(
                topic_id=SHARED,
                name="shared",
                partitions=[row] * partitions,
                configs=settings_of_topic,
            )
        )
        self.links: dict[int, ClientByHand] = {}

    # --- What the others do.

    def change(self, *records: MetadataRecord) -> None:
        """Have the watch bring these."""
        self.broker.store.change(GivenChange(*records))
        self.hand.settle()

    def live(self, broker_id: int, epoch: int, phase: str = "serving") -> None:
        """Let a broker live in this epoch."""
        row = LifeRow(ROW_FORMAT, id_text(directory_of(broker_id)), 1, phase)
        key = self.known.keys.life(broker_id)
        self.known.apply([Removed(key, epoch)])
        self.known.apply([Row(key, encode_row(row), epoch, epoch)])
        described = BrokerDescribed(
            broker_id=broker_id,
            directory_id=id_text(directory_of(broker_id)),
            rack="",
            endpoints={"PLAINTEXT": (f"b{broker_id}", 9092)},
        )
        life = LifeChanged(broker_id=broker_id, broker_epoch=epoch, phase=phase)
        self.change(described, life)

    def die(self, broker_id: int) -> None:
        """Let a broker's life be over."""
        self.known.apply([Removed(self.known.keys.life(broker_id), 99)])
        self.change(LifeEnded(broker_id=broker_id))

    def bring_row(self, index: int = 0, **changed: object) -> None:
        """Have the watch bring another row of a partition."""
        before = self.broker.cluster.topics["shared"].partitions[index]
        fields = {name: getattr(before, name) for name in before.__struct_fields__}
        fields["partition_epoch"] = before.partition_epoch + 1
        fields.update(changed)
        self.change(PartitionChanged(topic_id=SHARED, index=index, row=PartitionRow(**fields)))

    def configure(self, **configs: str) -> None:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.change(ConfigChanged(topic_id=SHARED, configs=named))

    # --- The leader.

    def partition(self, index: int = 0) -> ReplicatedLog:
        found = self.broker.topics["shared"].replica(index)
        assert found is not None
        return found

    @property
    def high_watermark(self) -> int:
        return self.partition().high_watermark

    def isr(self, index: int = 0) -> list[int]:
        return self.broker.cluster.topics["shared"].partitions[index].isr

    def write(self, *values: bytes, index: int = 0) -> None:
        """Have a producer write records with acks=1, which the leader has on its disk then."""
        answer = self.operator.produce(
            a_batch(*(values or (b"v",))), topic="shared", acks=1, indexes=(index,)
        )
        assert answer.error_code == 0

    def pass_ms(self, ms: int) -> None:
        """Let time pass in steps that are no stall."""
        while ms > 0:
            step = min(ms, 500)
            self.hand.turn(after_ms=step)
            self.hand.settle()
            ms -= step

    # --- Fetches by hand.

    def link(self, broker_id: int) -> ClientByHand:
        if broker_id not in self.links:
            self.links[broker_id] = self.hand.connect()
        return self.links[broker_id]

    def request(
        self,
        broker_id: int,
        offsets: dict[int, int],
        *,
        broker_epoch: int | None = None,
        epoch: int = 0,
        last_epoch: int = -1,
        session: tuple[int, int] = (0, 0),
        wait_ms: int = 0,
        forgotten: tuple[int, ...] = (),
        log_start: int = 0,
        topic_id: bytes = SHARED,
        cluster_id: str | None = None,
        directory: bytes | None = None,
        bytes_max: int = 1 << 20,
    ) -> FetchRequest:
        if directory is None:
            directory = directory_of(broker_id)
        asked = [
            FetchPartition(
                index, epoch, offset, last_epoch, log_start, 1 << 20, replica_directory_id=directory
            )
            for index, offset in offsets.items()
        ]
        gone = [ForgottenTopic(topic_id=topic_id, partitions=list(forgotten))] if forgotten else []
        return FetchRequest(
            cluster_id=cluster_id,
            replica_state=ReplicaState(
                broker_id, LIVES[broker_id] if broker_epoch is None else broker_epoch
            ),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=bytes_max,
            session_id=session[0],
            session_epoch=session[1],
            topics=[FetchTopic(topic_id=topic_id, partitions=asked)] if asked else [],
            forgotten_topics_data=gone,
        )

    def fetch(self, broker_id: int, offsets: dict[int, int], **terms: object) -> FetchResponse:
        """A fetch that is answered at once."""
        request = self.request(broker_id, offsets, **terms)  # type: ignore[arg-type]
        answer = self.link(broker_id).ask(api_keys.FETCH, FETCH_VERSION, request)
        assert isinstance(answer, FetchResponse)
        return answer

    def send_fetch(self, broker_id: int, offsets: dict[int, int], **terms: object) -> None:
        request = self.request(broker_id, offsets, **terms)  # type: ignore[arg-type]
        self.link(broker_id).send(api_keys.FETCH, FETCH_VERSION, request)

    def answered(self, broker_id: int) -> list[FetchResponse]:
        found = self.link(broker_id).answers()
        assert all(isinstance(each, FetchResponse) for each in found)
        return [each for each in found if isinstance(each, FetchResponse)]

    def has(self, broker_id: int, offset: int, **terms: object) -> PartitionData:
        """Have a follower say that it has everything below an offset; its partition's answer."""
        answer = self.fetch(broker_id, {0: offset}, **terms)
        assert answer.error_code == 0
        return parts_of(answer)[0]

    def follows(self, broker_id: int, offset: int) -> None:
        """Have a follower say that it has everything below an offset, and ask on in its session:
        by that it is known to follow this leader now.
        """
        answer = self.fetch(broker_id, {0: offset})
        assert answer.error_code == 0
        answer = self.fetch(broker_id, {}, session=(answer.session_id, 1))
        assert answer.error_code == 0


def parts_of(answer: FetchResponse) -> dict[int, PartitionData]:
    """The answers by partition."""
    return {each.partition_index: each for topic in answer.responses for each in topic.partitions}
