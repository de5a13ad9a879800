"""Consumer: records of topics shared with a group, or of partitions that the user assigns.

with Consumer("orders", group_id="billing", auto_offset_reset="earliest") as consumer:
    for record in consumer:
        bill(record.value)

with Consumer(bootstrap_servers="localhost:9092") as consumer:
    consumer.assign([("orders", 0)])
    consumer.seek_to_beginning()
    for group in consumer.poll(timeout=1.0):
        for record in group.records:
            print(group.topic, group.partition, record.offset, record.value)

Everything happens inside `poll`, or the iteration, which polls: rebalances, callbacks, automatic
commits.  Only the heartbeats of a member have a thread, unless `heartbeat.mode=poll`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack, overload

from tarry.client.codecs import Codec, Key, Value
from tarry.client.core.consumer.record_group import RecordGroup
from tarry.client.core.group.assignment.assignor import Assignor
from tarry.client.face.iteration import PiecesForATick
from tarry.client.setting_arguments import ConsumerArguments
from tarry.client.sync.base_consumer import BaseConsumer, What
from tarry.client.sync.listener import Listener


class Consumer(BaseConsumer[Key, Value]):
    """Consumer for one thread at a time; only `wakeup` may come from another.

    What stands before the settings is what to subscribe to: names of topics, or one pattern; a
    mapping among them holds settings by Kafka's keys.  `assignors` are a user's own, or names, the
    preferred one first; they take the place of `partition.assignment.strategy`.  Keys and values
    are bytes unless `key` and `value` are codecs.
    """

    @overload
    def __init__(
        self: Consumer[bytes, bytes],
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        key: None = None,
        value: None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Consumer[Key, bytes],
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        key: Codec[Key],
        value: None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Consumer[bytes, Value],
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        key: None = None,
        value: Codec[Value],
        **arguments: Unpack[ConsumerArguments],
    ) -> None: ...

    @overload
    def __init__(
        self,
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        key: Codec[Key],
        value: Codec[Value],
        **arguments: Unpack[ConsumerArguments],
    ) -> None: ...

    def __init__(
        self,
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        key: Codec[Any] | None = None,
        value: Codec[Any] | None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> None:
        super().__init__(
            *what, listener=listener, assignors=assignors, key=key, value=value, **arguments
        )

    def batches(self, max_records: int | None = None) -> Iterator[RecordGroup[Key, Value]]:
        """Yield records of one partition at a time, without an end until `wakeup`; they are
        finished when the next ones are asked for."""
        while (handed_out := self._hand_out(max_records)) is not None:
            yield from PiecesForATick(handed_out.batches())
