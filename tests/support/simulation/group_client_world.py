"""Real client cores around a real broker core, in simulated time: one seed, one run.

Members poll, work and commit as a user of the synchronous consumer does; connections are slow or
cut, processes stop, die without a word and come back, a bit of an answer turns over, the broker
loses power.  The faults end before the run does.  What was handed out to whom is written down, and
judged by `offences`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from tarry.base import doors
from tarry.base.doors import connected, connected_to, disconnected, received
from tarry.client.core.consumer.handed_out import RecordGroup
from tarry.client.core.group.assignment.consumer_protocol import Place
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.group.events import GroupEvent
from tarry.client.core.group.poll import Poll
from tarry.client.core.operation import Callback, Done
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import ClientError
from tarry.link.events import Close, Connect, LinkEvent, Resolve, Resolved, Send
from tarry.protocol import api_keys
from tarry.protocol.headers import decode_request_header
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.protocol.registry import MESSAGES
from tarry.records.batch import (
    CRC,
    HEADER_SIZE,
    LENGTH,
    LENGTH_OVERHEAD,
    MAGIC,
    decode_batch_header,
    has_valid_crc,
)
from tarry.records.builder import BatchBuilder
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.reader import Reader, window_of

TOPIC = "t"
PARTITIONS = 4
RUN_MS = 90_000
FAULTS_MS = 45_000
WRITES_MS = 60_000
POLL_MS = 10_000

# One version of the API that takes topics by name.
PRODUCE_VERSION = 9
CREATE_VERSION = 5

BROKER = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
}


class HandedOut(NamedTuple):
    now_ms: int
    member: str
    place: Place
    first: int
    last: int


class Told(NamedTuple):
    now_ms: int
    member: str
    kind: int
    places: list[Place]
    # Where the group stood when it was told.
    committed: dict[Place, int]


class World:
    """`run` to the end of the seed."""

    def __init__(self, seed: int, member_type: type[Member] | None = None) -> None:
        self.random = Random(seed)
        self.hand: BrokerByHand | None = BrokerByHand(BROKER, seed)
        self.now_ms = self.hand.now_ms
        self.began_ms = self.now_ms
        self.links: dict[int, Link] = {}
        self.members: dict[str, Member] = {}
        self.member_type = member_type or Member
        self.told: list[Told] = []
        self.handed_out: list[HandedOut] = []
        self.committed: dict[Place, int] = {}
        self.strange_commits: list[str] = []
        self.written = dict.fromkeys([(TOPIC, index) for index in range(PARTITIONS)], 0)
        self.assignor = self.random.choice(["range", "roundrobin", "cooperative-sticky"])
        self.work_ms_max = self.random.choice([20, 500, 9_000])
        # Answers to fetches that are still to be damaged, and that were.
        self._damages_due = 0
        self.damages = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._broker_due_ms = -1
        self._connection_ids = itertools.count(1_000)
        self._names = itertools.count(1)

    # --- Time

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_ms + delay_ms, next(self._order), action))

    def run(self) -> None:
        self._make_topic()
        for _ in range(self.random.randrange(1, 4)):
            self.later(self.random.randrange(2_000), self.add_member)
        for at_ms in range(0, WRITES_MS, 1_000):
            self.later(at_ms, self._write)
        for _ in range(self.random.randrange(3, 10)):
            self.later(self.random.randrange(FAULTS_MS), self._go_wrong)
        # The next answer with records is damaged then.
        for at_ms in range(5_000, FAULTS_MS, 8_000):
            self.later(at_ms, self._damage_an_answer)
        self._wake_broker()
        end_ms = self.began_ms + RUN_MS
        while self._due and self._due[0][0] <= end_ms:
            self.now_ms, _, action = heapq.heappop(self._due)
            action()

    # --- The broker

    def turn_broker(self, *events: doors.Event) -> None:
        hand = self.hand
        if hand is None:
            return
        hand.turn(*events, after_ms=self.now_ms - hand.now_ms)
        hand.settle()
        for broker_id, data in list(hand.transport.sent.items()):
            link = self.links.get(broker_id)
            if link is not None and data:
                link.to_client(received(link.client_id, self._maybe_damaged(data)))
            hand.transport.sent[broker_id] = b""
        for broker_id in list(hand.transport.closed):
            link = self.links.get(broker_id)
            if link is not None:
                link.cut("the broker closed the connection")
        self._wake_broker()

    def _wake_broker(self) -> None:
        """A turn when the broker has something due."""
        if self.hand is None:
            return
        due_ms = max(self.hand.broker.next_due_ms(), self.now_ms + 1)
        if self._broker_due_ms <= self.now_ms or due_ms < self._broker_due_ms:
            self._broker_due_ms = due_ms
            self.later(due_ms - self.now_ms, self._turn_if_due)

    def _turn_if_due(self) -> None:
        if self.now_ms >= self._broker_due_ms:
            self.turn_broker()

    def _maybe_damaged(self, data: bytes) -> bytes:
        """What was sent, with a bit of a record batch turned over if that is due."""
        if not self._damages_due or (found := batch_in(data)) is None:
            return data
        self._damages_due -= 1
        self.damages += 1
        start, end = found
        position = start + CRC + self.random.randrange(end - start - CRC)
        damaged = bytearray(data)
        damaged[position] ^= 1
        return bytes(damaged)

    def _make_topic(self) -> None:
        assert self.hand is not None
        request = CreateTopicsRequest([CreatableTopic(TOPIC, PARTITIONS, 1)], 1_000)
        self.hand.connect().ask(api_keys.CREATE_TOPICS, CREATE_VERSION, request)

    def _write(self) -> None:
        """A record in each partition; what is acknowledged has to be read."""
        if self.hand is None:
            return
        data = []
        for index in range(PARTITIONS):
            builder = BatchBuilder()
            builder.append(1_800_000_000_000, None, b"x", None)
            data.append(PartitionProduceData(index, window_of(builder.build(0))))
        request = ProduceRequest(None, -1, 1_000, [TopicProduceData(TOPIC, partition_data=data)])
        self.hand.turn(after_ms=self.now_ms - self.hand.now_ms)
        answer: Any = self.hand.connect().ask(api_keys.PRODUCE, PRODUCE_VERSION, request)
        for one in answer.responses[0].partition_responses:
            if one.error_code == 0:
                self.written[TOPIC, int(one.index)] = int(one.base_offset) + 1
        self.turn_broker()

    # --- Members

    def add_member(self, instance_id: str = "") -> None:
        name = f"m{next(self._names)}"
        is_static = self.random.randrange(4) == 0
        instance_id = instance_id or (f"i-{name}" if is_static else "")
        self.members[name] = self.member_type(self, name, instance_id)
        self.members[name].wake()

    def connect(self, member: Member, client_id: int) -> None:
        if self.hand is None:
            member.hear_later(1, disconnected(client_id, "connection refused"))
            return
        broker_id = next(self._connection_ids)
        link = Link(self, member, client_id, broker_id)
        self.links[broker_id] = link
        member.links[client_id] = link
        link.to_broker(connected(broker_id, "PLAINTEXT", "10.0.0.1:1"))
        link.to_client(connected_to(client_id, ""))

    # --- Faults

    def _go_wrong(self) -> None:
        names = [name for name, member in self.members.items() if not member.is_dead]
        fault = self.random.choice(["cut", "stop", "die", "slow", "power", "come", "leave"])
        member = self.members[self.random.choice(names)] if names else None
        if fault == "power":
            self._lose_power()
        elif fault == "come" or member is None:
            self.add_member()
        elif fault == "cut":
            for link in list(member.links.values()):
                link.cut("connection reset by peer")
        elif fault == "stop":
            member.stopped_until_ms = self.now_ms + self.random.randrange(500, 15_000)
            self.later(member.stopped_until_ms - self.now_ms, member.wake)
        elif fault == "slow":
            member.latency_ms = self.random.randrange(50, 1_500)
            self.later(5_000, member.hurry)
        elif fault == "die":
            member.die()
            # A static one comes back under its name.
            self.later(self.random.randrange(3_000), lambda: self.add_member(member.instance_id))
        elif len(names) > 1:
            member.leave()

    def _damage_an_answer(self) -> None:
        self._damages_due = 1

    def _lose_power(self) -> None:
        if self.hand is None:
            return
        hand, self.hand = self.hand, None
        for link in list(self.links.values()):
            link.cut("connection reset by peer")
        hand.disk.crash()

        def start() -> None:
            hand.now_wall_ms += self.now_ms - hand.now_ms
            hand.now_ms = self.now_ms
            hand.start()
            self.hand = hand
            self._broker_due_ms = -1
            self._wake_broker()

        self.later(self.random.randrange(100, 4_000), start)


def batch_in(data: bytes) -> tuple[int, int] | None:
    """Where the first record batch in some bytes begins and ends."""
    for start in range(len(data) - HEADER_SIZE):
        size = LENGTH_OVERHEAD + int.from_bytes(data[start + LENGTH : start + LENGTH + 4], "big")
        if data[start + MAGIC] != 2 or not HEADER_SIZE < size <= len(data) - start:
            continue
        if has_valid_crc(data, start, decode_batch_header(data, start)):
            return start, start + size
    return None


class Link:
    """One connection between a member and the broker, each way in order."""

    def __init__(self, world: World, member: Member, client_id: int, broker_id: int) -> None:
        self.world = world
        self.member = member
        self.client_id = client_id
        self.broker_id = broker_id
        self.is_cut = False
        self._heard_ms = {True: 0, False: 0}

    def _delay_ms(self, *, is_up: bool) -> int:
        world = self.world
        due_ms = world.now_ms + world.random.randrange(1, 4) + self.member.latency_ms
        self._heard_ms[is_up] = max(self._heard_ms[is_up], due_ms)
        return self._heard_ms[is_up] - world.now_ms

    def to_broker(self, event: doors.Event) -> None:
        def deliver() -> None:
            if not self.is_cut:
                self.world.turn_broker(event)

        self.world.later(self._delay_ms(is_up=True), deliver)

    def to_client(self, event: LinkEvent) -> None:
        def deliver() -> None:
            if not self.is_cut:
                self.member.hear(event)

        self.world.later(self._delay_ms(is_up=False), deliver)

    def cut(self, reason: str) -> None:
        """Both ends hear of it; what was on its way is lost."""
        if self.is_cut:
            return
        self.is_cut = True
        self.world.links.pop(self.broker_id, None)
        self.member.links.pop(self.client_id, None)
        self.member.hear_later(1, disconnected(self.client_id, reason))
        self.close_at_broker()

    def close_at_broker(self) -> None:
        self.is_cut = True
        self.world.links.pop(self.broker_id, None)
        event = disconnected(self.broker_id, "")
        self.world.later(1, lambda: self.world.turn_broker(event))


class Member:
    """A consumer and its user: polls, works for a while, polls again."""

    def __init__(self, world: World, name: str, instance_id: str) -> None:
        self.world = world
        self.name = name
        self.instance_id = instance_id
        self.links: dict[int, Link] = {}
        self.latency_ms = 0
        self.is_dead = False
        self.stopped_until_ms = 0
        self.core = self.make_core()
        self.core.subscribe([TOPIC])
        self._heard: list[LinkEvent] = []
        self._busy_until_ms = 0
        self._poll: Poll | None = None
        self._is_closed = False
        self._due_ms = -1
        self._kept_ms = -1

    def make_core(self) -> GroupConsumerCore:
        settings: dict[str, Any] = {
            "bootstrap.servers": "localhost:9092",
            "group.id": "g",
            "client.id": self.name,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": self.world.assignor,
            "session.timeout.ms": 4_000,
            "heartbeat.interval.ms": 1_000,
            "auto.commit.interval.ms": 700,
            "request.timeout.ms": 5_000,
            "metadata.max.age.ms": 20_000,
        }
        if self.instance_id:
            settings["group.instance.id"] = self.instance_id
        made = ConsumerSettings(settings)
        return GroupConsumerCore(made, self.world.random, self.world.now_ms)

    # --- What comes to it

    def hear_later(self, delay_ms: int, event: LinkEvent) -> None:
        self.world.later(delay_ms, lambda: self.hear(event))

    def hear(self, event: LinkEvent) -> None:
        self._heard.append(event)
        self.wake()

    def hurry(self) -> None:
        self.latency_ms = 0

    def wake(self) -> None:
        now_ms = self.world.now_ms
        if self.is_dead or now_ms < self.stopped_until_ms:
            return
        is_working = now_ms < self._busy_until_ms
        due_ms = self.core.keeper_due_ms
        if not is_working or (due_ms is not None and due_ms <= now_ms):
            self._turn()
        if not is_working and not self._is_closed:
            self._use()
        self._wake_keeper()

    def _wake_keeper(self) -> None:
        """While the user works, only what the keeper is there for brings a turn about."""
        due_ms = self.core.keeper_due_ms
        if due_ms is not None and due_ms > self.world.now_ms != self._kept_ms:
            self._kept_ms = self.world.now_ms
            self.world.later(due_ms - self.world.now_ms, self.wake)

    def _turn(self) -> None:
        world = self.world
        events, self._heard = self._heard, []
        self._perform(self.core.turn(events, world.now_ms, world.now_ms))
        due_ms = self.core.next_due_ms()
        if due_ms is not None and (self._due_ms <= world.now_ms or due_ms < self._due_ms):
            self._due_ms = max(due_ms, world.now_ms + 1)
            world.later(self._due_ms - world.now_ms, self._wake_if_due)

    def _wake_if_due(self) -> None:
        if self.world.now_ms >= self._due_ms:
            self.wake()

    def _perform(self, outputs: list[Any]) -> None:
        for output in outputs:
            if isinstance(output, Resolve):
                self.hear_later(1, Resolved(output.connection_id, [output.address]))
            elif isinstance(output, Connect):
                self.world.connect(self, output.connection_id)
            elif isinstance(output, Send):
                self._look_at(output.data)
                link = self.links.get(output.connection_id)
                if link is not None:
                    link.to_broker(received(link.broker_id, output.data))
            elif isinstance(output, Close):
                link = self.links.pop(output.connection_id, None)
                if link is not None:
                    link.close_at_broker()

    def _look_at(self, frame: bytes) -> None:
        """A commit is never for a partition that is not owned."""
        reader = Reader(frame, 4)
        header = decode_request_header(reader)
        if header.api_key != api_keys.OFFSET_COMMIT:
            return
        request: Any = MESSAGES[header.api_key].decode_request(reader, header.api_version)
        for topic in request.topics:
            for one in topic.partitions:
                place = (topic.name, int(one.partition_index))
                if place not in self.core.membership.owned:
                    self.world.strange_commits.append(f"{self.name} commits {place}, not its own")

    # --- Its user

    def _use(self) -> None:
        """What a poll does, as far as it goes now."""
        core, world = self.core, self.world
        if self._poll is None:
            self._poll = core.begin_poll(50, POLL_MS, world.now_ms)
        try:
            while True:
                step = self._poll.step(world.now_ms)
                if not isinstance(step, Callback):
                    break
                self._hear(step.event)
                self._poll.end_callback(world.now_ms)
        except ClientError:
            self._end_poll()
        else:
            if isinstance(step, Done):
                self._end_poll()
                self._work_on(step.answer)
        self._turn()

    def _end_poll(self) -> None:
        assert self._poll is not None
        self._poll.end(self.world.now_ms)
        self._poll = None
        core, world = self.core, self.world
        for place, offset in core.committer.committed.items():
            if place in core.membership.owned:
                world.committed[place] = max(offset, world.committed.get(place, 0))

    def _hear(self, event: GroupEvent) -> None:
        world = self.world
        committed = dict(world.committed)
        world.told.append(Told(world.now_ms, self.name, event.kind, event.places, committed))

    def _work_on(self, groups: list[RecordGroup]) -> None:
        world = self.world
        for group in groups:
            first, last = group.records[0].offset, group.records[-1].offset
            place = (group.topic, group.partition)
            world.handed_out.append(HandedOut(world.now_ms, self.name, place, first, last))
        self._busy_until_ms = world.now_ms + world.random.randrange(1, world.work_ms_max)
        world.later(self._busy_until_ms - world.now_ms, self.wake)

    def die(self) -> None:
        """kill -9: the sockets close, the group hears nothing."""
        self.is_dead = True
        for link in list(self.links.values()):
            link.close_at_broker()

    def leave(self) -> None:
        """A close: a last commit, a leave, then nothing more."""
        core, world = self.core, self.world
        self._is_closed = True
        core.leave("the consumer was closed", world.now_ms, even_static=True)
        self._turn()
        world.later(1_000, self.die)
