"""Committed offsets: commit, fetch, expiry, and deletion on request.

A fetch returns only durable offsets.  Removals also count offsets that are under way to the log:
these do not expire, and they are removed with the group.

Like Kafka, a commit accepts any offset, negative ones too, and any partition number of a topic that
its caller has accepted; text is measured in UTF-16 units, as Java's strings are.  The empty group
id is valid for offsets, as in Kafka for its oldest clients.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.base.limits import GROUP_METADATA_BYTES_MAX
from tarry.group.decision import Decision, Moment, refused
from tarry.group.offsets.appends import OffsetsAppend, TombstonesAppend
from tarry.group.offsets.records import (
    NO_TOPIC_ID,
    OffsetCommitted,
    OffsetTombstone,
)
from tarry.group.offsets.requests import (
    CommitAnswer,
    CommitPartition,
    CommitRequest,
    DeleteAnswer,
)
from tarry.group.records import (
    NO_TIMESTAMP,
    GroupRecord,
    can_be_written,
)
from tarry.group.requests import TOO_MUCH_METADATA
from tarry.group.state import GroupState

# Largest time that a record can hold.
TIMESTAMP_MAX: Final = (1 << 63) - 1


# -- commit


def decide_commit(group: GroupState, request: CommitRequest, moment: Moment) -> Decision:
    """Decide about a commit; each partition is accepted or refused by itself."""
    error_code = _commit_error(group, request)
    codes: list[int] = []
    reason = ""
    texts_size = 0
    for each in request.partitions:
        code = each.error_code or error_code or text_error(each.metadata, moment)
        if code == errors.NONE and each.metadata:
            size = texts_size + len(each.metadata)
            if group.metadata_size + size > GROUP_METADATA_BYTES_MAX:
                code, reason = errors.OFFSET_METADATA_TOO_LARGE, TOO_MUCH_METADATA
            else:
                texts_size = size
        codes.append(code)
    records: list[GroupRecord] = [
        committed(request, group.group_id, each, moment.now_wall_ms)
        for each, code in zip(request.partitions, codes, strict=True)
        if code == errors.NONE
    ]
    answer = CommitAnswer(request.ticket, reason=reason, partition_error_codes=tuple(codes))
    return _commit(group, request, error_code, OffsetsAppend(records, answer, texts_size), moment)


def decide_prepared_commit(
    group: GroupState,
    request: CommitRequest,
    codes: list[int],
    records: list[GroupRecord],
    texts_size: int,
    moment: Moment,
) -> Decision:
    """Decide about a commit of many partitions, whose records were made before: all go to the log,
    or none.  `codes` has the error of each partition without a record.
    """
    error_code = _commit_error(group, request)
    reason = ""
    if not error_code and group.metadata_size + texts_size > GROUP_METADATA_BYTES_MAX:
        error_code, reason = errors.OFFSET_METADATA_TOO_LARGE, TOO_MUCH_METADATA
    if error_code != errors.NONE:
        codes = [code or error_code for code in codes]
        records = []
    answer = CommitAnswer(request.ticket, reason=reason, partition_error_codes=tuple(codes))
    return _commit(group, request, error_code, OffsetsAppend(records, answer, texts_size), moment)


def _commit(
    group: GroupState,
    request: CommitRequest,
    error_code: int,
    append: OffsetsAppend,
    moment: Moment,
) -> Decision:
    decision = Decision(moment.now_ms)
    if error_code == errors.NONE:
        group.hear_commit(request.member_id, decision)
    if append.records:
        decision.append = append
    else:
        assert append.answer is not None
        decision.answers.append(append.answer)
    return decision


def _commit_error(group: GroupState, request: CommitRequest) -> int:
    if not can_be_written(group.group_id):
        return errors.INVALID_GROUP_ID
    if group.is_dead():
        return errors.COORDINATOR_NOT_AVAILABLE
    if not group.exists:
        if request.generation_id < 0:
            return errors.NONE
        if request.knows_group_not_found:
            return errors.GROUP_ID_NOT_FOUND
        return errors.ILLEGAL_GENERATION
    if request.generation_id < 0 and group.is_empty():
        # The request comes from an operator, or a consumer that is no member of the group.
        return errors.NONE
    return group.commit_error(request.member_id, request.instance_id, request.generation_id)


def text_error(text: str | None, moment: Moment) -> int:
    """Return the error of the metadata text of an offset, or NONE."""
    if not text:
        return errors.NONE
    size_max = moment.settings.offset_metadata_max_bytes
    if len(text) > size_max or len(text.encode("utf-16-le")) // 2 > size_max:
        return errors.OFFSET_METADATA_TOO_LARGE
    # This limit holds whatever the setting allows: the record of a commit with a retention time
    # and the older versions of OffsetFetch could not hold the text.
    if not can_be_written(text):
        return errors.OFFSET_METADATA_TOO_LARGE
    return errors.NONE


def committed(
    request: CommitRequest, group_id: str, each: CommitPartition, now_wall_ms: int
) -> OffsetCommitted:
    """Return the record for one partition of a commit."""
    expire_timestamp_ms = NO_TIMESTAMP
    topic_id = each.topic_id
    if request.retention_ms >= 0:
        expire_timestamp_ms = min(now_wall_ms + request.retention_ms, TIMESTAMP_MAX)
        # The record version with an expiry time has no topic id.
        topic_id = NO_TOPIC_ID
    return OffsetCommitted(
        group_id,
        topic=each.topic,
        partition=each.partition,
        offset=each.offset,
        leader_epoch=each.leader_epoch,
        metadata=each.metadata or "",
        commit_timestamp_ms=now_wall_ms,
        expire_timestamp_ms=expire_timestamp_ms,
        topic_id=topic_id,
    )


# -- fetch


def fetched_offsets(
    group: GroupState, wanted: list[tuple[str, list[int]]]
) -> list[tuple[str, list[tuple[int, OffsetCommitted | None]]]]:
    """Return the durable offset of each partition; None if it has none, or the group is Dead."""
    is_dead = group.is_dead()
    return [
        (topic, [(each, None if is_dead else group.offset(topic, each)) for each in partitions])
        for topic, partitions in wanted
    ]


def all_offsets(group: GroupState) -> list[tuple[str, list[tuple[int, OffsetCommitted | None]]]]:
    """Return all durable offsets, by topic and partition."""
    if group.is_dead():
        return []
    return [
        (topic, [(index, partitions[index]) for index in sorted(partitions)])
        for topic, partitions in sorted(group.offsets.items())
    ]


# -- expiry


def decide_expire_offsets(group: GroupState, moment: Moment) -> Decision:
    """Decide to remove the offsets that have expired, and with the last one an Empty group."""
    decision = Decision(moment.now_ms)
    if group.is_dead():
        return decision
    on_their_way = _on_their_way(group)
    condition = _ExpiryCondition(group, moment)
    expired = [
        record
        for partitions in group.offsets.values()
        for record in partitions.values()
        if (record.topic, record.partition) not in on_their_way and condition.holds_for(record)
    ]
    records = [_tombstone(each) for each in expired]
    count = sum(len(partitions) for partitions in group.offsets.values())
    if group.exists and group.is_idle() and not group.appends and len(records) == count:
        return _removal(group, moment, records, None)
    if records:
        decision.append = TombstonesAppend(records, None, is_group=False)
    return decision


class _ExpiryCondition:
    """Condition on which an offset of a group expires."""

    def __init__(self, group: GroupState, moment: Moment) -> None:
        self.now_wall_ms = moment.now_wall_ms
        self.retention_ms = moment.settings.offsets_retention_ms
        # Topics whose offsets do not expire (None: all topics); and the time from which the
        # retention counts, or NO_TIMESTAMP if it counts from each commit.
        self.kept_topics, self.since_ms = group.retention()

    def holds_for(self, record: OffsetCommitted) -> bool:
        if self.kept_topics is None or record.topic in self.kept_topics:
            return False
        if record.expire_timestamp_ms != NO_TIMESTAMP:
            return self.now_wall_ms >= record.expire_timestamp_ms
        since_ms = self.since_ms
        if since_ms == NO_TIMESTAMP:
            since_ms = record.commit_timestamp_ms
        return self.now_wall_ms - since_ms >= self.retention_ms


def decide_forget_topics(
    group: GroupState, topic_ids: dict[str, bytes], moment: Moment
) -> Decision:
    """Decide to remove the offsets of deleted topics, also those under way to the log.

    `topic_ids` has the existing topics by name.  An offset with another topic id belongs to a
    deleted topic of that name; an offset without an id belongs to the topic of its name.
    """
    gone: dict[TopicPartition, None] = {}
    for topic, partitions in group.offsets.items():
        topic_id = topic_ids.get(topic)
        for record in partitions.values():
            if _is_of_another(record, topic_id):
                gone[topic, record.partition] = None
    for append in group.appends:
        for each in append.records:
            if isinstance(each, OffsetCommitted):
                gone.pop((each.topic, each.partition), None)
                if _is_of_another(each, topic_ids.get(each.topic)):
                    gone[each.topic, each.partition] = None
            elif isinstance(each, OffsetTombstone):
                gone.pop((each.topic, each.partition), None)
    decision = Decision(moment.now_ms)
    if gone and not group.is_dead():
        records: list[GroupRecord] = [
            OffsetTombstone(group.group_id, topic=topic, partition=index) for topic, index in gone
        ]
        decision.append = TombstonesAppend(records, None, is_group=False)
    return decision


def _is_of_another(record: OffsetCommitted, topic_id: bytes | None) -> bool:
    return topic_id is None or record.topic_id not in (topic_id, NO_TOPIC_ID)


# -- deletion on request


def decide_delete_group(group: GroupState, ticket: int, moment: Moment) -> Decision:
    """Decide about DeleteGroups: remove an Empty group with all its offsets."""
    error_code = errors.NONE
    if group.is_dead() or not group.exists:
        error_code = errors.GROUP_ID_NOT_FOUND
    elif not group.is_empty():
        error_code = errors.NON_EMPTY_GROUP
    if error_code != errors.NONE:
        return refused(moment.now_ms, DeleteAnswer(ticket, error_code))
    keys = {
        (topic, index): None for topic, partitions in group.offsets.items() for index in partitions
    }
    keys.update(_on_their_way(group))
    records: list[GroupRecord] = [
        OffsetTombstone(group.group_id, topic=topic, partition=index) for topic, index in keys
    ]
    return _removal(group, moment, records, DeleteAnswer(ticket))


def decide_delete_offsets(
    group: GroupState, ticket: int, partitions: list[CommitPartition], moment: Moment
) -> Decision:
    """Decide about OffsetDelete: remove offsets of topics that the group does not read.

    A partition without an offset is no error; one with an error code was refused before.
    """
    error_code = errors.NONE
    if group.is_dead() or not group.exists:
        error_code = errors.GROUP_ID_NOT_FOUND
    elif not group.can_lose_offsets():
        error_code = errors.NON_EMPTY_GROUP
    if error_code != errors.NONE:
        return refused(moment.now_ms, DeleteAnswer(ticket, error_code))
    on_their_way = _on_their_way(group)
    in_use = group.topics_in_use()
    codes: list[int] = []
    records: list[GroupRecord] = []
    for each in partitions:
        code = each.error_code
        if code == errors.NONE and (in_use is None or each.topic in in_use):
            code = errors.GROUP_SUBSCRIBED_TO_TOPIC
        codes.append(code)
        is_there = (each.topic, each.partition) in on_their_way
        if code == errors.NONE and (is_there or group.offset(each.topic, each.partition)):
            records.append(
                OffsetTombstone(group.group_id, topic=each.topic, partition=each.partition)
            )
    answer = DeleteAnswer(ticket, partition_error_codes=tuple(codes))
    if not records:
        return refused(moment.now_ms, answer)
    decision = Decision(moment.now_ms)
    decision.append = TombstonesAppend(records, answer, is_group=False)
    return decision


def _removal(
    group: GroupState, moment: Moment, records: list[GroupRecord], answer: DeleteAnswer | None
) -> Decision:
    """Decide that the group dies; it is forgotten once its tombstones are durable."""
    records += group.kind.tombstones(group)
    decision = group.kind.decide_removal(group, moment)
    decision.append = TombstonesAppend(records, answer, is_group=True)
    return decision


def _tombstone(record: OffsetCommitted) -> GroupRecord:
    return OffsetTombstone(record.group_id, topic=record.topic, partition=record.partition)


def _on_their_way(group: GroupState) -> dict[TopicPartition, None]:
    """Return topic and partition of every offset that is under way to the log."""
    return {
        (record.topic, record.partition): None
        for append in group.appends
        if isinstance(append, OffsetsAppend)
        for record in append.records
        if isinstance(record, OffsetCommitted)
    }
