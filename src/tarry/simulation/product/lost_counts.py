"""Lost counts: the broker forgets the last batch of a producer while another answer is lost.

A leader that was elected out of sync, or a broker of another make, refuses the next batch of such a
producer: its sequence does not follow.  The producer takes a new epoch then, for all partitions.
A batch to another partition, whose answer was lost, may be in the log with its old epoch and
sequence: a retry has to keep both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.broker.broker import Broker
from tarry.client.core.producer.queue import PartitionQueue
from tarry.simulation.broker_node import BrokerNode
from tarry.simulation.clients.context import RunContext
from tarry.simulation.faults import Fault
from tarry.simulation.product.producer import ProducerNode

LOST_COUNT: Final = "lost count beside a lost answer"

_LOOK_MS: Final = 2
# Pause after a loss, in which the producer comes to rest.
_PAUSE_MS: Final = 400


class LostCounts:
    """Losses of counts, each as soon as a producer allows one, until the run is quiet."""

    def __init__(
        self,
        context: RunContext,
        node: BrokerNode,
        producers: Callable[[], list[ProducerNode]],
    ) -> None:
        self._context = context
        self._node = node
        self._producers = producers

    def look(self) -> None:
        """Strike a producer that allows it, if there is one, and look again later."""
        if self._context.is_quiet:
            return
        broker = self._node.broker
        has_struck = broker is not None and any(
            self._strike(broker, each) for each in self._producers()
        )
        self._context.clock.after(_PAUSE_MS if has_struck else _LOOK_MS, self.look)

    def _strike(self, broker: Broker, producer: ProducerNode) -> bool:
        """Forget a batch of one partition and cut the connection; return False if nothing fits."""
        if not producer.settings.is_idempotent:
            return False
        sockets = [each for each in producer.sockets() if each.has_unanswered_produce()]
        queues = [each for each in producer.queues() if _is_known(broker, each)]
        if not sockets or not queues:
            return False
        random = self._context.random
        queue = queues[random.randrange(len(queues))]
        partition = broker.topics[queue.topic].partitions[queue.partition]
        partition.producers.batches_of(queue.producer_id).pop()
        sockets[0].cut(random)
        self._node.plan.faults.append(Fault(0, LOST_COUNT))
        self._node.note(f"fault: {LOST_COUNT}, of {producer.name} in {partition.name}")
        return True


def _is_known(broker: Broker, queue: PartitionQueue) -> bool:
    """Return whether nothing of a partition is under way, and the broker has what was sent."""
    if queue.in_flight or queue.waiting or queue.needs_epoch:
        return False
    partition = broker.topics.partition(queue.topic, queue.partition)
    if partition is None:
        return False
    known = partition.producers.batches_of(queue.producer_id)
    # The batch before the last one has the same epoch: the next one is not the epoch's first.
    return (
        len(known) >= 2
        and known[-2].epoch == known[-1].epoch == queue.producer_epoch
        and known[-1].last_sequence + 1 == queue.next_sequence
    )
