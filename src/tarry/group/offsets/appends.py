"""Appends of offsets, and of what removes them."""

from __future__ import annotations

from tarry.group.decision import Append, Decision, Moment
from tarry.group.offsets.requests import CommitAnswer, DeleteAnswer
from tarry.group.records import GroupRecord
from tarry.group.state import GroupState


class OffsetsAppend(Append[GroupState]):
    """Offsets that a client committed; `texts_size` is that of their metadata together."""

    what = "a commit of offsets"

    def __init__(self, records: list[GroupRecord], answer: CommitAnswer, texts_size: int) -> None:
        super().__init__(records, answer)
        self.is_of_kind = False
        self.texts_size = texts_size


class TombstonesAppend(Append[GroupState]):
    """Offsets, or with `is_group` the group as a whole, that go: by request or by age.

    There may be more than a batch holds, and those that a crash leaves out are written again: when
    they are asked for once more, at the next start, or by age.
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
