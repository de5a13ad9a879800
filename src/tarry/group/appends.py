"""Appends on their way to the log, and what they mean once they are there, or if they fail.

An append's records go into one batch.  When they are below the high watermark the broker applies
them and asks `outcomes.decide_recorded`; when they did not get into the log it asks
`outcomes.decide_append_failed` with the log's error code.
"""

from __future__ import annotations

from tarry.group.records import GroupRecord
from tarry.group.requests import CommitAnswer, DeleteAnswer, JoinAnswer
from tarry.group.round import Member


class Append:
    """Records, and what waits for them; `what` says in words what they hold."""

    what = "a change of the group"

    def __init__(self, records: list[GroupRecord]) -> None:
        self.records = records
        # Set by `GroupState.take`: the records are not in the log and never will be.
        self.has_failed = False


class AssignmentAppend(Append):
    """The leader's assignment: the group is Stable with it, if it is still the same round."""

    what = "the assignment"

    def __init__(
        self, records: list[GroupRecord], generation_id: int, assignments: dict[str, bytes]
    ) -> None:
        super().__init__(records)
        self.generation_id = generation_id
        self.assignments = assignments


class StaticAppend(Append):
    """A static member that came back under a new id and needs no rebalance for it.

    `answer` is what it is told then, under its new id; `previous` is the member as it was.
    `origin` is the append of that previous id, if it was on its way itself.
    """

    what = "the new id of a static member"

    def __init__(
        self,
        records: list[GroupRecord],
        answer: JoinAnswer,
        previous: Member,
        leader_id: str,
        origin: StaticAppend | None,
    ) -> None:
        super().__init__(records)
        self.answer = answer
        self.previous = previous
        # Who led before: the one whom older clients are told, and to whom it may go back.
        self.leader_id = leader_id
        self.origin = origin

    def member_to_go_back_to(self) -> Member:
        """Return the newest member before this one whose id is, or may yet become, durable."""
        append = self
        while append.origin is not None and append.origin.has_failed:
            append = append.origin
        return append.previous


class EmptyAppend(Append):
    """The group is Empty in a new generation.  Nobody waits for it.

    Should it fail and the broker too, the generation before is there again after the start, and
    its members' sessions end: nobody works in it, so that is safe.
    """

    what = "the end of the last member"


class OffsetsAppend(Append):
    """Offsets that a client committed."""

    what = "a commit of offsets"

    def __init__(self, records: list[GroupRecord], answer: CommitAnswer) -> None:
        super().__init__(records)
        self.answer = answer


class TombstonesAppend(Append):
    """Offsets, or with `is_group` the group as a whole, that go: by request or by age."""

    what = "a deletion of offsets"

    def __init__(
        self, records: list[GroupRecord], answer: DeleteAnswer | None, *, is_group: bool
    ) -> None:
        super().__init__(records)
        self.answer = answer
        self.is_group = is_group
