"""Injection of planned faults into one broker node and the clients around it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tarry.simulation import faults
from tarry.simulation.broker_node import BrokerNode
from tarry.simulation.connection import ClientSocket
from tarry.simulation.faults import Fault


class FaultInjector:
    """Faults of one node's plan, each at its time, until the node is healed."""

    def __init__(self, node: BrokerNode, sockets: Callable[[], list[ClientSocket]]) -> None:
        self._node = node
        self._sockets = sockets
        self._ways: dict[str, Callable[[Fault], None]] = {
            faults.POWER: self._lose,
            faults.KILL: self._lose,
            faults.POWER_IN_TURN: self._lose_in_turn,
            faults.KILL_IN_TURN: self._lose_in_turn,
            faults.POWER_IN_FLUSH: self._lose_in_flush,
            faults.KILL_IN_FLUSH: self._lose_in_flush,
            faults.CLEAN: self._stop,
            faults.POWER_AFTER_CLEAN: self._stop,
            faults.CUT: self._cut,
            faults.STALL: self._stall,
            faults.CLOCK_JUMP: self._jump,
            faults.WRITE_FAULT: self._fail_writes,
            faults.READ_FAULT: self._fail_reads,
            faults.FLUSH_FAULT: self._fail_flushes,
            faults.SPACE_FAULT: self._take_space,
            faults.FEW_FILES: self._take_files,
            faults.SLOW_READERS: self._slow_down,
            faults.DAMAGE: self._damage_answers,
            faults.INDEX_FAULT: self._damage_indexes,
        }

    def plan(self) -> None:
        """Plan all faults from now on."""
        for fault in self._node.plan.faults:
            self._node.clock.after(fault.at_ms, partial(self._inject, fault))

    def _inject(self, fault: Fault) -> None:
        if not self._node.is_healed:
            self._node.note(str(fault))
            self._ways[fault.kind](fault)

    # --- The process and its machine.

    def _lose(self, fault: Fault) -> None:
        self._node.lose(fault.kind)

    def _lose_in_turn(self, fault: Fault) -> None:
        self._node.end_in_turn = fault.kind
        self._node.disk.crash_after(fault.number, fault.path_part)

    def _lose_in_flush(self, fault: Fault) -> None:
        self._node.end_in_flush = fault.kind

    def _stop(self, fault: Fault) -> None:
        self._node.request_stop(fault.kind)

    def _stall(self, fault: Fault) -> None:
        self._node.busy_until_ms = self._node.clock.now_ms + fault.number

    def _jump(self, fault: Fault) -> None:
        self._node.clock.wall_offset_ms += fault.number

    # --- The disk.

    def _fail_writes(self, fault: Fault) -> None:
        self._node.disk.fail_writes(fault.number)
        self._node.maybe_lose_power_soon()

    def _fail_reads(self, fault: Fault) -> None:
        self._node.disk.fail_reads(fault.number)

    def _fail_flushes(self, fault: Fault) -> None:
        self._node.disk.fail_flushes()

    def _take_space(self, fault: Fault) -> None:
        disk = self._node.disk
        disk.capacity_bytes = disk.used_bytes() + self._node.random.randrange(2_000)
        self._node.clock.after(fault.number, self._free_space)

    def _free_space(self) -> None:
        self._node.disk.capacity_bytes = None

    def _take_files(self, fault: Fault) -> None:
        self._node.files_per_turn = fault.place
        self._node.clock.after(fault.number, self._give_files_back)

    def _give_files_back(self) -> None:
        self._node.files_per_turn = None

    def _damage_indexes(self, fault: Fault) -> None:
        self._node.index_faults_due += fault.number

    # --- The network.

    def _cut(self, fault: Fault) -> None:
        random = self._node.random
        sockets = self._node.network.sockets()
        busy = [socket for socket in sockets if socket.has_unanswered_produce()]
        if busy and random.randrange(2) == 0:
            # A producer whose connection is cut retries, perhaps before its first try is durable.
            sockets = busy
        if sockets:
            sockets[random.randrange(len(sockets))].cut(random)

    def _slow_down(self, fault: Fault) -> None:
        node = self._node
        node.network.conditions.window_bytes = 64
        for socket in self._sockets():
            if node.random.randrange(2) == 0:
                socket.stop_reading()
                node.clock.after(fault.number, socket.resume_reading)

    def _damage_answers(self, fault: Fault) -> None:
        self._node.network.damages_due += fault.number
