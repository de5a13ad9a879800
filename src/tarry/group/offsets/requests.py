"""Requests about the offsets of a group, and their answers."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from tarry.base import errors
from tarry.group.offsets.records import NO_LEADER_EPOCH, NO_TOPIC_ID
from tarry.group.requests import Answer, Request

# Retention time of a commit that leaves it to the broker's setting.
DEFAULT_RETENTION: Final = -1


class CommitPartition(msgspec.Struct, frozen=True):
    """Partition of a commit; with an error code it was refused before it came here."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str | None = ""
    topic_id: bytes = NO_TOPIC_ID
    error_code: int = errors.NONE


class CommitRequest(Request, frozen=True, kw_only=True):
    """OffsetCommit.  `knows_group_not_found`: version 9 and later, which name that error."""

    generation_id: int
    partitions: tuple[CommitPartition, ...]
    retention_ms: int = DEFAULT_RETENTION
    knows_group_not_found: bool = True


class CommitAnswer(Answer, frozen=True, kw_only=True):
    """Answer to OffsetCommit: an error code for each partition; Kafka has none for the whole."""

    partition_error_codes: tuple[int, ...] = ()

    def failed(self, error_code: int) -> CommitAnswer:
        return replace(self, partition_error_codes=_failed(self.partition_error_codes, error_code))


class DeleteAnswer(Answer, frozen=True, kw_only=True):
    """Answer to DeleteGroups for one group, or to OffsetDelete with a code for each partition."""

    partition_error_codes: tuple[int, ...] = ()

    def failed(self, error_code: int) -> DeleteAnswer:
        codes = _failed(self.partition_error_codes, error_code)
        return replace(self, error_code=error_code, partition_error_codes=codes)


def _failed(codes: tuple[int, ...], error_code: int) -> tuple[int, ...]:
    """Return the codes of partitions: those that were refused before keep their own."""
    return tuple(each or error_code for each in codes)
