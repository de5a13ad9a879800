"""TopicPartition for users: a pair of a topic and the index of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["TopicPartition"]

if TYPE_CHECKING:
    from tarry.base.ids import TopicPartition
else:

    class TopicPartition(tuple):
        """Topic and index of a partition: a plain tuple such as `("orders", 0)`."""

        __slots__ = ()

        def __new__(cls, topic: str, partition: int) -> tuple[str, int]:
            # Other clients have a class of this name; here it returns a plain tuple.
            return topic, partition
