"""Requests of a publisher: their steps, for `AdminCore.begin_errand`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tarry.base.errors import (
    ERRORS,
    LEADER_NOT_AVAILABLE,
    MESSAGE_TOO_LARGE,
    NETWORK_EXCEPTION,
    OFFSET_OUT_OF_RANGE,
)
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.brokers import ReadCluster, View
from tarry.client.core.connections import Connections
from tarry.client.core.delays import DescribeDelay
from tarry.client.core.group.assignment.consumer_protocol import by_topic
from tarry.client.core.producer.identity import InitProducerId
from tarry.client.core.publisher.look_back import FetchHeaders, SeenRange
from tarry.client.core.publisher.send import REFUSED, UNCLEAR, SendBatches, SendOutcome
from tarry.client.core.topic import NO_LEADER, ZERO_ID
from tarry.client.errors import BrokerError, TopicRecreated, UnknownTopic
from tarry.link.errand import Outcomes, Steps, until_settled
from tarry.link.errors import ClientError, TimedOut

# Size limit of the batches in one request; a broker takes at most 100 MiB.
REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024

# First offset of a range, and the offset after its last one.
OffsetRange = tuple[int, int]

_SILENT: Final = BrokerError(NETWORK_EXCEPTION, "the leader's answer leaves this partition out")


class PublisherRequests:
    """Steps of one publisher's requests; leaders that are unknown or have moved are looked up."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._view: View | None = None

    def new_producer_id(self) -> Steps[tuple[int, int]]:
        """Request a producer id that no other producer has, with its epoch."""
        call = InitProducerId(-1, -1)
        yield [call]
        if call.error is not None:
            raise call.error
        return call.result

    def delay_source(self, topic: str) -> Steps[int]:
        """Ask how a topic takes records that are due later (`delays.BY_HEADER`, `BY_TIMESTAMP`)."""
        call = DescribeDelay(topic, ZERO_ID)
        yield [call]
        if call.error is not None:
            raise call.error
        return call.result

    def send(
        self, batches: Mapping[TopicPartition, bytes], topic_ids: Mapping[str, bytes]
    ) -> Steps[dict[TopicPartition, SendOutcome]]:
        """Make one attempt to send a batch to each partition; return the outcome of each.

        A leader may find the batches of a request too large together: it opens those whose records
        are due at different times.  A batch that it refuses for that is sent once more, alone.
        """
        outcomes: dict[TopicPartition, SendOutcome] = {}
        view = yield from self._known_view([*batches])
        led, errors = _by_leader(view, list(batches), topic_ids)
        for place, error in errors.items():
            self._view = None
            kind = UNCLEAR if error.is_retriable else REFUSED
            outcomes[place] = SendOutcome(kind, error)
        calls = [
            SendBatches(leader_id, share, topic_ids)
            for leader_id, places in led.items()
            for share in _shares(batches, places)
        ]
        yield calls
        alone = [
            SendBatches(call.target, {place: batch}, topic_ids)
            for call in calls
            if len(call.batches) > 1
            for place, batch in call.batches.items()
            if _is_too_large(_outcome_of(call, place))
        ]
        if alone:
            yield alone
        for call in [*calls, *alone]:
            for place in call.batches:
                outcome = _outcome_of(call, place)
                if outcome.kind == UNCLEAR:
                    self._view = None
                outcomes[place] = outcome
        return outcomes

    def look_back(
        self,
        ranges: Mapping[TopicPartition, OffsetRange],
        topic_ids: Mapping[str, bytes],
        producer_id: int,
    ) -> Steps[dict[TopicPartition, SeenRange | ClientError]]:
        """Read the headers of the batches in these ranges.

        If the time is too short for a range, the part that was read is returned: its `end_offset`
        is smaller.  If nothing of a range could be read, its result is an error.
        """
        seen = {place: SeenRange(first) for place, (first, _) in ranges.items()}

        def is_begun(place: TopicPartition) -> bool:
            return seen[place].end_offset > ranges[place][0]

        def attempt(outcomes: Outcomes[TopicPartition, SeenRange]) -> Steps[None]:
            self._view = None
            try:
                view = yield from self._known_view(outcomes.left)
            except TimedOut as late:
                if not any(is_begun(place) for place in ranges):
                    raise
                for place in outcomes.left:
                    outcomes.settle(place, late)
                return
            led, errors = _by_leader(view, outcomes.left, topic_ids)
            for place, error in errors.items():
                outcomes.settle(place, error)
            while led:
                calls = [
                    FetchHeaders(
                        leader_id,
                        {place: seen[place].end_offset for place in places},
                        topic_ids,
                        producer_id,
                    )
                    for leader_id, places in led.items()
                ]
                yield calls
                led = {}
                for call in calls:
                    left = _take_seen(call, seen, ranges, outcomes)
                    if left:
                        led[call.target] = left

        found = yield from until_settled(Outcomes(ranges, _may_pass), attempt, _late_error)
        for place, answer in found.items():
            if isinstance(answer, TimedOut) and is_begun(place):
                found[place] = seen[place]
        return found

    def _known_view(self, places: list[TopicPartition]) -> Steps[View]:
        """Return a view of the cluster with these topics."""
        view = self._view
        if view is not None and all(topic in view.topics for topic, _ in places):
            return view
        call = ReadCluster(list(by_topic(sorted(places))))
        yield [call]
        call.brokers(self._connections)
        self._view = call.result
        return call.result


def _take_seen(
    call: FetchHeaders,
    seen: dict[TopicPartition, SeenRange],
    ranges: Mapping[TopicPartition, OffsetRange],
    outcomes: Outcomes[TopicPartition, SeenRange],
) -> list[TopicPartition]:
    """Store the ranges in an answer; return the partitions that made progress but are not at their
    end."""
    left: list[TopicPartition] = []
    for place in call.offsets:
        answer = call.error or call.result.get(place, _SILENT)
        if isinstance(answer, ClientError):
            outcomes.settle(place, answer)
            continue
        is_further = answer.end_offset > seen[place].end_offset
        seen[place] = answer.behind(seen[place])
        if seen[place].end_offset >= ranges[place][1]:
            outcomes.settle(place, seen[place])
        elif is_further:
            left.append(place)
        else:
            outcomes.settle(place, _SILENT)
    return left


def _by_leader(
    view: View, places: list[TopicPartition], topic_ids: Mapping[str, bytes]
) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, ClientError]]:
    """Group places by leader; return the errors of those without a leader."""
    led: dict[int, list[TopicPartition]] = {}
    errors: dict[TopicPartition, ClientError] = {}
    for place in places:
        name, index = place
        topic = view.topics.get(name)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None:
            errors[place] = UnknownTopic(f"{name} [{index}] does not exist")
        elif topic.topic_id != topic_ids.get(name, topic.topic_id):
            errors[place] = TopicRecreated(f"topic {name!r} was deleted and made anew")
        elif partition.leader_id == NO_LEADER or partition.leader_id not in view.brokers:
            errors[place] = BrokerError(LEADER_NOT_AVAILABLE, f"{name} [{index}] has no leader")
        else:
            led.setdefault(partition.leader_id, []).append(place)
    return led, errors


def _shares(
    batches: Mapping[TopicPartition, bytes], places: list[TopicPartition]
) -> list[dict[TopicPartition, bytes]]:
    """Divide batches into requests within the size limit."""
    shares: list[dict[TopicPartition, bytes]] = []
    size = 0
    for place in places:
        batch = batches[place]
        if not shares or size + len(batch) > REQUEST_BYTES_MAX:
            shares.append({})
            size = 0
        shares[-1][place] = batch
        size += len(batch)
    return shares


def _outcome_of(call: SendBatches, place: TopicPartition) -> SendOutcome:
    if call.error is not None:
        return SendOutcome(UNCLEAR if call.error.is_retriable else REFUSED, call.error)
    return call.result.get(place) or SendOutcome(UNCLEAR, _SILENT)


def _is_too_large(outcome: SendOutcome) -> bool:
    error = outcome.error
    return isinstance(error, BrokerError) and error.code == MESSAGE_TOO_LARGE


def _may_pass(error: ClientError) -> bool:
    if isinstance(error, BrokerError):
        known = ERRORS.get(error.code)
        return error.code == OFFSET_OUT_OF_RANGE or (known is not None and known.retriable)
    return error.is_retriable


def _late_error(place: TopicPartition, reason: ClientError, late: TimedOut) -> ClientError:
    return late
