"""A topic as far as this broker hosts it: its partitions by index."""

from __future__ import annotations

from tarry.log.config import AS_PRODUCED
from tarry.partition.state import Partition


class HostedTopic:
    """Name, id and the partitions led here, in order of their index."""

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        # A coordinator's own: clients read it and do not write to it.
        self.is_internal = False
        self.partitions: list[Partition] = []

    def partition(self, index: int) -> Partition | None:
        """The partition with this index, or None."""
        if 0 <= index < len(self.partitions):
            return self.partitions[index]
        return None

    def recompresses(self) -> bool:
        """Whether `compression.type` asks for a codec of the topic's own."""
        if self.is_internal or not self.partitions:
            return False
        return self.partitions[0].config.compression_codec != AS_PRODUCED
