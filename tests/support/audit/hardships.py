"""Hardships of an audited day: brokers are killed, drained, stopped, and their clocks set.

Two lanes go on at once, each with one hardship after another: one of processes, disks and etcd, one
of calendars.  Each is a window of the account, from its beginning until every partition has a
leader and all replicas are in sync again.  Between rough times are calm ones without any.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from tests.support.audit.account import Account, Window, now_ms
from tests.support.broker_process import BrokerProcess
from tests.support.cluster.small_disk import SmallDisk

HOUR_MS: Final = 3_600_000
KILL: Final = "kill"
KILL_ALL: Final = "kill all"
DRAIN: Final = "drain"
STOP: Final = "stop"
FILL: Final = "fill"
ETCD: Final = "etcd"
CLOCK: Final = "clock"
KINDS: Final = (KILL, KILL_ALL, DRAIN, STOP, FILL, ETCD, CLOCK)
_WEIGHTS: Final = {KILL: 5, KILL_ALL: 1, DRAIN: 3, STOP: 4, FILL: 3, ETCD: 1}
SHIFTS_MS: Final = (HOUR_MS, -HOUR_MS, HOUR_MS, -HOUR_MS, 90_000, -90_000)
# Rough times and calm ones follow each other.
ROUGH_S: Final = 70.0
CALM_S: Final = 20.0


class Stage(Protocol):
    """The brokers of the day, and how they are taken down and up again."""

    brokers: Mapping[int, BrokerProcess]
    disks: Mapping[int, SmallDisk]
    calendar_files: Mapping[int, Path]

    def start(self, broker_id: int) -> None:
        """Start a broker that was taken down, and wait until it serves."""

    def freeze_etcd(self) -> None: ...

    def thaw_etcd(self) -> None: ...

    def settle(self) -> None:
        """Wait until all is well."""


class Hardships:
    """Both lanes, drawn from a seed."""

    def __init__(
        self, stage: Stage, account: Account, seed: int, kinds: list[str], longest_s: float
    ) -> None:
        self.stage = stage
        self.account = account
        self.longest_s = longest_s
        self.is_over = threading.Event()
        self.began_s = time.monotonic()
        acts: dict[str, Callable[[random.Random, Window], None]] = {
            KILL: self._kill,
            KILL_ALL: self._kill,
            DRAIN: self._drain,
            STOP: self._stop,
            FILL: self._fill,
            ETCD: self._freeze_etcd,
        }
        self._acts = {kind: acts[kind] for kind in kinds if kind in acts}
        self.lanes: list[threading.Thread] = []
        self._random = random.Random(f"{seed}-hardships")
        self._calendar_random = random.Random(f"{seed}-calendars")
        if self._acts:
            self.lanes.append(threading.Thread(target=self._run_lane, args=[self._process_lane]))
        if CLOCK in kinds:
            self.lanes.append(threading.Thread(target=self._run_lane, args=[self._calendar_lane]))

    def start(self) -> None:
        self.began_s = time.monotonic()
        for lane in self.lanes:
            lane.start()

    def end(self) -> None:
        """End both lanes, each with what it does."""
        self.is_over.set()
        for lane in self.lanes:
            lane.join()
        for broker_id in self.stage.brokers:
            if self.account.calendars.shift_of(broker_id):
                self._shift(broker_id, 0)

    def _run_lane(self, lane: Callable[[], None]) -> None:
        try:
            while not self.is_over.is_set():
                lane()
        except BaseException as error:
            self.account.trouble(f"a hardship did not end as it should: {error!r}")
            raise

    def _pause(self, chance: random.Random, shortest_s: float, longest_s: float) -> None:
        scale = min(1.0, self.longest_s / 10)
        self.is_over.wait(chance.uniform(shortest_s, longest_s) * scale)
        into_s = (time.monotonic() - self.began_s) % (ROUGH_S + CALM_S)
        if into_s > ROUGH_S:
            self.is_over.wait(ROUGH_S + CALM_S - into_s)

    def _hold(self, chance: random.Random, shortest_s: float = 0.0) -> None:
        """Let a hardship last: often for a moment, sometimes for long."""
        self.is_over.wait(max(shortest_s, self.longest_s * chance.random() ** 2))

    # --- Processes, disks and etcd

    def _process_lane(self) -> None:
        chance = self._random
        self._pause(chance, 1.0, 8.0)
        if self.is_over.is_set():
            return
        for broker_id, broker in self.stage.brokers.items():
            if broker.process is not None and broker.process.poll() is not None:
                self.account.trouble(f"broker {broker_id} ended by itself: {broker.log_path}")
                broker.wait()
                self.stage.start(broker_id)
        kinds = list(self._acts)
        (kind,) = chance.choices(kinds, [_WEIGHTS[each] for each in kinds])
        ids = sorted(self.stage.brokers)
        chosen = ids if kind == KILL_ALL else [] if kind == ETCD else [chance.choice(ids)]
        window = Window(kind, chosen, now_ms())
        self.account.windows.append(window)
        self._acts[kind](chance, window)
        self.stage.settle()
        window.end_ms = now_ms()

    def _kill(self, chance: random.Random, window: Window) -> None:
        for broker_id in window.brokers:
            self.stage.brokers[broker_id].kill()
        self._hold(chance)
        for broker_id in window.brokers:
            self.stage.start(broker_id)

    def _drain(self, chance: random.Random, window: Window) -> None:
        (broker_id,) = window.brokers
        code = self.stage.brokers[broker_id].stop()
        if code != 0:
            self.account.trouble(f"broker {broker_id} did not stop cleanly: exit code {code}")
        self._hold(chance)
        self.stage.start(broker_id)

    def _stop(self, chance: random.Random, window: Window) -> None:
        (broker_id,) = window.brokers
        self.stage.brokers[broker_id].send_signal(signal.SIGSTOP)
        self._hold(chance, min(1.0, self.longest_s))
        self.stage.brokers[broker_id].send_signal(signal.SIGCONT)

    def _fill(self, chance: random.Random, window: Window) -> None:
        (broker_id,) = window.brokers
        disk = self.stage.disks[broker_id]
        disk.fill()
        self._hold(chance, min(2.0, self.longest_s))
        disk.free()

    def _freeze_etcd(self, chance: random.Random, window: Window) -> None:
        self.stage.freeze_etcd()
        self._hold(chance, min(1.0, self.longest_s))
        self.stage.thaw_etcd()

    # --- Calendars

    def _calendar_lane(self) -> None:
        chance = self._calendar_random
        self._pause(chance, 3.0, 15.0)
        if self.is_over.is_set():
            return
        ids = sorted(self.stage.brokers)
        # Mostly one is set, sometimes all are.
        chosen = ids if chance.random() < 0.25 else [chance.choice(ids)]
        shift_ms = chance.choice(SHIFTS_MS)
        window = Window(f"{CLOCK} {shift_ms // 1000:+d} s", chosen, now_ms())
        self.account.windows.append(window)
        for broker_id in chosen:
            self._shift(broker_id, shift_ms)
        self._hold(chance, min(1.0, self.longest_s))
        for broker_id in chosen:
            self._shift(broker_id, 0)
        window.end_ms = now_ms()

    def _shift(self, broker_id: int, shift_ms: int) -> None:
        """Set a calendar: the broker sees it when it reads its clock next."""
        data = shift_ms.to_bytes(8, "little", signed=True)
        with self.stage.calendar_files[broker_id].open("r+b", buffering=0) as file:
            before_ms = now_ms()
            file.write(data)
            self.account.calendars.step(broker_id, before_ms, now_ms() + 1, shift_ms)
