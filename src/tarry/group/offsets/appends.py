"""Appends of committed offsets, and of tombstones of offsets and groups."""

from __future__ import annotations

from tarry.group.decision import Append, Decision, Moment
from tarry.group.offsets.requests import CommitAnswer, DeleteAnswer
from tarry.group.records import GroupRecord
from tarry.group.state import GroupState


class OffsetsAppend(Append[GroupState]):
    """Append of committed offsets; `texts_size` is the size of their metadata together."""

    what = "a commit of offsets"

    def __init__(self, records: list[GroupRecord], answer: CommitAnswer, texts_size: int) -> None:
        super().__init__(records, answer)
        self.is_of_kind = False
        self.texts_size = texts_size


class TombstonesAppend(Append[GroupState]):
    """Append of tombstones: of offsets, or with `is_group` of a whole group, by request or by age.

    The records may fill more than one batch.  A crash may lose some of them; these are written
    again on the next request, at the next start, or by age.
    """

    what = "a deletion of offsets"
    can_be_split = True

    def __init__(
        self, records: list[GroupRecord], answer: DeleteAnswer | None, *, is_group: bool
    ) -> None:
        super().__init__(records, answer)
        self.is_of_kind = is_group

    def failed(self, group: GroupState, error_code: int, moment: Moment) -> Decision:
        decision = super().failed(group, error_code, moment)
        if self.is_of_kind:
            revival = group.kind.decide_revival(group, moment)
            revival.answers += decision.answers
            return revival
        return decision
