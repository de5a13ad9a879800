"""Recurring records that are cancelled by the API, of a broker that ends and fails in every way.

Each answer is held against what comes afterwards: what was cancelled comes no more, what is already
released has come each time, and what is unknown was taken back before or never taken.
"""

from __future__ import annotations

import pytest
from tests.model.test_recurring_broker import STEPS, Defined, Life, check
from tests.support.broker.broker_user import ORDERS
from tests.support.broker.schedule_user import cancel, move, outcome_of, results_of

from tarry.partition.replicated_log import COMPANION
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.change_scheduled_records import (
    ChangedSchedulePartition,
    ChangedScheduleTopic,
    ChangeScheduledRecordsRequest,
    ScheduledChange,
)

SEEDS = range(100, 140)
# More than the clock moves in one life.
FAR_MS = 10**9


class ChangedLife(Life):
    """Life whose recurring records are cancelled by requests; `words` counts the answers."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.words: dict[str, int] = {}

    def cancel(self) -> None:
        if not self.defined:
            return
        defined = self.chance.choice(self.defined)
        name = defined.value.replace(b"d", b"i").decode()
        if self.chance.random() < 0.2:
            # It changes nothing.
            assert self.ask(move(name, 10**9)) not in ("moved", "cancelled")
            return
        word = self.ask(cancel(name))
        self.words[word] = self.words.get(word, 0) + 1
        now_ms = self.user.hand.now_wall_ms
        if word == "cancelled":
            assert defined.cancelled_ms < 0
            defined.cancelled_ms = now_ms
        elif word == "already_released":
            assert defined.due_times(now_ms) == defined.due_times(now_ms + FAR_MS)
            return
        elif word == "unknown":
            assert self.may_be_unknown(defined)
            return
        if defined.cancel_sent_ms < 0:
            defined.cancel_sent_ms = now_ms

    def may_be_unknown(self, defined: Defined) -> bool:
        if defined.cancel_sent_ms >= 0 or not defined.is_acknowledged:
            return True
        now_ms = self.user.hand.now_wall_ms
        has_ended = defined.due_times(now_ms) == defined.due_times(now_ms + FAR_MS)
        log = self.user.hand.broker.topics[ORDERS].partitions[0].leadership.logs[COMPANION].log
        # The log of what waits does not keep what has ended.
        return has_ended and log.log_start_offset > 0

    def ask(self, change: ScheduledChange) -> str:
        """Ask for a change; return its outcome, the name of an error, or "" without an answer."""
        user = self.user
        partition = ChangedSchedulePartition(0, [change])
        topic = ChangedScheduleTopic(ORDERS, [partition])
        request = ChangeScheduledRecordsRequest(60_000, [topic])
        user.client.send(api_keys.CHANGE_SCHEDULED_RECORDS, 0, request)
        answers: list[Message] = []
        for _ in range(30):
            answers += user.answers()
            if not user.client._asked:
                return outcome_of(*results_of(answers[-1]))
            user.turn(self.chance.choice((0, 0, 500)))
        return ""


@pytest.mark.parametrize("seed", SEEDS)
def test_each_answer_about_a_recurring_record_stays_true(seed: int) -> None:
    life = ChangedLife(seed)
    for _ in range(STEPS):
        life.step()

    check(life)
