"""Requests about the offsets of a group, and their answers."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from tarry.base import errors
from tarry.group.offsets.records import NO_LEADER_EPOCH, NO_TOPIC_ID
from tarry.group.requests import Answer, Request

# Retention time of a commit that uses the broker's setting.
DEFAULT_RETENTION: Final = -1


class CommitPartition(msgspec.Struct, frozen=True):
    """Partition of a commit; with an error code the handler has refused it already."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str | None = ""
    topic_id: bytes = NO_TOPIC_ID
    error_code: int = errors.NONE


class CommitRequest(Request, frozen=True, kw_only=True):
    """OffsetCommit.  `knows_group_not_found`: the version (9 or later) has that error code."""

    generation_id: int
    partitions: tuple[CommitPartition, ...]
    retention_ms: int = DEFAULT_RETENTION
    knows_group_not_found: bool = True


class CommitAnswer(Answer, frozen=True, kw_only=True):
    """Answer to OffsetCommit: an error code for each partition, as Kafka has none for the whole."""

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
    """Return codes of partitions with this error; those refused before keep their own."""
    return tuple(each or error_code for each in codes)
