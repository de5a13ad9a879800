"""Scenario of a replicated cluster: topic, clients and faults, drawn from the seed.

Each seed has some kinds of faults and not others, so that none hides another.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.client.settings import SettingValue
from tarry.simulation import faults

# Faults of one broker: how its life ends, what it cannot reach for a while, what its disk refuses.
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
# Faults of the links between brokers: one direction, both, or all links of a broker.
DEAF: Final = "deaf"
APART: Final = "apart"
ALONE: Final = "alone"
# A leader is alone, writes on, and dies.
DIVIDED: Final = "divided"
# A broker loses power soon after it has cut a log.
POWER_AFTER_CUT: Final = "power after a cut"
# Faults of all brokers.
ALL_POWER: Final = "power of all"
ETCD_AWAY: Final = "etcd away"
COMPACTED: Final = "compacted history"
# Faults of etcd to one broker: its history is compacted before the broker comes back; its watch is
# silent for a while, or repeats its events; a transaction is done long after it was asked for.
COMPACTED_AWAY: Final = "history compacted while away"
LATE_WATCH: Final = "late watch"
DOUBLED_WATCH: Final = "doubled watch"
LATE_DEED: Final = "late deed"
LATE_ADDITION: Final = "late addition"
# Etcd stands still for longer than a session, and ends all lives when it wakes.
FROZEN: Final = "frozen etcd"
# Two brokers do not reach each other, nor one of them etcd; only the third reaches all.
BRIDGE: Final = "bridge"
# A broker reaches neither etcd nor the other brokers; only its clients reach it.
ISOLATED: Final = "isolated"
# All brokers but one are away until it is alone in sync; then it is away and the others come back.
STRANDED: Final = "stranded"
# A process stands still while the answer of a renewal is on its way to it.
STALLED_RENEWED: Final = "stall behind a renewal"
# A broker's flushes take nearly as long as a follower may lag.
SLOW_DISK: Final = "slow disk"
# REFUSED_DIRECTORY, FEW_FILES: a broker's disk refuses the directory of a partition, or its process
# has few descriptors left.  LATE_CLAIM: a leader goes away, and the broker that claims its
# partitions is cut off from etcd, with the claim under way, until its own life is over.
REFUSED_DIRECTORY: Final = "refused directory"
FEW_FILES: Final = faults.FEW_FILES
LATE_CLAIM: Final = "late claim"
# Fewer replicas live than a topic asks for, for an hour.
TOO_FEW: Final = "too few in sync for an hour"
# Conditions of a whole run: clocks up to 5 % off, a topic made again and again, an operator.
CLOCKS_OFF: Final = "clock off"
TOPIC_MADE_AGAIN: Final = "topic made again"
OPERATED: Final = "operated"

# Settings of whole runs; each favours something that is rare in all other runs.
OF_DISKS: Final = "disks"
OF_AN_HOUR: Final = "hour"
OF_SHORT_FETCHES: Final = "short fetches"
OF_ISOLATION: Final = "isolation"
OF_CHANGES: Final = "changes"

HOUR_MS: Final = 3_600_000

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
# A third of the seeds has all of these in addition.
_ETCD_KINDS: Final = (COMPACTED_AWAY, LATE_WATCH, DOUBLED_WATCH, LATE_DEED, LATE_DEED)
# Faults of seeds whose absences outlast a lease by far.
_LONG_KINDS: Final = (CUT_OFF, ISOLATED, ISOLATED, AWAY)

_FLUSHES_MS_MAX: Final = (3, 3, 60, 300)
# Bytes of each batch; 0 if sizes vary.  Batches as long as a sector of a disk let a crash leave a
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
        # Settings of each broker.
        self.broker_settings: dict[str, str] = {}
        self.is_operated = self.prefers_leaders = self.strikes_two = False
        # Settings of the topic that producers write to.
        self.topic_configs: dict[str, str] = {}
        # Times from now until producers' records are due; empty if records have no due time.
        self.delays_ms: tuple[int, ...] = ()
        # True if only single disks fail: what other brokers have must be served.
        self.is_of_disks = False
        # True if the only fault is that too few replicas live for an hour.
        self.is_of_an_hour = False
        # Settings of all clients of the product.
        self.client_settings: dict[str, SettingValue] = {}
        # True if late deeds are only those of the topic that is deleted and made again.
        self.delays_deleted = False
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
        # Percentage of cuts that are followed by a loss of power.
        self.power_after_cut_percent = (0, 50, _MOST_PERCENT)[random.randrange(3)]
        count = 2 + random.randrange(6)
        self.kinds = random.sample(KINDS, count)
        if self.power_after_cut_percent == _MOST_PERCENT:
            # There are many cuts, and they wait long for the disk; batches written behind them look
            # like those that were cut.
            self.flush_ms_max = max(_FLUSHES_MS_MAX)
            self.batch_bytes = max(_BATCHES_BYTES)
            self.producer_pause_ms_max = 40
            self.kinds = [self.kinds[0], DIVIDED, DIVIDED, DIVIDED]
            self.pause_ms_max = 300
            self.partitions = 3
        self._draw_of_etcd(random)
        if self.is_unclean:
            # Losses of records are meant to happen in these runs.
            self.floor = 1
            self.lag_ms = 1_500
            self.duration_ms += 4_000
            self.kinds.append(STRANDED)
        if self.floor == 1:
            # A broker that is alone in sync would lose everything with its disk.
            self.kinds = [kind for kind in self.kinds if kind != NEW_DISK] or [KILL]

    def widen(self, random: Random) -> None:
        """Draw more, from a seed of its own: a run that gets nothing of it stays as it was."""
        self.is_operated = random.randrange(4) == 0
        self.operator_pause_ms_max = (300, 1_500)[random.randrange(2)]
        # Brokers by themselves, too, give leadership back to preferred replicas.
        self.prefers_leaders = self.is_operated and random.randrange(3) == 0
        # Each fault comes with another one, of another broker.
        self.strikes_two = random.randrange(4) == 0
        kind = random.randrange(6)
        if kind == 0:
            self.kinds += [STALLED_RENEWED, STALLED_RENEWED]
        elif kind == 1:
            # Few other kinds stay: a stop waits for slow flushes, and after a start there are none.
            short = [each for each in self.kinds if each in (APART, LATE_WATCH, AWAY)]
            self.kinds = [*short, SLOW_DISK]
            self.lag_ms = 1_500
            self.duration_ms += 4_000
            self.pause_ms_max = 900
        elif kind == 2:
            self.kinds += [LATE_CLAIM, LATE_CLAIM]
        elif kind == 5 and random.randrange(5) == 0:
            self._draw_of_disks(random)
        elif (
            kind == 4 and self.may_be_unclean and not self.delays_additions and self.partitions < 3
        ):
            # A broker that led alone comes back, and another one was elected without it.
            self.is_unclean = True
            self.floor = 1
            self.lag_ms = 1_500
            self.duration_ms += 4_000
            self.kinds = [each for each in self.kinds[:1] if each != NEW_DISK]
            self.kinds += [STRANDED, STRANDED]
        elif kind == 3:
            # The topic is deleted while its leaders change.
            self.remakes_topic = self.delays_deleted = True
            self.kinds += [LATE_DEED, LATE_DEED, LATE_DEED, CUT_OFF, KILL, KILL]
        elif kind == 4:
            # Other faults are mostly over before etcd freezes, so that all can be compared.
            self.kinds = [*self.kinds[:2], FROZEN, FROZEN]
            self.duration_ms += 12_000
            self.pause_ms_max = 2_500
            self.drifts_per_mille = [0, 0, 0]

    def favour(self, setting: str, random: Random) -> None:
        """Give the whole run one setting, in place of what was drawn before."""
        {
            OF_DISKS: self._draw_of_disks,
            OF_AN_HOUR: self._draw_of_an_hour,
            OF_SHORT_FETCHES: self._draw_of_short_fetches,
            OF_ISOLATION: self._draw_of_isolation,
        }[setting](random)

    def _draw_of_short_fetches(self, random: Random) -> None:
        """Let replicas copy batch by batch, so that one that comes back passes every offset."""
        self.kinds = [DEAF, KILL, DIVIDED]
        self.is_operated = self.prefers_leaders = self.delays_additions = False
        self.is_unclean = self.remakes_topic = False
        self.strikes_two = True
        self.floor = 2
        self.lag_ms = 1_500
        self.power_after_cut_percent = 0
        self.producer_pause_ms_max = 40
        self.duration_ms = 8_000
        self.broker_settings = {
            **self.broker_settings,
            "replica.fetch.max.bytes": "1",
            "replica.fetch.response.max.bytes": "1",
        }

    def _draw_of_isolation(self, random: Random) -> None:
        """Cut single brokers off from all but their clients, for longer than their lives last."""
        self.kinds = [ISOLATED]
        self.is_operated = self.prefers_leaders = self.delays_additions = False
        self.strikes_two = self.is_unclean = self.remakes_topic = False
        self.power_after_cut_percent = 0
        self.away_ms_max = _LONG_AWAY_MS_MAX
        self.duration_ms = 12_000
        self.pause_ms_max = 4_000

    def _draw_of_an_hour(self, random: Random) -> None:
        """Draw an hour with too few replicas, in which little else happens."""
        self.is_of_an_hour = True
        self.kinds = [TOO_FEW]
        self.is_operated = self.prefers_leaders = self.strikes_two = False
        self.is_unclean = self.delays_additions = self.remakes_topic = False
        self.deletes_records = False
        self.floor = 2
        self.power_after_cut_percent = 0
        self.duration_ms = HOUR_MS + 20_000
        self.pause_ms_max = 4_000
        self.producer_pause_ms_max = 20_000
        self.broker_settings = {
            **self.broker_settings,
            "broker.session.timeout.ms": "9000",
            "broker.heartbeat.interval.ms": "2000",
        }
        self.client_settings = {
            "request.timeout.ms": 10_000,
            "metadata.max.age.ms": 60_000,
            "reconnect.backoff.max.ms": 10_000,
            "retry.backoff.ms": 1_000,
            "retry.backoff.max.ms": 10_000,
        }

    def _draw_of_disks(self, random: Random) -> None:
        self.is_of_disks = True
        self.kinds = [REFUSED_DIRECTORY, REFUSED_DIRECTORY, FEW_FILES]
        self.is_operated = self.prefers_leaders = self.delays_additions = False
        self.is_unclean = False
        self.power_after_cut_percent = 0
        self.remakes_topic = True
        self.duration_ms = 10_000 + random.randrange(4_000)
        self.pause_ms_max = 2_500

    def _draw_of_etcd(self, random: Random) -> None:
        """Draw faults of etcd and of lives, which are rarer than the end of a broker."""
        # Seeds that favour cuts of logs get none of these faults, so that cuts have their time.
        is_of_cuts = self.power_after_cut_percent == _MOST_PERCENT
        if random.randrange(3) == 0 and not is_of_cuts:
            self.kinds += _ETCD_KINDS
        # True if a broker that comes back is written into the isr late, when it may be behind.
        self.delays_additions = random.randrange(6) == 0 and not self.is_unclean and not is_of_cuts
        if self.delays_additions:
            # With one partition, a broker that comes back is in sync nowhere else.
            self.partitions = 1
            self.lag_ms = 1_500
            self.pause_ms_max = 1_500
            self.duration_ms += 3_000
            self.kinds = [*random.sample(self.kinds, 1), KILL, KILL, AWAY]
        self.away_ms_max = _AWAY_MS_MAX
        if random.randrange(5) == 0 and not is_of_cuts:
            # Long enough to find out a broker that is away and goes on as if it was not.
            self.away_ms_max = _LONG_AWAY_MS_MAX
            self.duration_ms += 4_000
            self.pause_ms_max = 2_500
            self.kinds = [*random.sample(self.kinds, 2), *_LONG_KINDS]
        # True if a topic is made and deleted again and again.
        self.remakes_topic = random.randrange(5) == 0 and not is_of_cuts
        # Drift of each broker's clock, in per mille; a positive drift is a faster clock.
        self.drifts_per_mille = [0, 0, 0]
        if random.randrange(3) == 0:
            self.drifts_per_mille = [
                random.randrange(2 * _DRIFT_PER_MILLE_MAX + 1) - _DRIFT_PER_MILLE_MAX
                for _ in self.drifts_per_mille
            ]
