"""Parts of the model: what a replica has, what a producer remembers, and the faults to plant."""

from __future__ import annotations

from collections import namedtuple
from typing import Final

Row = namedtuple("Row", "leader life epoch isr unclean")
P, S = 0, 1
# P: (epoch, "D", value, (pid, seq), due)  (epoch, "R", value, None, s-offset)
# S: (epoch, "K", value, (pid, seq), due)  (epoch, "C", s-offset)  (epoch, "N", c, c_epoch, W, E)
#    (epoch, "A") asked for an id that is not there

FAULTS: Final = {
    "release_uncommitted": "a body is released before the high watermark of S has passed it",
    "checkpoint_uncommitted": "a checkpoint covers releases above the high watermark of P",
    "watermark_too_wide": "W is applied to bodies parked behind the checkpoint",
    "exceptions_forgotten": "the exceptions below W are not kept",
    "retention_overtakes": "P's start passes releases that only an uncommitted checkpoint covers",
    "compaction_eager": "a body goes when its release is written, not when it is committed",
    "no_gap_fill": "a torn pair: the missing sequence is refused as out of order",
    "own_log_only": "a retry is looked up in the log that it would go to, not in both",
    "cancelled_at_once": "`cancelled` is answered before the note is committed",
    "released_at_once": "`already_released` is answered before the release is committed",
    "unknown_at_once": "`unknown` is answered by a leader that may have been deposed",
    "join_by_p": "a replica joins the isr by its end of P alone",
    "hw_of_leader": "the high watermark of S is the leader's own flushed end",
    "warm_state_kept": "what was released is not rolled back when P is cut",
    "scan_to_hw": "a new leader looks for releases up to its high watermark only",
    "no_epoch_rule": "a release counts for whatever body has its s-offset now (unclean election)",
    "no_c_check": "a checkpoint counts though P is not the log that it speaks of (unclean)",
    "stale_deadline": "the calendar is not asked again when a deadline comes",
    "cancel_by_p_blind": "a cancel looks at bodies and notes alone, not at what was released",
}


class Violation(Exception):
    """What must never happen, and has."""


class Replica:
    """Both logs of one replica, and what its broker remembers while it leads."""

    def __init__(self, rid):
        self.id = rid
        self.alive = True
        self.life = 1
        self.log = [[], []]
        self.fl = [0, 0]  # flushed ends
        self.hw = [0, 0]
        self.start = 0  # log start of P
        self.skew = 0
        self.known = None
        self.gone = set()  # (s, epoch) of bodies that compaction took
        self.led_epoch = -1
        self.stale = {}  # only for warm_state_kept
        self.forget()

    def forget(self):
        self.ends = {}
        self.first = [0, 0]
        self.parks, self.pending, self.released, self.cancelled = {}, {}, {}, {}
        self.old = set()
        self.by_value = {}
        self.waits = []
        self.led_epoch = -1


class Client:
    """Idempotent producer with five requests under way."""

    def __init__(self, pid):
        self.pid = pid
        self.next_seq = 0
        self.open = []  # batches not acknowledged, by sequence
        self.conn = None  # (replica id, life, number)
        self.epoch = -1  # the newest leader epoch it knows: it never goes back (KIP-320)
        self.queue = []
