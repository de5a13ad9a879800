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


# How often each act of a run comes, in thousandths.
WEIGHTS: Final = {
    "produce": 140,
    "serve": 120,
    "fetch": 180,
    "flush": 120,
    "release": 100,
    "tick": 50,
    "cancel": 40,
    "checkpoint": 40,
    "retain": 30,
    "compact": 20,
    "change_isr": 40,
    "learn": 40,
    "crash": 15,
    "restart": 25,
    "lead_again": 25,
    "step_clock": 5,
    "disconnect": 10,
}

# Settings of the runs that look for a fault which is rare in others: factors of these weights, and
# what is drawn otherwise.  These runs have `STEPS_FAVOURED` steps.
FAVOURS: Final = {
    # P is flushed later than S, and a leader that is alone loses power.
    "checkpoint_uncommitted": (
        {
            "retain": 3,
            "crash": 2,
            "restart": 1.5,
            "change_isr": 6,
            "release": 2,
            "fetch": 0.45,
            "learn": 0.3,
            "lead_again": 3,
        },
        {"p_power": 0.9, "floor": 1, "p_flush_both": 0, "takes": 1, "p_write_fail": 0},
    ),
    # Clocks are stepped, and leaders change between checkpoints.
    "watermark_too_wide": (
        {
            "checkpoint": 2,
            "lead_again": 2,
            "produce": 2,
            "step_clock": 12,
            "change_isr": 2,
            "fetch": 6,
            "serve": 0.3,
            "restart": 2,
        },
        {"p_flush_both": 0.8, "p_power": 0.2, "floor": 1},
    ),
    "exceptions_forgotten": (
        {
            "checkpoint": 3,
            "lead_again": 2,
            "crash": 2,
            "restart": 2,
            "step_clock": 4,
            "cancel": 0.2,
        },
        {},
    ),
    # Many cancels name the same few records, while leaders lose power.
    "released_at_once": (
        {"cancel": 8, "crash": 2, "restart": 3, "lead_again": 3, "fetch": 0.5, "flush": 3},
        {"p_power": 0.9, "p_ask_again": 0.7, "floor": 2},
    ),
    # Leaders are deposed and learn it late.
    "unknown_at_once": ({"learn": 0.1, "lead_again": 5, "produce": 2, "crash": 0.3}, {"takes": 4}),
}
STEPS_FAVOURED: Final = 1_500
BATCHES_FAVOURED: Final = 80


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
