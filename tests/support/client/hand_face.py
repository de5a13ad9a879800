"""A face of the tests' own, the smallest there can be: one thread, no lock, no socket, no clock.

It turns a core against the scripted cluster until what it began is done, and calls back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.support.client.scripted_cluster import ScriptedCluster

from tarry.client.core.operation import Answer, Callback, Done, Operation
from tarry.client.sync.interrupts import Interrupts


def perform(
    cluster: ScriptedCluster,
    operation: Operation[Answer],
    call_back: Callable[[Any], None] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Answer:
    """Take the steps of an operation to its end; `tell` hears of trouble after each turn."""

    def is_ready() -> bool:
        if tell is not None:
            tell(cluster.core.trouble(cluster.now_ms))
        return operation.is_ready

    try:
        while True:
            step = operation.step(cluster.now_ms)
            if isinstance(step, Done):
                return step.answer
            if isinstance(step, Callback):
                raised: Exception | None = None
                try:
                    if call_back is not None:
                        call_back(step.event)
                except Exception as error:
                    raised = error
                operation.end_callback(cluster.now_ms, raised)
            else:
                cluster.run_until(is_ready)
    finally:
        operation.end(cluster.now_ms)


class HandDriver:
    """Stands in for the driver of a synchronous client: turns the scripted cluster instead."""

    is_forked = False

    def __init__(self, cluster: ScriptedCluster, core: Any) -> None:
        self.cluster = cluster
        self.core = core
        self.is_closed = False
        self.lock = threading.Lock()

    def now_ms(self) -> int:
        return self.cluster.now_ms

    def check_usable(self) -> None:
        assert not self.is_closed

    def check_parent(self) -> None:
        """Do nothing: nobody forks."""

    def perform(
        self,
        begin: Callable[[int, int], Operation[Answer]],
        timeout: float | None,
        default_ms: int,
        call_back: Callable[[Callback], None] | None = None,
        tell: Callable[[str | None], None] | None = None,
        *,
        interrupts: Interrupts | None = None,
    ) -> Answer:
        timeout_ms = default_ms if timeout is None else int(timeout * 1000)
        operation = begin(timeout_ms, self.cluster.now_ms)
        hear = None if call_back is None else lambda event: call_back(Callback(event))
        try:
            return perform(self.cluster, operation, hear, tell)
        finally:
            if tell is not None:
                tell(None)

    def nudge(self, interrupts: Interrupts | None = None) -> None:
        self.cluster.run_for(0)

    def ask_to_leave(self) -> None:
        """Do nothing: no other thread drives."""

    def close(self) -> None:
        self.is_closed = True
        self.core.close(self.cluster.now_ms)
