"""What a recovery point says of one segment."""

from __future__ import annotations


class SegmentRow:
    """A segment as far as the recovery point covers it."""

    def __init__(self, numbers: list[int]) -> None:
        self.base_offset = numbers[0]
        self.size = numbers[1]
        self.max_timestamp = numbers[2]
        self.max_timestamp_offset = numbers[3]
        self.modified_wall_ms = numbers[4]
        self.offset_entries = numbers[5]
        self.time_entries = numbers[6]

    def encode(self) -> str:
        return (
            f"{self.base_offset}:{self.size}:{self.max_timestamp}:{self.max_timestamp_offset}:"
            f"{self.modified_wall_ms}:{self.offset_entries}:{self.time_entries}"
        )


def decode_segment_row(text: str) -> SegmentRow:
    return SegmentRow([int(number) for number in text.split(":")])
