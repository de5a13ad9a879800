"""A follower with its disk, and the leaders at the other ends of its links by hand.

The parts of a broker that following needs are real; a turn is taken as the broker takes it.
"""

from __future__ import annotations

from collections import deque
from random import Random

from msgspec.structs import replace
from tests.support.link.link_scene import Request
from tests.support.partition_scene import NOW_WALL_MS

from tarry.base import errors
from tarry.base.doors import Chunk, Event, connected_to, disconnected, received
from tarry.base.ids import id_text
from tarry.base.partition_row import PartitionRow
from tarry.base.probe import Probe
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.answers import Answers
from tarry.broker.duties.housekeeping import RecoveryPointRounds
from tarry.broker.duties.record_deletions import RecordDeletions
from tarry.broker.flushes import Flushes
from tarry.broker.kafka_connection import FrameHandler
from tarry.broker.part import Parts
from tarry.broker.peers.peers import Peers
from tarry.broker.replication.calendars import Calendars
from tarry.broker.replication.cuts import Cuts
from tarry.broker.replication.followed import Followed
from tarry.broker.replication.follower import ReplicaFollower
from tarry.broker.replication.placement import Placement
from tarry.cluster.state.records import BrokerDescribed, BrokerRegistered, LifeChanged, LifeEnded
from tarry.cluster.state.state import SERVING, ClusterState
from tarry.link.frames import FrameSplitter
from tarry.log.config import LogConfig
from tarry.log.logs import Logs
from tarry.partition.leadership import Leadership
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import ProducerListener, ReplicatedLog
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tarry.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tarry.records.builder import BatchBuilder
from tarry.simulation.disk import SimulatedDisk
from tarry.timer.wheel import TimingWheel
from tarry.wire.reader import window_of

OWN = 1
OWN_EPOCH = 11
LEADER = 2
LEADER_LIFE = 22
TOPIC_ID = bytes(15) + b"\7"


def a_copy(offset: int, *values: bytes, epoch: int = 0, producer_id: int = -1) -> bytes:
    """A batch as a leader has it at this offset, in this epoch."""
    builder = BatchBuilder()
    for value in values or (b"v",):
        builder.append(NOW_WALL_MS, b"k", value)
    if producer_id < 0:
        data = bytearray(builder.build(0))
    else:
        data = bytearray(
            builder.build(0, producer_id=producer_id, producer_epoch=0, base_sequence=offset)
        )
    data[0:8] = offset.to_bytes(8, "big")
    data[12:16] = epoch.to_bytes(4, "big")
    return bytes(data)


class HandTransport:
    """Transport whose peers are the test."""

    def __init__(self) -> None:
        self.last_id = 0
        self.events: list[Event] = []
        self.open: dict[int, tuple[str, int]] = {}
        self.splitters: dict[int, FrameSplitter] = {}
        self.requests: deque[Request] = deque()
        self.is_refusing = False
        # Bytes that no peer takes for now.
        self.unsent = 0
        self.connects = 0

    def connect(self, host: str, port: int) -> int:
        self.last_id += 1
        self.connects += 1
        if self.is_refusing:
            self.events.append(disconnected(self.last_id, "refused"))
            return self.last_id
        self.open[self.last_id] = (host, port)
        self.splitters[self.last_id] = FrameSplitter()
        self.events.append(connected_to(self.last_id, f"{host}:{port}"))
        return self.last_id

    def send(self, connection_id: int, chunks: list[Chunk]) -> int:
        for chunk in chunks:
            assert isinstance(chunk, bytes)
            for frame in self.splitters[connection_id].feed(chunk):
                self._on_request(Request(connection_id, frame))
        return self.unsent

    def _on_request(self, request: Request) -> None:
        if request.api_key == api_keys.API_VERSIONS:
            versions = [
                ApiVersion(key, api.version_min, api.version_max)
                for key, api in api_keys.APIS.items()
            ]
            self.answer(request, ApiVersionsResponse(0, versions))
        else:
            self.requests.append(request)

    def answer(self, request: Request, message: Message) -> None:
        self.events.append(received(request.connection_id, request.answer(message)))

    def close(self, connection_id: int) -> None:
        self.open.pop(connection_id, None)

    def lose(self, connection_id: int) -> None:
        """The other end is gone."""
        if self.open.pop(connection_id, None) is not None:
            self.events.append(disconnected(connection_id, "reset"))

    def pause_reading(self, connection_id: int) -> None: ...

    def resume_reading(self, connection_id: int) -> None: ...

    def stop_listening(self) -> None: ...


class FollowerScene:
    """Broker 1 follows; broker 2 and others lead."""

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        self.settings = Settings(
            {
                "node.id": str(OWN),
                "metadata.store": "etcd://etcd:2379/x",
                "listeners": "PLAINTEXT://127.0.0.1:9092",
                "connections.max.idle.ms": "-1",
                **(texts or {}),
            }
        )
        self.disk = SimulatedDisk(Random(5))
        self.turn_state = Turn(1_000, NOW_WALL_MS)
        self.transport = HandTransport()
        self.open()

    def open(self) -> None:
        """Begin a life of the process on what the disk holds."""
        turn = self.turn_state
        self.timer = TimingWheel(turn.now_ms)
        self.logs = Logs(self.disk)
        self.logs.load()
        self.flushes = Flushes(self.disk, self.logs.trouble, Probe())
        self.parts = Parts()
        self.deletions = self.parts.add(RecordDeletions(turn, self.timer, self.parts))
        self.rounds = RecoveryPointRounds(turn, self.logs, self.flushes, self.deletions)
        self.rounds_wanted = 0
        self.state = ClusterState()
        answers = Answers(turn, self.transport, self.timer, Probe(), self.settings)
        self.peers = Peers(
            self.settings,
            self.state,
            turn,
            self.timer,
            self.transport,
            Random(9),
            answers=answers,
            # It asks itself nothing.
            dispatch=FrameHandler(),
        )
        cuts = Cuts(turn, self.flushes, self._want_round, self._move_start)
        self.calendars = Calendars(turn)
        placement = Placement(
            self.settings,
            self.state,
            turn,
            self.flushes,
            self.peers,
            cuts,
            calendars=self.calendars,
        )
        self.follower = self.parts.add(ReplicaFollower(turn, self.flushes, placement))
        self.partitions: list[ReplicatedLog] = []
        self.rows: dict[ReplicatedLog, PartitionRow] = {}
        self.life(LEADER, LEADER_LIFE)
        self.life(OWN, OWN_EPOCH)

    def _want_round(self) -> None:
        self.rounds_wanted += 1

    def _move_start(self, partition: ReplicatedLog, offset: int) -> None:
        self.deletions.request(partition, offset)
        self._want_round()

    # -- rows and lives

    def life(self, broker_id: int, epoch: int, port: int = 0) -> None:
        """A broker lives in this epoch; -1: it does not."""
        if broker_id not in self.state.broker_ids:
            self.state.apply(BrokerRegistered(broker_id=broker_id))
        described = BrokerDescribed(
            broker_id=broker_id,
            directory_id=id_text(bytes([broker_id]) * 16),
            rack="",
            endpoints={"PLAINTEXT": (f"b{broker_id}", port or 9090 + broker_id)},
        )
        ended_or_begun = (
            LifeEnded(broker_id=broker_id)
            if epoch < 0
            else LifeChanged(broker_id=broker_id, broker_epoch=epoch, phase=SERVING)
        )
        for record in (described, ended_or_begun):
            self.state.apply(record)
            self.follower.placement.react(record)
            self.peers.on_applied(0, [record], None)

    def host(
        self, index: int, config: dict[str, str | int] | None = None, **fields: object
    ) -> ReplicatedLog:
        """Open a replica of `orders-<index>` and give it its role."""
        producers = ProducerStates(86_400_000)
        log = self.logs.open(
            f"orders-{index}", TOPIC_ID, LogConfig(config), ProducerListener(producers)
        )
        self.logs.settle()
        partition = ReplicatedLog(Leadership("orders", TOPIC_ID, index, OWN), log, producers)
        self.partitions.append(partition)
        self.role(partition, **fields)
        if log.high_watermark_hint >= 0:
            partition.follow_high_watermark(log.high_watermark_hint)
        return partition

    def role(self, partition: ReplicatedLog, **fields: object) -> None:
        """Have the partition's row say something else."""
        before = self.rows.get(partition)
        base = before or PartitionRow(LEADER, 0, LEADER_LIFE, 0, [OWN, LEADER], [OWN, LEADER])
        after = self.rows[partition] = replace(base, **fields)
        leadership = partition.leadership
        was_leader = leadership.is_leader
        leadership.take_row(after, after.leader_id == OWN)
        self.follower.placement.switch_role(leadership, before, was_leader)

    # -- turns

    def turn(self, ms: int = 1) -> None:
        """Take one turn, `ms` later, with whatever has happened until then."""
        turn = self.turn_state
        turn.now_ms += ms
        turn.now_wall_ms += ms
        events, self.transport.events = self.transport.events, []
        for event in events:
            self.peers.on_event(event)
        self.parts.step()
        self.flushes.write()
        self.parts.settle()
        self.flushes.maybe_begin()
        self.flushes.tell_moved(self.parts)
        self.parts.complete(1_000)
        for entry in self.timer.advance(turn.now_ms):
            entry.expire()

    def flush(self) -> None:
        """Let flushes that are under way end, and the follower hear of it."""
        for event in self.disk.complete_flushes():
            self.flushes.on_flushed(event.flush_id)
        self.flushes.tell_moved(self.parts)
        self.turn()

    def run(self, turns: int = 6) -> None:
        """Take turns with all that a broker does meanwhile, until everything is calm."""
        for _ in range(turns):
            if self.rounds_wanted:
                self.rounds_wanted = 0
                self.rounds.begin()
            self.turn()
            self.flush()

    def wait(self, ms: int) -> None:
        """Let time pass."""
        end_ms = self.turn_state.now_ms + ms
        while self.turn_state.now_ms < end_ms:
            self.turn(20)
            self.flush()

    # -- the leader

    def asked(self) -> FetchRequest:
        """The one fetch that is under way."""
        request = self._head(api_keys.FETCH)
        assert isinstance(request.message, FetchRequest)
        return request.message

    def _head(self, api_key: int) -> Request:
        for _ in range(10):
            if self.transport.requests:
                break
            self.turn()
        assert self.transport.requests, "nothing was asked"
        request = self.transport.requests[0]
        assert request.api_key == api_key
        return request

    def positions(self) -> dict[int, int]:
        """By index, from where the fetch that is under way asks."""
        return {each.partition: each.fetch_offset for each in self.asked_partitions()}

    def asked_partitions(self) -> list[FetchPartition]:
        return [each for topic in self.asked().topics for each in topic.partitions]

    def answer(
        self,
        *parts: PartitionData,
        session_id: int = 5,
        error_code: int = 0,
        calendar_ms: int = -1,
    ) -> None:
        """Answer the oldest fetch, and take the turn in which the answer comes."""
        request = self._head(api_keys.FETCH)
        self.transport.requests.popleft()
        topics = [FetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(parts))]
        self.transport.answer(
            request,
            FetchResponse(
                0, error_code, session_id, topics if parts else [], calendar_ms=calendar_ms
            ),
        )
        self.turn()

    def answer_start(
        self, index: int, offset: int, code: int = errors.NONE, epoch: int = 0
    ) -> ListOffsetsRequest:
        """Answer the question where the log of a partition begins, and in which leader epoch."""
        return self.answer_starts([ListOffsetsPartitionResponse(index, code, -1, offset, epoch)])

    def answer_starts(self, starts: list[ListOffsetsPartitionResponse]) -> ListOffsetsRequest:
        """Answer the question where the logs of some partitions begin."""
        request = self._head(api_keys.LIST_OFFSETS)
        self.transport.requests.popleft()
        self.transport.answer(
            request, ListOffsetsResponse(0, [ListOffsetsTopicResponse("orders", starts)])
        )
        self.turn()
        assert isinstance(request.message, ListOffsetsRequest)
        return request.message

    def open_again(self, ends: str) -> None:
        """End this broker by "stop" or "crash", and open its logs again."""
        if ends == "stop":
            self.logs.close_cleanly()
        else:
            self.disk.crash()
        self.transport.requests.clear()
        self.open()

    def state_of(self, partition: ReplicatedLog) -> str:
        return self.followed(partition).state

    def followed(self, partition: ReplicatedLog) -> Followed:
        return self.follower.placement.followed[partition]


def part(
    index: int,
    *batches: bytes,
    high_watermark: int = 0,
    log_start: int = 0,
    code: int = errors.NONE,
    diverging: tuple[int, int] | None = None,
) -> PartitionData:
    """What a leader answers about one partition."""
    return PartitionData(
        index,
        code,
        high_watermark,
        high_watermark,
        log_start,
        diverging_epoch=None if diverging is None else EpochEndOffset(*diverging),
        records=window_of(b"".join(batches)),
    )


def stored(partition: ReplicatedLog) -> bytes:
    """Return the bytes of all batches in the log of a partition."""
    log = partition.log
    if log.log_start_offset == log.written_end_offset:
        return b""
    region = log.read(log.log_start_offset, log.end_position(), 1 << 20, True)
    assert region is not None
    return region.file.read(region.position, region.size)
