"""Forks: in the child of a fork, every client that the parent has made gives up its resources.

A fork copies the memory of all threads, but only one thread.  So the child's copy of a client has
locks that no thread will release, a core that may be in the middle of a turn, and descriptors of
connections that the parent continues to use.  The copy closes its descriptors, which ends none of
the parent's connections, and refuses every call from then on.
"""

from __future__ import annotations

import os
import threading
from typing import Final, NoReturn, Protocol
from weakref import WeakKeyDictionary

from tarry.client.errors import ClientForked


class Forkable(Protocol):
    """Client that has to give up what belongs to the parent."""

    def disown(self) -> None:
        """Give up the parent's resources; called in the child by its only thread, before anything
        else."""


# Held while a descriptor is made or closed, so that no fork falls between the system call and the
# note of the descriptor.
DESCRIPTORS: Final = threading.RLock()

# Open clients.  The references are weak, so that a client can still be collected.
_OPEN: Final[WeakKeyDictionary[Forkable, None]] = WeakKeyDictionary()


def watch(client: Forkable) -> None:
    """Have the copies of this client in forked children disowned."""
    _OPEN[client] = None


def forget(client: Forkable) -> None:
    """Forget a closed client, which has no resources that a child could touch."""
    _OPEN.pop(client, None)


def refuse() -> NoReturn:
    """Raise the error of every call to a copy in a forked child."""
    raise ClientForked(
        "the client was made before a fork, and its connections belong to the parent process; "
        "make a new client in this process"
    )


class ForkedCore:
    """Stand-in for the core of a client in a forked child; it refuses every access."""

    def __getattr__(self, name: str) -> NoReturn:
        refuse()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        refuse()


def _tell_all() -> None:
    DESCRIPTORS.release()
    clients = list(_OPEN)
    _OPEN.clear()
    for client in clients:
        client.disown()


# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=DESCRIPTORS.acquire, after_in_parent=DESCRIPTORS.release, after_in_child=_tell_all
    )
