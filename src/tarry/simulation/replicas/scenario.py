"""Scenario of readers beside two peers, drawn from the seed."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.client.settings import SettingValue
from tarry.wire import compression

# Faults, by name.
LAG: Final = "lag"
LOST_COPY: Final = "lost copy"
RESTART: Final = "restart"
CUT: Final = "cut"
SLOW: Final = "slow"
STALL: Final = "stall"
# A partition gets another leader; a peer does not learn of new leaders for a while.
MOVE: Final = "move"
LAGGING_PEER: Final = "lagging peer"
_FAULTS: Final = (LAG, LAG, LOST_COPY, LOST_COPY, RESTART, CUT, SLOW, STALL)

_CODECS: Final = (compression.NONE, compression.NONE, compression.ZSTD, compression.LZ4)


class ReplicaScenario:
    """Sizes of one run, and its faults."""

    def __init__(self, random: Random) -> None:
        self.duration_ms = 1_500 + random.randrange(2_500)
        self.partitions = 1 + random.randrange(3)
        self.producers = 1 + random.randrange(3)
        # Longest time between two writes, and between two steps of replication, in ms.
        self.write_ms_max = (30, 200)[random.randrange(2)]
        self.copy_ms_max = (20, 300)[random.randrange(2)]
        self.codec = _CODECS[random.randrange(len(_CODECS))]
        # True if a transaction is still open at the end.
        self.leaves_one_open = random.randrange(3) == 0
        # True if the last copy is lost when all else heals, and comes back after that.
        self.loses_last_copy = random.randrange(2) == 0
        self.readers = [_draw_reader(random) for _ in range(1 + random.randrange(2))]
        # One of so many batches has lost its last record to a compaction; 0 if none has.
        self.compacted_every = 0
        self.faults: list[tuple[int, str]] = []
        for _ in range(random.randrange(6)):
            at_ms = random.randrange(self.duration_ms)
            self.faults.append((at_ms, _FAULTS[random.randrange(len(_FAULTS))]))

    def widen(self, random: Random) -> None:
        """Draw more, from a seed of its own: a run that gets nothing of it stays as it was."""
        if random.randrange(3) == 0:
            for kind in (MOVE, LAGGING_PEER):
                for _ in range(2 + random.randrange(4)):
                    self.faults.append((random.randrange(self.duration_ms), kind))
            self.faults.sort()
            self.compacted_every = (0, 3)[random.randrange(2)]
            # A copy that leads next must not be lost before.
            self.faults = [each for each in self.faults if each[1] != LOST_COPY]
            self.loses_last_copy = False


def _draw_reader(random: Random) -> dict[str, SettingValue]:
    """Draw the settings of a reader; whatever the reset, an offset out of range would show."""
    settings: dict[str, SettingValue] = {
        "bootstrap.servers": "peer-1:9092,peer-2:9092",
        "request.timeout.ms": 2_000,
        "metadata.max.age.ms": (1_000, 5_000)[random.randrange(2)],
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.max.ms": 200,
        "default.api.timeout.ms": 10_000,
        "fetch.max.wait.ms": (50, 500)[random.randrange(2)],
        "max.partition.fetch.bytes": (100, 1_000, 65_536)[random.randrange(3)],
        "auto.offset.reset": ("earliest", "latest", "none")[random.randrange(3)],
        "isolation.level": ("read_committed", "read_committed", "read_uncommitted")[
            random.randrange(3)
        ],
    }
    rack = random.randrange(4)
    if rack:
        settings["client.rack"] = f"rack-{1 + rack % 2}"
    return settings
