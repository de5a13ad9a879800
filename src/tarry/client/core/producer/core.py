"""The producer's core: records in, batches to the leaders, receipts that come true."""

from __future__ import annotations

from tarry.base.doors import Random
from tarry.base.errors import NONE
from tarry.client.core.core import ClientCore
from tarry.client.core.producer.accumulator import Accumulator, record_size
from tarry.client.core.producer.batch import Receipt
from tarry.client.core.producer.identity import Identity
from tarry.client.core.producer.partitioner import ANY_PARTITION, Partitioner
from tarry.client.core.producer.sender import Sender
from tarry.client.errors import ClientClosed, DeliveryFailed, UnknownTopic
from tarry.client.settings import ProducerSettings
from tarry.link.errors import ClientError
from tarry.records.builder import Headers


class ProducerCore(ClientCore):
    """`append` takes records between turns; the next turn sends what is ready.

    Who calls between turns sets `now_ms` first: linger and deadlines count from then.
    """

    what_waits = "records wait to be sent"

    def __init__(self, settings: ProducerSettings, random: Random, now_ms: int) -> None:
        super().__init__(settings, random, now_ms)
        self.refresh.may_create = settings.allow_auto_create_topics
        self.accumulator = Accumulator(settings, self.connections, self.metadata)
        self.identity = Identity(self.errands, settings.api_timeout_ms)
        self.sender = Sender(
            settings,
            self.accumulator,
            self.connections,
            self.metadata,
            self.refresh,
            self.identity,
        )
        self.partitioner = Partitioner(random)
        self.accumulator.when_closed = self.partitioner.on_batch_closed

    def work(self, now_ms: int) -> None:
        self.accumulator.begin_turn()
        self.sender.work(now_ms)

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has; 0 while that is not known, and then it is asked."""
        known = self.metadata.topic(topic)
        if known is None:
            self.track(topic)
            return 0
        return len(known.partitions)

    def append(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
    ) -> Receipt | None:
        """Take a record; None: the topic is not known yet or there is no room, so wait and ask
        again.  `partition` -1 lets the partitioner choose.  Raises what can never be sent."""
        if self.sender.failure is not None:
            raise self.sender.failure
        known = self.metadata.topic(topic)
        if known is None:
            self._raise_refusal(topic)
            self.track(topic)
            return None
        size = record_size(key, value, headers)
        accumulator = self.accumulator
        if size > accumulator.record_bytes_max:
            accumulator.refuse_size(size)
        if not accumulator.has_room(size):
            return None
        accumulator.now_ms = self.now_ms
        if partition == ANY_PARTITION:
            queue = accumulator.queue(topic, self.partitioner.choose(known, key))
            if key is None and not accumulator.fits(queue, size):
                # A new batch is the time to go elsewhere.
                accumulator.close(queue)
                queue = accumulator.queue(topic, self.partitioner.choose(known, key))
        elif partition in known.partitions:
            queue = accumulator.queue(topic, partition)
        else:
            last = len(known.partitions) - 1
            raise UnknownTopic(f"topic {topic!r} has partitions 0 to {last}, not {partition}")
        return accumulator.append(queue, timestamp, key, value, headers, size)

    def _raise_refusal(self, topic: str) -> None:
        """Waiting does not help: brokers refuse the topic."""
        if self.metadata.refusal(topic) != NONE:
            error = self.metadata.error_of(topic, self.now_ms)
            # The next record asks again.
            self.metadata.untrack(topic)
            raise error

    def hurry(self, receipt: Receipt) -> None:
        """Somebody waits for this record: its batch lingers no longer."""
        queue = self.accumulator.queue(receipt.topic, receipt.partition)
        if queue.open is not None and queue.open is receipt.batch:
            self.accumulator.close(queue)

    def begin_flush(self) -> None:
        """Close all open batches; done when `is_flushed`."""
        self.accumulator.close_all()

    @property
    def is_flushed(self) -> bool:
        return self.accumulator.is_empty

    @property
    def has_work(self) -> bool:
        """Whether turns are needed now even if nobody waits."""
        return not self.accumulator.is_empty

    @property
    def trouble(self) -> str:
        """Why records do not get out at the moment; empty if nothing seems wrong."""
        trouble = super().trouble
        if trouble:
            return trouble
        if self.sender.last_error is not None:
            return str(self.sender.last_error)
        for queue in self.accumulator.ready:
            problem = self.accumulator.problem_of(queue, self.now_ms)
            if problem:
                return problem
        return self._trouble_with_topics()

    def _trouble_with_topics(self) -> str:
        """A topic that a send waits for, or a leader that cannot be reached."""
        for name in self.metadata.tracked:
            if self.metadata.topic(name) is None and name in self.metadata.topics:
                return self.metadata.problem_with(name, self.now_ms)
        for broker_id in self.metadata.brokers:
            failure = self.connections.failure_of(broker_id)
            if failure is not None:
                return str(failure)
        return ""

    @property
    def is_waiting(self) -> bool:
        """Records are not acknowledged, or a send waits for its topic."""
        return self.has_work or self.metadata.needs_refresh or super().is_waiting

    def take_failure(self) -> DeliveryFailed | None:
        """The records that failed without anybody having asked for their receipts."""
        count, first = self.accumulator.take_failures()
        if count == 0:
            return None
        return DeliveryFailed(count, first or ClientError("the reason was forgotten"))

    def close(self) -> None:
        """What is not done fails; flush first."""
        self.sender.fail_for_good(ClientClosed("the producer was closed before it was sent"))
        super().close()
