"""Faults planted into the product's own client one at a time, as in `planted_faults.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base import errors
from tarry.client.core.consumer.core import ConsumerCore
from tarry.client.core.consumer.fetch_exchange import FetchExchange
from tarry.client.core.consumer.lookup import LATEST
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.group.events import REVOKED, GroupEvent
from tarry.client.core.group.membership import Membership
from tarry.client.core.group.offsets.committer import Committer
from tarry.client.core.group.ownership import Ownership
from tarry.client.core.group.poll import Poll
from tarry.client.core.operation import Callback, Done
from tarry.client.core.producer.batch import UNSEQUENCED, ProducerBatch
from tarry.client.core.producer.identity import ProducerIdentity
from tarry.client.core.producer.produce import ProduceExchange
from tarry.client.core.producer.queue import PartitionQueue
from tarry.client.core.producer.sender import Sender
from tarry.link.errors import ClientError
from tarry.protocol.messages.fetch import FetchResponse
from tarry.protocol.messages.produce import ProduceResponse

# --- Producer


def number_a_batch_anew_when_it_is_repeated() -> None:
    honest = PartitionQueue.number

    def number(self: PartitionQueue, batch: ProducerBatch) -> None:
        if batch.attempts > 0:
            batch.base_sequence = UNSEQUENCED
        honest(self, batch)

    PartitionQueue.number = number


def give_a_sequence_twice() -> None:
    """The broker takes the next batch for one that it has: its records are lost in silence."""
    honest = PartitionQueue.number

    def number(self: PartitionQueue, batch: ProducerBatch) -> None:
        is_new = batch.base_sequence == UNSEQUENCED
        honest(self, batch)
        if is_new and self.batches_made % 7 == 0:
            self.next_sequence = batch.base_sequence

    PartitionQueue.number = number


def count_a_lost_answer_as_an_acknowledgement() -> None:
    def on_failure(
        self: Sender, queue: PartitionQueue, batch: ProducerBatch, error: ClientError, now_ms: int
    ) -> None:
        self.on_acknowledged_by_nobody(queue, batch)

    Sender.on_failure = on_failure


def take_the_answer_for_the_batch_of_another_partition() -> None:
    honest = ProduceExchange._answers

    def answers(self: ProduceExchange, response: ProduceResponse) -> dict[object, object]:
        found = honest(self, response)
        places = list(found)
        return {place: found[places[place_number - 1]] for place_number, place in enumerate(places)}

    ProduceExchange._answers = answers


def send_the_next_batch_while_one_is_repeated() -> None:
    """The order is lost: a batch that is repeated does not hold up those behind it."""

    def put_back(self: PartitionQueue, batch: ProducerBatch) -> None:
        batch.forget_sequence()
        self.waiting.append(batch)

    PartitionQueue.put_back = put_back


def number_anew_what_may_be_there_when_another_partition_lost_count() -> None:
    """A new epoch is for all partitions; the answer about this one's batch was lost."""
    honest = PartitionQueue.take_over

    def take_over(self: PartitionQueue, identity: ProducerIdentity) -> bool:
        is_same = (self.producer_id, self.producer_epoch) == (
            identity.producer_id,
            identity.producer_epoch,
        )
        if not is_same and not self.in_flight:
            self.needs_epoch = True
        return honest(self, identity)

    PartitionQueue.take_over = take_over


# --- Consumer


def count_a_fetch_that_left_before_a_seek() -> None:
    honest = FetchExchange.on_response

    def on_response(self: FetchExchange, response: FetchResponse, now_ms: int) -> None:
        for place, position in self._positions.items():
            if self._eras[place] != position.era:
                # A compacted topic has such gaps too, and nobody asks twice about them.
                position.has_gaps = True
                self._eras[place] = position.era
        honest(self, response, now_ms)

    FetchExchange.on_response = on_response


def drop_the_records_of_a_cancelled_poll() -> None:
    """A poll takes its records when they are there, not when its user is given them."""
    honest_step, honest_end = Poll.step, Poll.end

    def step(self: Poll, now_ms: int) -> object:
        self.is_over = True
        found = honest_step(self, now_ms)
        self.is_over = isinstance(found, Done)
        return found

    def end(self: Poll, now_ms: int) -> None:
        if self.is_ready and not self.is_over:
            self._take(now_ms)
        honest_end(self, now_ms)

    Poll.step = step
    Poll.end = end


# --- Member


def count_the_event_of_a_cancelled_poll_as_told() -> None:
    """Its commit was under way, and the next poll does not tell it."""
    Ownership.put_back = Ownership.end


def commit_what_was_only_fetched() -> None:
    def finish_handed_out(self: ConsumerCore) -> None:
        for position in self.fetcher.positions.values():
            position.finish(position.fetch_offset)

    ConsumerCore.finish_handed_out = finish_handed_out


def revoke_without_a_commit() -> None:
    honest = Poll._tell

    def tell(self: Poll, now_ms: int) -> object:
        settings = self._core.consumer_settings
        commits = settings.auto_commit
        settings.auto_commit = False
        step = honest(self, now_ms)
        settings.auto_commit = commits
        return step

    Poll._tell = tell


def lose_a_revocation() -> None:
    """The partitions go, and the user never hears of it."""
    honest = Poll._tell

    def tell(self: Poll, now_ms: int) -> object:
        step = honest(self, now_ms)
        event = step.event if isinstance(step, Callback) else None
        if not isinstance(event, GroupEvent) or event.kind != REVOKED:
            return step
        self.end_callback(now_ms)
        return tell(self, now_ms)

    Poll._tell = tell


def commit_what_is_not_owned() -> None:
    Committer._not_owned = lambda self, places: []


def take_a_refused_heartbeat_for_a_good_one() -> None:
    honest = Membership.on_beat

    def on_beat(self: Membership, code: int, who: object, now_ms: int) -> None:
        if code in (errors.ILLEGAL_GENERATION, errors.UNKNOWN_MEMBER_ID):
            code = errors.NONE
        honest(self, code, who, now_ms)

    def on_commit_refused(self: Membership, code: int, who: object, now_ms: int) -> None:
        pass

    Membership.on_beat = on_beat
    Membership.on_commit_refused = on_commit_refused


def hand_out_without_knowing_the_coordinators_mind() -> None:
    Membership.may_hand_out = lambda self, now_ms: True


def begin_at_the_end_instead_of_the_commit() -> None:
    GroupConsumerCore.begin_at = lambda self, place, position: self.seek_to(place, LATEST)


def begin_anew_at_every_assignment() -> None:
    GroupConsumerCore.begin_at = ConsumerCore.begin_at


def commit_what_a_loop_that_failed_had_not_finished() -> None:
    honest = GroupConsumerCore.begin_close

    def begin_close(
        self: GroupConsumerCore, timeout_ms: int, now_ms: int, *, leave: bool | None
    ) -> object:
        self.finish_handed_out()
        return honest(self, timeout_ms, now_ms, leave=leave)

    GroupConsumerCore.begin_close = begin_close


def give_up_what_is_revoked_before_its_user_is_told() -> None:
    honest = Ownership.begin

    def begin(self: Ownership, generation_id: int) -> GroupEvent | None:
        event = honest(self, generation_id)
        if event is not None and event.kind == REVOKED:
            self.owned = [place for place in self.owned if place not in event.places]
        return event

    Ownership.begin = begin


# A seed that found each.
CLIENTS: Final[dict[Callable[[], None], int]] = {
    number_a_batch_anew_when_it_is_repeated: 2,
    give_a_sequence_twice: 1,
    count_a_lost_answer_as_an_acknowledgement: 4,
    take_the_answer_for_the_batch_of_another_partition: 1,
    send_the_next_batch_while_one_is_repeated: 2,
    number_anew_what_may_be_there_when_another_partition_lost_count: 48,
    count_a_fetch_that_left_before_a_seek: 1,
    drop_the_records_of_a_cancelled_poll: 30,
}

# A seed that found each.
MEMBERS: Final[dict[Callable[[], None], int]] = {
    commit_what_was_only_fetched: 2,
    revoke_without_a_commit: 4,
    lose_a_revocation: 1,
    commit_what_is_not_owned: 4,
    count_the_event_of_a_cancelled_poll_as_told: 1,
    take_a_refused_heartbeat_for_a_good_one: 4,
    hand_out_without_knowing_the_coordinators_mind: 15,
    begin_at_the_end_instead_of_the_commit: 1,
    begin_anew_at_every_assignment: 1,
    commit_what_a_loop_that_failed_had_not_finished: 3,
    give_up_what_is_revoked_before_its_user_is_told: 1,
}
