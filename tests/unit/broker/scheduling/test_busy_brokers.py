"""Releases beside requests that come in each turn, and the memory of what is to be parked."""

from __future__ import annotations

import tracemalloc

from tests.support.broker.broker_user import ORDERS, a_batch
from tests.support.broker.schedule_user import ScheduleUser

from tarry.base import doors
from tarry.broker.scheduling.scheduling import RELEASED_PER_TURN_MAX
from tarry.log.batch_walk import Flaw
from tarry.log.compaction.effort import Effort
from tarry.partition.recompression import Recompression
from tarry.protocol import api_keys
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tarry.simulation.by_hand import START_WALL_MS
from tarry.wire.compression import GZIP
from tarry.wire.reader import window_of


class Busy(ScheduleUser):
    """A user of a broker that has a request in each turn."""

    def step(self, api_key: int, version: int, request: object, ms: int) -> None:
        frame = self.client.encode(api_key, version, request)  # type: ignore[arg-type]
        flushed = self.hand.disk.complete_flushes()
        self.hand.turn(doors.received(self.client.connection_id, frame), *flushed, after_ms=ms)


def test_a_busy_broker_releases_as_much_as_it_parks():
    """Each turn brings one batch of 20 records, each due at its own time a moment later."""
    user = Busy()
    log = user.hand.broker.topics[ORDERS].partitions[0].log
    headers = tuple([("x-deliver-after", b"%d" % (50 + n))] for n in range(20))
    request = user.produce_request(a_batch(*[b""] * 20, headers=headers))

    turns = 60
    for _ in range(turns):
        user.step(api_keys.PRODUCE, 11, request, 10)

    overdue = 20 * (turns - 7) - log.log_end_offset
    assert overdue <= 2 * RELEASED_PER_TURN_MAX


def test_partitions_that_cannot_release_do_not_hold_up_those_that_can():
    """The partitions that cannot release are tried first after each retry.  In a second a busy
    broker would look at fewer than there are, if it gave them its whole share of releases.
    """
    user = Busy()
    count = 120
    user.create("sick", count, delay_enable="true", delay_source="header")
    soon = a_batch(b"a", headers=([("x-deliver-after", b"50")],))
    request = user.produce_request(*[soon] * count, topic="sick")
    user.client.ask(api_keys.PRODUCE, 11, request)
    for partition in user.hand.broker.topics["sick"].partitions.values():
        partition.log.note_flaw(Flaw("damaged", 0, 0))
    user.park(b"healthy", 60)
    log = user.hand.broker.topics[ORDERS].partitions[0].log

    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    ask = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(ORDERS, [asked])])
    for _ in range(100):
        user.step(api_keys.LIST_OFFSETS, 10, ask, 100)

    assert log.log_end_offset == 1


def test_a_batch_with_one_due_time_holds_its_opened_records_no_longer_than_it_says():
    user = ScheduleUser()
    partition = user.hand.broker.topics[ORDERS].partitions[0]
    headers = ([("x-deliver-after", b"5000")],)
    window = window_of(a_batch(bytes(8_000_000), headers=headers, codec=GZIP))

    tracemalloc.start()
    made = Recompression(partition, window, 11, START_WALL_MS)
    while not made.try_finish(Effort()):
        pass
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held < made.new_bytes + 1_000_000
