"""Scenario of a replicated cluster: topic, clients and faults, drawn from the seed.

Each seed has some kinds of faults and not others, so that none hides another.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.simulation import faults

# Of one broker: how its life ends, what it cannot reach for a while, what its disk refuses.
KILL: Final = faults.KILL
POWER: Final = faults.POWER
CLEAN: Final = faults.CLEAN
POWER_AFTER_CLEAN: Final = faults.POWER_AFTER_CLEAN
POWER_IN_FLUSH: Final = faults.POWER_IN_FLUSH
FLUSH_FAULT: Final = faults.FLUSH_FAULT
STALL: Final = faults.STALL
AWAY: Final = "away"
NEW_DISK: Final = "new disk"
CUT_OFF: Final = "cut off from etcd"
LOST_ANSWERS: Final = "lost answers of etcd"
# Of the links between brokers: one direction, both, or all of a broker's.
DEAF: Final = "deaf"
APART: Final = "apart"
ALONE: Final = "alone"
# A leader is alone, writes on, and dies.
DIVIDED: Final = "divided"
# A broker loses power soon after it has cut a log.
POWER_AFTER_CUT: Final = "power after a cut"
# Of all.
ALL_POWER: Final = "power of all"
ETCD_AWAY: Final = "etcd away"
COMPACTED: Final = "compacted history"
# Of etcd to one broker: its history is compacted before the broker comes back; its watch tells
# nothing for a while, or everything once more; a transaction is done long after it was asked for.
COMPACTED_AWAY: Final = "history compacted while away"
LATE_WATCH: Final = "late watch"
DOUBLED_WATCH: Final = "doubled watch"
LATE_DEED: Final = "late deed"
LATE_ADDITION: Final = "late addition"
# Two brokers do not hear each other, nor one of them etcd; only the third reaches all.
BRIDGE: Final = "bridge"
# A broker hears neither etcd nor the others; its clients hear it.
ISOLATED: Final = "isolated"
# All but one are away until it is in sync alone, then it is away and they come back.
STRANDED: Final = "stranded"
# Not a moment, but of the whole run: clocks that are up to 5 % off, a topic made again and again.
CLOCKS_OFF: Final = "clock off"
TOPIC_MADE_AGAIN: Final = "topic made again"

KINDS: Final = (
    KILL,
    POWER,
    CLEAN,
    POWER_AFTER_CLEAN,
    POWER_IN_FLUSH,
    FLUSH_FAULT,
    STALL,
    AWAY,
    NEW_DISK,
    CUT_OFF,
    LOST_ANSWERS,
    DEAF,
    APART,
    ALONE,
    DIVIDED,
    ALL_POWER,
    ETCD_AWAY,
    COMPACTED,
    COMPACTED_AWAY,
    LATE_WATCH,
    DOUBLED_WATCH,
    LATE_DEED,
    BRIDGE,
    ISOLATED,
)
# A third of the seeds has all of these besides.
_ETCD_KINDS: Final = (COMPACTED_AWAY, LATE_WATCH, DOUBLED_WATCH, LATE_DEED, LATE_DEED)
# Seeds with absences that outlast a lease by far.
_LONG_KINDS: Final = (CUT_OFF, ISOLATED, ISOLATED, AWAY)

_FLUSHES_MS_MAX: Final = (3, 3, 60, 300)
# Bytes of each batch; 0: as they come.  Batches as long as a sector of a disk let a crash leave a
# mixture of two histories that looks like one.
_BATCHES_BYTES: Final = (0, 0, 512)
_MOST_PERCENT: Final = 90
_AWAY_MS_MAX: Final = 4_000
_LONG_AWAY_MS_MAX: Final = 9_000
_DRIFT_PER_MILLE_MAX: Final = 50


class ClusterScenario:
    """Scenario of one seed."""

    # Some seeds lose records on purpose, by unclean elections.
    may_be_unclean = True

    def __init__(self, random: Random) -> None:
        # Of each broker.
        self.broker_settings: dict[str, str] = {}
        self.partitions = 1 + random.randrange(3)
        self.floor = 1 + random.randrange(2)
        self.lag_ms = (1_500, 3_000)[random.randrange(2)]
        self.flush_ms_max = _FLUSHES_MS_MAX[random.randrange(len(_FLUSHES_MS_MAX))]
        self.delay_ms_max = (2, 2, 20)[random.randrange(3)]
        self.batch_bytes = _BATCHES_BYTES[random.randrange(len(_BATCHES_BYTES))]
        self.producer_acks: tuple[str, ...] = (
            ("all", "1") if random.randrange(2) else ("all", "all", "1")
        )
        self.producer_pause_ms_max = (40, 150)[random.randrange(2)]
        self.deletes_records = random.randrange(4) == 0
        self.is_unclean = random.randrange(8) == 0 and self.may_be_unclean
        self.duration_ms = 2_500 + random.randrange(2_500)
        self.pause_ms_max = (300, 900)[random.randrange(2)]
        # So many of a hundred cuts are followed by a loss of power.
        self.power_after_cut_percent = (0, 50, _MOST_PERCENT)[random.randrange(3)]
        count = 2 + random.randrange(6)
        self.kinds = random.sample(KINDS, count)
        if self.power_after_cut_percent == _MOST_PERCENT:
            # Cuts are long on their way to the disk, and many; what is written behind them looks
            # like what was there.
            self.flush_ms_max = max(_FLUSHES_MS_MAX)
            self.batch_bytes = max(_BATCHES_BYTES)
            self.producer_pause_ms_max = 40
            self.kinds = [self.kinds[0], DIVIDED, DIVIDED, DIVIDED]
            self.pause_ms_max = 300
            self.partitions = 3
        self._draw_of_etcd(random)
        if self.is_unclean:
            # Losses are meant to happen.
            self.floor = 1
            self.lag_ms = 1_500
            self.duration_ms += 4_000
            self.kinds.append(STRANDED)
        if self.floor == 1:
            # Who is in sync alone loses everything with its disk.
            self.kinds = [kind for kind in self.kinds if kind != NEW_DISK] or [KILL]

    def _draw_of_etcd(self, random: Random) -> None:
        """Draw what favours faults of etcd and of lives: rarer ones than a broker's end."""
        # Cuts of logs are rare enough where nothing else takes their time.
        is_of_cuts = self.power_after_cut_percent == _MOST_PERCENT
        if random.randrange(3) == 0 and not is_of_cuts:
            self.kinds += _ETCD_KINDS
        # Whoever comes back is written to be in sync late, when it may not be any more.
        self.delays_additions = random.randrange(6) == 0 and not self.is_unclean and not is_of_cuts
        if self.delays_additions:
            # Of one partition, so that who comes back is nowhere else in sync.
            self.partitions = 1
            self.lag_ms = 1_500
            self.pause_ms_max = 1_500
            self.duration_ms += 3_000
            self.kinds = [*random.sample(self.kinds, 1), KILL, KILL, AWAY]
        self.away_ms_max = _AWAY_MS_MAX
        if random.randrange(5) == 0 and not is_of_cuts:
            # Long enough for who is away to be found out, if it goes on as if it was not.
            self.away_ms_max = _LONG_AWAY_MS_MAX
            self.duration_ms += 4_000
            self.pause_ms_max = 2_500
            self.kinds = [*random.sample(self.kinds, 2), *_LONG_KINDS]
        # How often a topic is made that is deleted again soon.
        self.remakes_topic = random.randrange(5) == 0 and not is_of_cuts
        # Of each broker in turn: so much its clock is faster, or slower.
        self.drifts_per_mille = [0, 0, 0]
        if random.randrange(3) == 0:
            self.drifts_per_mille = [
                random.randrange(2 * _DRIFT_PER_MILLE_MAX + 1) - _DRIFT_PER_MILLE_MAX
                for _ in self.drifts_per_mille
            ]
