"""Run of readers beside two peers: writes, replication, faults, and a quiet end.

When all has healed except a lost copy, each reader reads to the end that it may see, from the
leader where the copy lacks records.  A reader that has no more than the copy waits for the copy.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Final

from tarry.simulation.replicas import scenario as kinds
from tarry.simulation.replicas.checkers import check_readings
from tarry.simulation.replicas.cluster import PEER_IDS, PeerCluster
from tarry.simulation.replicas.peer import PeerNode
from tarry.simulation.replicas.reader import ReaderNode
from tarry.simulation.replicas.scenario import ReplicaScenario
from tarry.simulation.trace import Trace
from tarry.simulation.world import World

_FIRST_PRODUCER_ID: Final = 4_000
_VALUE_BYTES_MAX: Final = 60
_DOWN_MS_MAX: Final = 500
_SLOW_DELAY_MS_MAX: Final = 300
_STALL_MS_MAX: Final = 3_000
_LAG_MS_MAX: Final = 1_500
_QUIET_MS_MAX: Final = 30_000
_BEHIND_MS_MAX: Final = 1_500
# Faults that were added later are drawn from a seed of their own.
_WIDER_SEED: Final = 0x31DE


class ReplicaRun:
    """Run of one seed.  `run` returns a sentence for each violation."""

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        self.world = World(seed, trace)
        random = self.world.random
        self._random = random
        self._scenario = ReplicaScenario(random)
        self._scenario.widen(Random(seed ^ _WIDER_SEED))
        self._cluster = PeerCluster(self._scenario.partitions)
        self._peers = {
            peer_id: PeerNode(self.world, self._cluster, peer_id) for peer_id in PEER_IDS
        }
        self._cluster.on_change = self._wake
        self._readers = [
            ReaderNode(self.world, self._cluster, f"reader{number}", settings)
            for number, settings in enumerate(self._scenario.readers, 1)
        ]
        self._values = 0
        self._is_quiet = False
        self._has_lost_copy = False
        # By partition, the time until which it is not copied.
        self._lags_until_ms = [0] * self._scenario.partitions

    @property
    def fault_counts(self) -> dict[str, int]:
        """Return how many faults of each kind were planned."""
        counts: dict[str, int] = {}
        for _at_ms, kind in self._scenario.faults:
            counts[kind] = counts.get(kind, 0) + 1
        return counts

    def run(self) -> list[str]:
        """Run the seed; return a sentence for each violation."""
        for index in range(self._scenario.partitions):
            self._write(index)
            self._copy(index)
        for at_ms, kind in self._scenario.faults:
            self.world.agenda.after(at_ms, partial(self._go_wrong, kind))
        self.world.run_for(self._scenario.duration_ms)
        self._heal()
        found = self._rest()
        if self._has_lost_copy:
            self._has_lost_copy = False
            self._copy(self._last)
            found = found or self._rest()
        for reader in self._readers:
            found += check_readings(self._cluster, reader)
        return found

    @property
    def _last(self) -> int:
        """The last partition."""
        return self._scenario.partitions - 1

    def _rest(self) -> list[str]:
        """Wait until each reader has what it may read; return a sentence if one has not."""
        end_ms = self.world.agenda.now_ms + _QUIET_MS_MAX
        self.world.run_until(end_ms, self._is_finished)
        return self._unfinished()

    def _wake(self) -> None:
        for peer in self._peers.values():
            peer.wake()

    def _note(self, text: str) -> None:
        self.world.trace.add(self.world.agenda.now_ms, text)

    # --- What is written and copied.

    def _write(self, index: int) -> None:
        """Append to a log, and plan the next time."""
        if self._is_quiet:
            return
        random = self._random
        log = self._cluster.logs[index]
        number = random.randrange(-1, self._scenario.producers)
        producer_id = _FIRST_PRODUCER_ID + number
        if producer_id in log.open and random.randrange(3) == 0:
            is_aborted = random.randrange(2) == 0
            log.end(producer_id, is_aborted=is_aborted)
            self._note(f"{index}: producer {producer_id} ends, aborted {is_aborted}")
        else:
            values = [self._value() for _ in range(1 + random.randrange(3))]
            every = self._scenario.compacted_every
            compacted = int(every > 0 and len(values) > 1 and self._values % every == 0)
            owner_id = producer_id if number >= 0 else -1
            log.write(values, self._scenario.codec, owner_id, compacted=compacted)
            self._note(f"{index}: producer {producer_id} writes up to {log.end_offset}")
        self._cluster.changed()
        delay_ms = random.randrange(self._scenario.write_ms_max)
        self.world.agenda.after(delay_ms, partial(self._write, index))

    def _value(self) -> bytes:
        self._values += 1
        return b"%d-%s" % (self._values, b"." * self._random.randrange(_VALUE_BYTES_MAX))

    def _copy(self, index: int) -> None:
        """Copy a few batches, and plan the next time."""
        if index == self._last and self._has_lost_copy:
            return
        now_ms = self.world.agenda.now_ms
        if self._is_quiet or now_ms >= self._lags_until_ms[index]:
            self._cluster.replicate(index, 1 + self._random.randrange(4))
        copy = self._cluster.copies[index]
        if not self._is_quiet or copy.end_offset < self._cluster.logs[index].end_offset:
            delay_ms = self._random.randrange(self._scenario.copy_ms_max)
            self.world.agenda.after(delay_ms, partial(self._copy, index))

    # --- Faults.

    def _go_wrong(self, kind: str) -> None:
        random = self._random
        self._note(f"fault: {kind}")
        index = random.randrange(self._scenario.partitions)
        peer = self._peers[PEER_IDS[random.randrange(len(PEER_IDS))]]
        until_ms = self.world.agenda.now_ms + random.randrange(_LAG_MS_MAX)
        if kind == kinds.LAG:
            self._lags_until_ms[index] = until_ms
        elif kind == kinds.LOST_COPY:
            self._cluster.lose_copy(index)
            self._lags_until_ms[index] = until_ms
        elif kind == kinds.MOVE:
            self._cluster.move(index)
            self._note(f"{index} is led by {self._cluster.leader_id(index)}")
        elif kind == kinds.LAGGING_PEER:
            peer_id = PEER_IDS[random.randrange(len(PEER_IDS))]
            self._cluster.lag(peer_id)
            behind_ms = random.randrange(_BEHIND_MS_MAX)
            self.world.agenda.after(behind_ms, partial(self._cluster.catch_up, peer_id))
        elif kind == kinds.RESTART:
            peer.stop()
            self.world.agenda.after(random.randrange(_DOWN_MS_MAX), peer.start)
        elif kind == kinds.CUT:
            for socket in peer.network.sockets():
                socket.cut(random)
        elif kind == kinds.SLOW:
            peer.network.conditions.delay_ms_max = _SLOW_DELAY_MS_MAX
        else:
            reader = self._readers[random.randrange(len(self._readers))]
            reader.stall(random.randrange(_STALL_MS_MAX))

    def _heal(self) -> None:
        """End all faults, and most transactions."""
        self._note("all heals")
        self._is_quiet = True
        for index, log in enumerate(self._cluster.logs):
            left_open = 1 if index == 0 and self._scenario.leaves_one_open else 0
            for producer_id in list(log.open)[left_open:]:
                log.end(producer_id, is_aborted=self._random.randrange(2) == 0)
        for peer in self._peers.values():
            peer.start()
            peer.network.conditions.delay_ms_max = 2
        for reader in self._readers:
            reader.is_quiet = True
        if self._scenario.loses_last_copy:
            self._has_lost_copy = True
            self._cluster.lose_copy(self._last)
            self._cluster.replicate(self._last, 0)
        self._cluster.changed()

    def _is_finished(self) -> bool:
        return not self._unfinished()

    def _unfinished(self) -> list[str]:
        """Return a sentence for a partition that a reader has not read to its end."""
        for reader in self._readers:
            for place in self._cluster.places():
                position, end = reader.position(place), reader.readable_end(place)
                may_wait = self._has_lost_copy and place[1] == self._last and position == 0
                if position != end and not may_wait:
                    return [
                        f"{reader.name} is at {position} of {place[0]}-{place[1]}, which may be "
                        f"read up to {end}"
                    ]
        return []
