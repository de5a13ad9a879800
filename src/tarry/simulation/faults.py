"""Faults of a run and their times: drawn from the seed before the run begins.

Each seed has some kinds of faults and not others, so that every combination comes up and none
hides another; some seeds have none at all.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.log.index.segment_indexes import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from tarry.simulation.disk import SimulatedDisk

# Ends of a life of the broker.
POWER: Final = "power"
KILL: Final = "kill"
POWER_IN_TURN: Final = "power in a turn"
KILL_IN_TURN: Final = "kill in a turn"
POWER_IN_FLUSH: Final = "power in a flush"
KILL_IN_FLUSH: Final = "kill in a flush"
CLEAN: Final = "clean stop"
POWER_AFTER_CLEAN: Final = "clean stop, then power"
_ENDS: Final = (
    POWER,
    POWER,
    KILL,
    POWER_IN_TURN,
    POWER_IN_TURN,
    KILL_IN_TURN,
    POWER_IN_FLUSH,
    KILL_IN_FLUSH,
    KILL_IN_FLUSH,
    CLEAN,
    POWER_AFTER_CLEAN,
)

# Parts of paths: a life that ends in a turn ends at an operation on such a file; "" for any file.
PLACES: Final = ("", "", ".log", ".index", ".snapshot", "recovery-points", "-delete", "metadata")

PLACES_OF_GROUPS: Final = (
    "",
    "__consumer_offsets",
    "__consumer_offsets",
    ".log",
    "compaction",
    "recovery-points",
    "-delete",
    "metadata",
)

PLACES_OF_SCHEDULES: Final = (
    "",
    ".schedule",
    ".schedule",
    ".log",
    ".log",
    "recovery-points",
    "-delete",
    "metadata",
)

# Ends of the broker's life before everything is read for the last time; "" if it goes on.
_LAST_ENDS: Final = ("", POWER, POWER, KILL, POWER_AFTER_CLEAN)

_FLUSHES_MS_MAX: Final = (3, 3, 80, 600)

# Ends of a life that leave the page cache, whether its bytes are durable or not.
KILLS: Final = (KILL, KILL_IN_TURN, KILL_IN_FLUSH)

CUT: Final = "cut"
STALL: Final = "stall"
CLOCK_JUMP: Final = "clock jump"
WRITE_FAULT: Final = "write fault"
READ_FAULT: Final = "read fault"
FLUSH_FAULT: Final = "flush fault"
SPACE_FAULT: Final = "no space"
# The process runs out of descriptors for a while.
FEW_FILES: Final = "few files"
OF_THE_DISK: Final = (WRITE_FAULT, READ_FAULT, FLUSH_FAULT, SPACE_FAULT, FEW_FILES)
SLOW_READERS: Final = "slow readers"
DAMAGE: Final = "damaged answer"
# The next start finds an index file that is damaged or removed.
INDEX_FAULT: Final = "index fault"

_INDEX_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)

_FILES_PER_TURN_MAX: Final = 8

_HOUR_MS: Final = 3_600_000
_STEPS_MS: Final = (-3_000, -400, -100, -30, 30, 400, 3_000)
_JUMPS_MS: Final = (-24 * _HOUR_MS, -2 * _HOUR_MS, -5_000, 5_000, 2 * _HOUR_MS, 24 * _HOUR_MS)


class Fault:
    """Fault to inject.  `number` is a duration in ms, a distance or a count.

    `place` chooses the files at which a turn ends, or the number of files a turn may open.
    """

    def __init__(self, at_ms: int, kind: str) -> None:
        self.at_ms = at_ms
        self.kind = kind
        self.number = 0
        self.place = 0
        # Part of the paths of the files concerned; "" for any file.
        self.path_part = ""

    def __str__(self) -> str:
        return f"fault: {self.kind} {self.number} {self.path_part}"


class FaultPlan:
    """Faults of one run."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.last_end = ""
        # A flush takes `flush_ms_min`, and up to `flush_ms_max` more.
        self.flush_ms_min = 0
        self.flush_ms_max = 3
        self.delay_ms_max = 2
        self.pieces_per_mille = 50
        # Share of the broker's starts that lose power during recovery, per 1,000.
        self.crash_in_start_per_mille = 0
        self.defers_removals = False
        # True if the machine may lose power; otherwise only the process dies.
        self.may_lose_power = True

    def has(self, *kinds: str) -> bool:
        """Return true if a fault of one of these kinds is planned."""
        return any(fault.kind in kinds for fault in self.faults)

    def may_disk_fail(self) -> bool:
        """Return true if a fault of the disk, which may end a broker, is planned."""
        return self.has(*OF_THE_DISK)


def draw_faults(random: Random, duration_ms: int, places: tuple[str, ...] = PLACES) -> FaultPlan:
    """Draw the faults of one run.  `places`: parts of paths at which a life ends within a turn."""
    plan = FaultPlan()
    if random.randrange(10) == 0:
        return plan
    plan.last_end = _LAST_ENDS[random.randrange(len(_LAST_ENDS))]
    plan.defers_removals = random.randrange(2) == 0
    plan.flush_ms_max = _FLUSHES_MS_MAX[random.randrange(len(_FLUSHES_MS_MAX))]
    if random.randrange(3) == 0:
        plan.delay_ms_max = 60
    if random.randrange(3) == 0:
        plan.pieces_per_mille = 600
    if random.randrange(3) == 0:
        plan.crash_in_start_per_mille = 300
    _add(plan, random, duration_ms, 900, 6, _ENDS)
    _add(plan, random, duration_ms, 500, 6, (CUT,))
    _add(plan, random, duration_ms, 250, 3, (STALL,))
    _add(plan, random, duration_ms, 100, 2, (CLOCK_JUMP,))
    _add(plan, random, duration_ms, 200, 4, (WRITE_FAULT,))
    _add(plan, random, duration_ms, 100, 3, (READ_FAULT,))
    _add(plan, random, duration_ms, 250, 2, (FLUSH_FAULT,))
    _add(plan, random, duration_ms, 100, 2, (SPACE_FAULT,))
    _add(plan, random, duration_ms, 150, 2, (SLOW_READERS,))
    for fault in plan.faults:
        if fault.kind in (POWER_IN_TURN, KILL_IN_TURN):
            fault.path_part = places[fault.place % len(places)]
    return plan


def without_loss_of_power(plan: FaultPlan) -> None:
    """Turn losses of power into kills: under flush.policy=os a loss of power may lose records."""
    for fault in plan.faults:
        if fault.kind in (POWER, POWER_AFTER_CLEAN):
            fault.kind = KILL
        elif fault.kind == POWER_IN_TURN:
            fault.kind = KILL_IN_TURN
        elif fault.kind == POWER_IN_FLUSH:
            fault.kind = KILL_IN_FLUSH
    plan.faults = [fault for fault in plan.faults if fault.kind != FLUSH_FAULT]
    plan.crash_in_start_per_mille = 0
    plan.may_lose_power = False
    if plan.last_end:
        plan.last_end = KILL


def add_damages(plan: FaultPlan, duration_ms: int) -> None:
    """Add damaged answers to fetches, damaged index files, or a lack of descriptors, in some runs.

    `duration_ms` chooses these runs, so that nothing more is drawn and the rest stays the same.
    """
    for kind, is_chosen in (
        (DAMAGE, duration_ms % 4 == 1),
        (INDEX_FAULT, duration_ms % 5 == 1 and plan.faults),
        (FEW_FILES, duration_ms % 6 == 0 and plan.faults),
    ):
        for number in range(1 + duration_ms % 3 if is_chosen else 0):
            fault = Fault(duration_ms * (number + 1) // 4, kind)
            fault.number = duration_ms // 4 if kind == FEW_FILES else 1
            fault.place = duration_ms // 7 % _FILES_PER_TURN_MAX
            plan.faults.append(fault)


def add_clock_steps(plan: FaultPlan, random: Random, duration_ms: int) -> None:
    """Add small steps of the calendar, back and forth, in some runs."""
    if random.randrange(5) >= 2:
        return
    for _ in range(1 + random.randrange(4)):
        fault = Fault(random.randrange(duration_ms), CLOCK_JUMP)
        fault.number = _STEPS_MS[random.randrange(len(_STEPS_MS))]
        plan.faults.append(fault)


def spoil_an_index(disk: SimulatedDisk, random: Random) -> str:
    """Flip a bit of some index file, or remove the file; return the words for the trace."""
    paths = [
        path
        for directory in disk.paths()
        if directory.endswith("/")
        for path in disk.paths(directory)
        if path.endswith(_INDEX_SUFFIXES)
    ]
    if not paths:
        return "there is no index to spoil"
    path = paths[random.randrange(len(paths))]
    size = len(disk.content(path))
    if size == 0 or random.randrange(3) == 0:
        disk.lose_file(path)
        return f"{path} is lost"
    disk.flip_bit(path, random.randrange(size), random.randrange(8))
    return f"{path} is damaged"


def _add(
    plan: FaultPlan,
    random: Random,
    duration_ms: int,
    per_mille: int,
    count_max: int,
    kinds: tuple[str, ...],
) -> None:
    """Add faults of these kinds, at random times, in `per_mille` of 1,000 seeds."""
    if random.randrange(1000) >= per_mille:
        return
    for _ in range(1 + random.randrange(count_max)):
        kind = kinds[random.randrange(len(kinds))]
        fault = Fault(random.randrange(duration_ms), kind)
        if kind == STALL:
            # Clients give up after some seconds.  A shorter stall ends while they still wait.
            fault.number = 1_100 + random.randrange(30_000 if random.randrange(4) == 0 else 3_000)
        elif kind == CLOCK_JUMP:
            fault.number = _JUMPS_MS[random.randrange(len(_JUMPS_MS))]
        elif kind in (SPACE_FAULT, SLOW_READERS):
            fault.number = 50 + random.randrange(1_000)
        elif kind in (POWER_IN_TURN, KILL_IN_TURN):
            fault.number = random.randrange(8)
            fault.place = random.randrange(len(PLACES))
        else:
            fault.number = 1 + random.randrange(3)
        plan.faults.append(fault)
