"""ElectLeaders (key 43): the first replica, or any that serves, becomes the leader (KIP-460)."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.limits import PARTITIONS_PER_REQUEST_MAX
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.row_changes_asked import ask_for_rows
from tarry.broker.once import once
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.elections import PREFERRED, UNCLEAN, ElectionWish
from tarry.cluster.state.state import ClusterState
from tarry.protocol.message import Message
from tarry.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

# Before this version there is only one type of election, and no error of the whole request.
VERSION_OF_TYPES: Final = 1


def handle(
    changes: MetadataChanges, context: RequestContext, request: ElectLeadersRequest
) -> Message | None:
    """Elect a leader for each partition, or refuse; each partition has an answer of its own."""
    election = request.election_type if context.api_version >= VERSION_OF_TYPES else PREFERRED
    asked = request.topic_partitions
    fault = ""
    if election not in (PREFERRED, UNCLEAN):
        fault = f"there is no type {election} of elections"
    elif asked is not None and _count(asked) > PARTITIONS_PER_REQUEST_MAX:
        fault = f"one request names at most {PARTITIONS_PER_REQUEST_MAX} partitions"
    if fault:
        context.report(fault)
        return _refused(context, fault, asked or [])
    if asked is None:
        places = _everything(changes.store.view)
    else:
        # A partition that is named twice is answered once.
        places = once((each.topic, index) for each in asked for index in each.partitions)
    is_unclean = election == UNCLEAN
    wishes = [ElectionWish(*place, changes.settings, is_unclean=is_unclean) for place in places]

    def respond() -> Message:
        # The answer to a request for all partitions leaves out those that need no election.
        return _response(
            [
                wish
                for wish in wishes
                if asked is not None or wish.error_code != errors.ELECTION_NOT_NEEDED
            ]
        )

    return ask_for_rows(changes, context, [*wishes], respond, request.timeout_ms)


def _count(asked: list[TopicPartitions]) -> int:
    return sum(len(each.partitions) for each in asked)


def _everything(view: ClusterState) -> list[tuple[str, int]]:
    return [
        (name, index)
        for name, topic in view.topics.items()
        for index in range(len(topic.partitions))
    ]


def _refused(
    context: RequestContext, fault: str, asked: list[TopicPartitions]
) -> ElectLeadersResponse:
    if context.api_version >= VERSION_OF_TYPES:
        return ElectLeadersResponse(error_code=errors.INVALID_REQUEST)
    # Before version 1 there is no error of the whole request, so one result of each topic has it.
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=each.topic,
                partition_result=[
                    PartitionResult(
                        partition_id=each.partitions[0],
                        error_code=errors.INVALID_REQUEST,
                        error_message=fault,
                    )
                ],
            )
            for each in asked
            if each.partitions
        ]
    )


def _response(wishes: list[ElectionWish]) -> ElectLeadersResponse:
    by_topic: dict[str, list[PartitionResult]] = {}
    for wish in wishes:
        by_topic.setdefault(wish.topic, []).append(
            PartitionResult(
                partition_id=wish.index, error_code=wish.error_code, error_message=wish.message
            )
        )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=results)
            for topic, results in by_topic.items()
        ]
    )
