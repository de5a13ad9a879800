"""Checker of leaks: operations of closed connections, and entries of the timer wheel.

It looks at the broker after every turn.
"""

from __future__ import annotations

from typing import Final

from tarry.broker.broker import Broker
from tarry.broker.kafka_connection import KafkaConnection
from tarry.broker.membership.membership import TIMER_ENTRIES_MAX
from tarry.protocol import api_keys

# Purgatories in which only requests of connections wait, with the API key of these requests.
_ASKED_BY: Final = {"Fetch": api_keys.FETCH, "DeleteRecords": api_keys.DELETE_RECORDS}
# Most watch keys of an operation, which has one for each of its partitions.
_KEYS_MAX: Final = 20


class LeakChecker:
    """Checker that knows how many entries of the timer are duties of the broker itself."""

    def __init__(self) -> None:
        self._duties = 0

    def on_life_begins(self, broker: Broker) -> None:
        """Count the duties of a broker that has no connection yet."""
        self._duties = len(broker.timer)

    def after_turn(self, broker: Broker) -> list[str]:
        """Return a sentence for each purgatory that holds too much, and for the wheel."""
        sentences: list[str] = []
        connections = len(broker.answers.connections)
        unanswered: dict[int, int] = {}
        for connection in broker.answers.connections.values():
            assert isinstance(connection, KafkaConnection)
            for context in connection.waiting_slots():
                unanswered[context.api_key] = unanswered.get(context.api_key, 0) + 1
        delayed = 0
        for purgatory in broker.parts.purgatories():
            delayed += purgatory.delayed
            asked = unanswered.get(_ASKED_BY.get(purgatory.name, -1), 0)
            if purgatory.name in _ASKED_BY and purgatory.delayed > asked:
                sentences.append(
                    f"{purgatory.delayed} operations wait in purgatory {purgatory.name}, and "
                    f"{asked} such requests of living connections have no answer"
                )
            watched_max = purgatory.delayed * _KEYS_MAX + 2 * purgatory.purge_interval
            if purgatory.watched > watched_max:
                sentences.append(
                    f"{purgatory.watched} operations are watched in purgatory {purgatory.name}, "
                    f"and {purgatory.delayed} wait"
                )
        retries = broker.hosting.retries.waiting
        entries_max = delayed + connections + self._duties + retries
        entries_max += broker.scheduling.timer_entries_max
        if broker.neighbours.membership is not None:
            entries_max += TIMER_ENTRIES_MAX
        if len(broker.timer) > entries_max:
            sentences.append(
                f"the wheel holds {len(broker.timer)} entries for {delayed} operations, "
                f"{connections} connections, {self._duties} duties and {retries} retries"
            )
        return sentences
