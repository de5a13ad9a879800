"""Metadata stores under test: the embedded one on a simulated disk, and one that others write to.

Every `Subject` says how its store is driven: how what was asked for becomes durable, how it is
lost, and what a start after a stop or a crash finds.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tarry.base.doors import LogFile
from tarry.base.errors import StorageError
from tarry.base.etcd import EtcdEvent, Put
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.cluster.etcd.etcd_store import EtcdStore
from tarry.cluster.etcd.transactions import Transaction
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import ROW_FORMAT, BrokerRow, ClusterRow, Keys, LifeRow, encode_row
from tarry.cluster.state.records import (
    BrokerRegistered,
    ClusterCreated,
    MetadataRecord,
)
from tarry.cluster.state.state import SERVING, ClusterState
from tarry.cluster.store.change import Change
from tarry.cluster.store.embedded import EmbeddedStore, open_store
from tarry.cluster.store.store import MetadataStore
from tarry.log.logs import Logs
from tarry.log.owner import LogOwner
from tarry.simulation.disk import SimulatedDisk
from tarry.simulation.etcd import SimulatedEtcd, SimulatedEtcdDoor
from tarry.timer.wheel import TimingWheel

SETTINGS_FOR_TESTS = Settings({})

WALL_MS = 1_800_000_000_000

Applied = tuple[int, list[MetadataRecord], Change | None]


class GivenChange(Change):
    """A change whose records are given, whatever the metadata say."""

    def __init__(self, *records: MetadataRecord) -> None:
        super().__init__()
        self.records = list(records)

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        return self.records


class Ends:
    """A listener that keeps what a store tells, and follows its state by that alone."""

    def __init__(self, store: MetadataStore) -> None:
        self.applied: list[Applied] = []
        self.refused: list[Change] = []
        self.replica = ClusterState()
        for record in store.state.snapshot():
            self.replica.apply(record)
        store.listen(self)

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        self.applied.append((version, records, change))
        for record in records:
            self.replica.apply(record)

    def on_refused(self, change: Change) -> None:
        self.refused.append(change)


class Subject:
    """A store under test; `refusal` is part of what it says of a change that was lost."""

    store: MetadataStore
    ends: Ends
    refusal = "nothing was changed"

    def settle(self) -> None:
        """Make durable what was asked for."""
        raise NotImplementedError

    def lose(self) -> None:
        """Let the store fail to keep what was asked for."""
        raise NotImplementedError

    def restart(self) -> None:
        """End the process that has the store, losing what is not durable, and open it again."""
        raise NotImplementedError

    def change(self, *records: MetadataRecord) -> GivenChange:
        """Ask for these records."""
        change = GivenChange(*records)
        self.store.change(change)
        return change


class EmbeddedSubject(Subject):
    """The embedded store, its log written and flushed by hand."""

    store: EmbeddedStore

    def __init__(self, snapshot_bytes_min: int = 1 << 20, seed: int = 5) -> None:
        self.random = random.Random(seed)
        self.disk = SimulatedDisk(self.random)
        self.snapshot_bytes_min = snapshot_bytes_min
        self.broker_id = 1
        self.touched: list[LogOwner] = []
        self.open()

    def open(self) -> None:
        self.touched.clear()
        self.logs = Logs(self.disk)
        self.logs.load()
        self.store = open_store(
            self.logs,
            broker_id=self.broker_id,
            random=self.random,
            turn=Turn(0, WALL_MS),
            snapshot_bytes_min=self.snapshot_bytes_min,
        )
        self.store.write_through(self.touched.append)
        self.ends = Ends(self.store)

    def write(self) -> None:
        """Write the log if the store asked for it."""
        while self.touched:
            owner = self.touched.pop()
            try:
                owner.log.write()
            except StorageError:
                owner.on_write_failed()

    def settle(self) -> None:
        self.write()
        self.flush()

    def flush(self) -> None:
        """Flush what is written."""
        log = self.store.log
        files: list[LogFile] = []
        directories: dict[str, None] = {}
        offset = log.collect_flush(files, directories)
        self.disk.flush(files, list(directories))
        log.flushed(offset)
        self.store.owner.on_flushed(offset)

    def lose(self) -> None:
        self.disk.fail_writes()
        self.write()
        self.disk.heal()

    def restart(self) -> None:
        self.disk.crash()
        self.open()

    def restart_process(self) -> None:
        """End the process alone and open the store again: the disk keeps what was written."""
        self.disk.kill()
        self.open()


class SharedStore(MetadataStore):
    """A store that others write to: decided at once, kept if nobody was faster, else decided again.

    `log` is the metadata at the far end.  Like a store over a network it has no view of its own:
    what was asked for is seen only when it has come back.
    """

    def __init__(self, log: list[list[MetadataRecord]]) -> None:
        super().__init__()
        self.log = log
        self.asked: list[tuple[Change, list[MetadataRecord], int]] = []
        # Answers to come that get lost on the way, though what they confirm was done.
        self.lost_answers = 0
        self.catch_up()

    def change(self, change: Change) -> None:
        records = change.decide(self.view)
        self.asked.append((change, records, self.version))

    def catch_up(self) -> None:
        """Apply what others have changed."""
        for records in self.log[self.version :]:
            self._apply(records, None)

    def _apply(self, records: list[MetadataRecord], change: Change | None) -> None:
        for record in records:
            self.state.apply(record)
        self.version += 1
        self._applied(records, change, self.version)

    def carry_out(self) -> None:
        """Bring every change that was asked for to its end."""
        while self.asked:
            change, records, version = self.asked.pop(0)
            if version != len(self.log):
                self.catch_up()
                self.change(change)
            elif self.lost_answers > 0:
                self.lost_answers -= 1
                self.log.append(records)
                self.catch_up()
                self.change(change)
            elif records:
                self.log.append(records)
                self._apply(records, change)
            else:
                self._applied([], change, self.version)

    def refuse(self) -> None:
        """Refuse every change that was asked for."""
        asked, self.asked = self.asked, []
        for change, _, _ in asked:
            self._refused(change, "the store cannot be reached; nothing was changed")


class SharedSubject(Subject):
    """The store that others write to as well; `interfere` says what they write."""

    store: SharedStore

    def __init__(self) -> None:
        self.log: list[list[MetadataRecord]] = [
            [ClusterCreated(cluster_id="shared"), BrokerRegistered(broker_id=1)]
        ]
        self.restart()

    def settle(self) -> None:
        self.store.carry_out()

    def lose(self) -> None:
        self.store.refuse()

    def restart(self) -> None:
        self.store = SharedStore(self.log)
        self.ends = Ends(self.store)

    def interfere(self, *records: MetadataRecord) -> None:
        """Let another broker change the metadata first."""
        self.log.append(list(records))


class EtcdSubject(Subject):
    """The store in a simulated etcd.  A transaction that etcd does not answer may be done."""

    store: EtcdStore
    refusal = "whether the change was made is not known"

    def __init__(self, seed: int = 5) -> None:
        self.random = random.Random(seed)
        self.etcd = SimulatedEtcd(self.random)
        self.keys = Keys("/test/")
        self.events: list[EtcdEvent] = []
        self.etcd.transact(
            [],
            [
                Put(self.keys.cluster, encode_row(ClusterRow(ROW_FORMAT, "shared"))),
                Put(self.keys.broker(1), encode_row(BrokerRow(ROW_FORMAT, "", "", {}, ""))),
                Put(self.keys.life(1), encode_row(LifeRow(ROW_FORMAT, "", 0, SERVING))),
            ],
        )
        self.restart()

    def restart(self) -> None:
        self.events.clear()
        self.turn = Turn(self.etcd.now_ms, WALL_MS)
        self.timer = TimingWheel(self.etcd.now_ms)
        self.door = SimulatedEtcdDoor(self.etcd, self.random, self.events.append)
        self.door.delay_ms_max = 20
        self.failures: list[str] = []
        self.store = EtcdStore(self.door, self.keys, self.turn, self.timer, self.failures.append)
        self.store.begin()
        self.run(lambda: self.store.is_ready)
        self.ends = Ends(self.store)

    def run(self, is_so: Callable[[], bool], ms_max: int = 60_000) -> None:
        """Let time pass until this is so."""
        end_ms = self.etcd.now_ms + ms_max
        while not is_so():
            assert self.etcd.now_ms < end_ms, "it did not come"
            self.step()

    def step(self) -> None:
        self.etcd.advance(self.etcd.now_ms + 5)
        self.door.step()
        self.turn.now_ms = self.etcd.now_ms
        events, self.events[:] = list(self.events), []
        for event in events:
            self.store.on_answer(event.answer)
        for entry in self.timer.advance(self.turn.now_ms):
            entry.expire()

    def settle(self) -> None:
        self.run(lambda: not self.store.is_changing)

    def interfere(self, *records: MetadataRecord) -> None:
        """Let another broker change the metadata, before this one hears of it."""
        other = KnownRows(self.keys)
        other.apply(self.etcd.rows(self.keys.prefix))
        transaction = Transaction(other)
        for record in records:
            transaction.add(record)
        is_done, _ = self.etcd.transact(transaction.compares, transaction.operations)
        assert is_done

    def lose(self) -> None:
        """Be away until everything is refused; what was on its way never arrives."""
        self.door.drop()
        self.door.go_away()
        self.settle()
        self.door.come_back()
