"""Delayed operations: they complete by a watch key or expire by a timer, exactly once.

`Purgatory` is for one thread, with the time as an argument; `ThreadedPurgatory` is the same for
many threads, on a `SystemTimer`.  Both hold a `DelayedOperation`, most simply a
`PayloadOperation`, which drops its payload when it completes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tarry.purgatory.operation import (
        DelayedOperation,
        OperationListener,
        PayloadOperation,
        PurgatoryShutDown,
    )
    from tarry.purgatory.purgatory import Purgatory
    from tarry.purgatory.threaded import ThreadedPurgatory

__all__ = [
    "DelayedOperation",
    "OperationListener",
    "PayloadOperation",
    "Purgatory",
    "PurgatoryShutDown",
    "ThreadedPurgatory",
]

# Modules are imported on first use: the broker needs no threads.
_MODULES: Final[dict[str, str]] = {
    "DelayedOperation": "operation",
    "OperationListener": "operation",
    "PayloadOperation": "operation",
    "Purgatory": "purgatory",
    "PurgatoryShutDown": "operation",
    "ThreadedPurgatory": "threaded",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
