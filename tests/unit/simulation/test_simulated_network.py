"""What the simulated network promises: order inside a connection, and every way to lose one."""

from __future__ import annotations

import random

from tarry.base.doors import (
    CONNECTED,
    DISCONNECTED,
    DRAINED,
    RECEIVED,
    Event,
    FileRegion,
)
from tarry.records.batch import decode_batch_header, has_valid_crc
from tarry.records.builder import BatchBuilder
from tarry.simulation.clock import Agenda
from tarry.simulation.connection import ClientSocket
from tarry.simulation.disk import SimulatedDisk
from tarry.simulation.exchange import ObservedExchange
from tarry.simulation.network import SimulatedNetwork, SimulatedTransport


class RecordingPeer:
    def __init__(self) -> None:
        self.data = b""
        self.is_connected = False
        self.is_closed = False

    def on_connected(self) -> None:
        self.is_connected = True

    def on_received(self, data: bytes) -> None:
        self.data += data

    def on_closed(self) -> None:
        self.is_closed = True


class Setup:
    """One client connected to one broker."""

    def __init__(self, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.agenda = Agenda()
        self.clock = self.agenda.new_clock()
        self.network = SimulatedNetwork(self.clock, self.random)
        self.transport: SimulatedTransport = self.network.new_transport()
        self.network.is_accepting = True
        self.peer = RecordingPeer()
        self.socket: ClientSocket = self.network.connect(self.peer)
        self.events: list[Event] = []
        self.run()

    def run(self, duration_ms: int = 1_000) -> list[Event]:
        """Let the time pass; return what the broker was told meanwhile."""
        end_ms = self.clock.now_ms + duration_ms
        while (due_ms := self.agenda.next_due_ms()) is not None and due_ms <= end_ms:
            self.agenda.advance_to(due_ms)
            self.agenda.run_due()
        self.agenda.advance_to(end_ms)
        events = self.network.take_events()
        self.events += events
        return events

    def received(self) -> bytes:
        return b"".join(event.data for event in self.events if event.kind == RECEIVED)


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def test_a_connection_is_told_to_both_sides() -> None:
    setup = Setup()

    assert setup.peer.is_connected
    assert [event.kind for event in setup.events] == [CONNECTED]
    assert setup.events[0].listener == "PLAINTEXT"


def test_bytes_keep_their_order_however_they_are_cut_and_delayed() -> None:
    for seed in range(30):
        setup = Setup(seed)
        setup.network.conditions.pieces_per_mille = 1000
        setup.network.conditions.delay_ms_max = 50
        sent = b"".join(bytes([index]) * 20 for index in range(50))

        for index in range(50):
            setup.socket.send(bytes([index]) * 20)
        setup.run()

        assert setup.received() == sent


def test_a_cut_leaves_a_prefix_and_tells_both_sides() -> None:
    prefixes = set()
    for seed in range(30):
        setup = Setup(seed)
        setup.network.conditions.pieces_per_mille = 1000
        setup.socket.send(b"abcdefghij" * 10)
        setup.socket.cut(setup.random)
        setup.run()
        assert (b"abcdefghij" * 10).startswith(setup.received())
        assert setup.events[-1].kind == DISCONNECTED
        assert setup.peer.is_closed
        prefixes.add(len(setup.received()))

    assert len(prefixes) > 5


def test_a_slow_reader_backs_up_and_is_drained_when_it_reads() -> None:
    setup = Setup()
    setup.network.conditions.window_bytes = 100
    setup.socket.stop_reading()
    connection_id = setup.events[0].connection_id

    unsent = setup.transport.send(connection_id, [frame(b"x" * 500)])
    setup.run()
    nothing = setup.peer.data
    setup.socket.resume_reading()
    events = setup.run()

    assert unsent == 404
    assert nothing == b""
    assert setup.peer.data == frame(b"x" * 500)
    assert [event.kind for event in events] == [DRAINED]


def test_a_send_that_was_taken_whole_is_followed_by_no_drained() -> None:
    setup = Setup()

    unsent = setup.transport.send(setup.events[0].connection_id, [frame(b"x")])
    events = setup.run()

    assert unsent == 0
    assert events == []


def test_a_file_region_is_sent_though_the_file_was_removed() -> None:
    setup = Setup()
    setup.network.conditions.window_bytes = 10
    disk = SimulatedDisk()
    file = disk.open("a", create=True)
    file.append([b"0123456789" * 10])

    setup.transport.send(setup.events[0].connection_id, [frame(bytes(100))[:4]])
    setup.transport.send(setup.events[0].connection_id, [FileRegion(file, 0, 100)])
    disk.remove("a")
    setup.run()

    assert setup.peer.data[4:] == b"0123456789" * 10


def test_an_answer_is_damaged_once_where_a_crc_tells() -> None:
    for seed in range(20):
        setup = Setup(seed)
        builder = BatchBuilder()
        builder.append(1_000, b"k", b"v" * 50)
        batch = builder.build()
        file = SimulatedDisk(setup.random).open("a", create=True)
        file.append([batch])
        setup.network.damages_due = 1

        for _ in range(2):
            answer = [len(batch).to_bytes(4, "big"), FileRegion(file, 0, len(batch))]
            setup.transport.send(setup.events[0].connection_id, answer)
            setup.run()

        damaged, whole = setup.peer.data[4 : 4 + len(batch)], setup.peer.data[8 + len(batch) :]
        assert whole == batch
        assert sum(ours != theirs for ours, theirs in zip(damaged, batch, strict=True)) == 1
        assert not has_valid_crc(damaged, 0, decode_batch_header(damaged, 0))
        assert setup.network.damages == 1


def test_a_region_that_cannot_be_read_breaks_the_connection() -> None:
    setup = Setup()
    disk = SimulatedDisk()
    file = disk.open("a", create=True)
    file.append([b"0123456789"])
    disk.fail_reads()

    setup.transport.send(setup.events[0].connection_id, [frame(bytes(10))[:4]])
    setup.transport.send(setup.events[0].connection_id, [FileRegion(file, 0, 10)])
    events = setup.run()

    assert [event.kind for event in events] == [DISCONNECTED]
    assert setup.peer.is_closed


def test_a_paused_connection_delivers_when_it_is_resumed() -> None:
    setup = Setup()
    connection_id = setup.events[0].connection_id
    setup.transport.pause_reading(connection_id)
    setup.socket.send(b"abc")
    while_paused = setup.run()

    setup.transport.resume_reading(connection_id)
    setup.run()

    assert while_paused == []
    assert setup.received() == b"abc"


def test_a_close_by_the_broker_sends_what_was_given_before() -> None:
    setup = Setup()
    connection_id = setup.events[0].connection_id
    setup.transport.send(connection_id, [frame(b"last words")])

    setup.transport.close(connection_id)
    events = setup.run(2_000)

    assert setup.peer.data == frame(b"last words")
    assert setup.peer.is_closed
    assert events == []


def test_a_connection_to_a_broker_that_is_down_is_refused() -> None:
    setup = Setup()
    setup.network.lose_broker()
    peer = RecordingPeer()

    setup.network.connect(peer)
    setup.run()

    assert peer.is_closed
    assert setup.peer.is_closed


def test_an_exchange_is_delivered_with_its_last_byte_and_answered_with_the_answers_last() -> None:
    setup = Setup()
    connection_id = setup.events[0].connection_id
    exchange = ObservedExchange(18, 0, 7)
    setup.socket.send(frame(b"request"), exchange)
    undelivered = exchange.delivered_ms
    setup.run()

    setup.transport.send(connection_id, [frame(b"answer")[:6]])
    unanswered = exchange.answered_ms
    setup.transport.send(connection_id, [frame(b"answer")[6:]])

    assert undelivered == -1
    assert exchange.delivered_ms >= 0
    assert unanswered == -1
    assert exchange.answered_ms == setup.clock.now_ms
    assert setup.socket.head() is None
    assert not setup.socket.has_surplus_answer


def test_nothing_that_is_sent_after_a_cut_arrives() -> None:
    for seed in range(20):
        setup = Setup(seed)
        setup.network.conditions.delay_ms_max = 50
        setup.transport.send(setup.events[0].connection_id, [frame(b"a" * 50)])
        setup.socket.cut(setup.random)

        setup.transport.send(setup.events[0].connection_id, [frame(b"b" * 50)])
        setup.socket.send(b"b")
        setup.run()

        assert b"b" not in setup.peer.data
        assert setup.received() == b""
