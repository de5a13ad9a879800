"""DelayedFetch: waits until enough bytes are readable, or waiting has become vain.

Completion and expiry alike read and answer with what is there.  Hot.
"""

from __future__ import annotations

from collections.abc import Callable

from tarry.broker.answers import Answers
from tarry.broker.part import WaitingPart
from tarry.broker.reads import Fetch
from tarry.broker.request import RequestContext
from tarry.partition.state import Partition
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import FetchRequest, FetchResponse
from tarry.purgatory.operation import PayloadOperation


class DelayedFetch(PayloadOperation[Fetch]):
    """The answer to one fetch that found fewer than its minimal bytes."""

    def is_ready(self, payload: Fetch) -> bool:
        return payload.is_enough()

    def complete_with(self, payload: Fetch) -> None:
        context = payload.context
        if not context.connection.is_closed:
            context.respond(payload.read())


class Fetches(WaitingPart):
    """Fetches that wait for records."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(answers.timer, "Fetch")
        self._answers = answers
        # In a cluster: fetches of replicas, and who leads what is not led here.
        self.of_replicas: Callable[[RequestContext, FetchRequest], Message | None] | None = None
        self.add_hints: Callable[[RequestContext, FetchResponse], None] | None = None

    def on_moved(self, partition: Partition) -> None:
        self.touch(partition.key)

    def complete(self, budget: int) -> int:
        if not self.touched:
            return budget
        # Producers are answered before the readers that their records wake.
        self._answers.send()
        return super().complete(budget)

    def stop(self) -> None:
        # A fetch that waits may be answered with what is there.
        self.purgatory.shutdown(expire_pending=True)
