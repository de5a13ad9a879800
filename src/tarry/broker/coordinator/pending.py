"""What is on its way into a partition of `__consumer_offsets`, in the log's order."""

from __future__ import annotations

from tarry.group.appends import Append


class PendingAppend:
    """One batch: when the high watermark reaches `required_offset`, its records are applied."""

    __slots__ = ("append", "group_id", "is_settled", "required_offset")

    def __init__(self, group_id: str, append: Append, required_offset: int) -> None:
        self.group_id = group_id
        self.append = append
        self.required_offset = required_offset
        # It was applied, or it failed: nobody waits for it any more.
        self.is_settled = False
