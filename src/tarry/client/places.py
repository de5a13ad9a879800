"""TopicPartition, as users name it: a pair of a topic and the index of a partition."""

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
            # Other clients have a class of this name; here any such pair is one.
            return topic, partition
