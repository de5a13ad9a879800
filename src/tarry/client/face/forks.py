"""Forks: in the child of a fork, every client that the parent made is told to let go.

A fork copies the memory of all threads and only one thread.  So the child's copy of a client has
locks that nobody will release, a core that may be in the middle of a turn, and descriptors of
connections that the parent goes on using.  The copy closes its descriptors, which ends nothing of
the parent's, and from then on refuses whatever it is asked.
"""

from __future__ import annotations

import os
import threading
from typing import Final, NoReturn, Protocol
from weakref import WeakKeyDictionary

from tarry.client.errors import ClientForked


class Forkable(Protocol):
    """Client that has to let go of what belongs to the parent."""

    def disown(self) -> None:
        """Let go, in the child; called by the only thread that it has, before anything else."""


# Held while a descriptor is made or closed: no fork falls between its being there and its being
# known.
DESCRIPTORS: Final = threading.RLock()

# Nothing of a client keeps another one: who is collected is told nothing.
_OPEN: Final[WeakKeyDictionary[Forkable, None]] = WeakKeyDictionary()


def watch(client: Forkable) -> None:
    """Have the client's copies in forked children told."""
    _OPEN[client] = None


def forget(client: Forkable) -> None:
    """Forget a client that is closed: it has nothing that a child could touch."""
    _OPEN.pop(client, None)


def refuse() -> NoReturn:
    """Raise what every call of a child's copy raises."""
    raise ClientForked(
        "the client was made before a fork, and its connections belong to the parent process; "
        "make a new client in this process"
    )


class ForkedCore:
    """Stand-in for the core of a client in a forked child: it refuses whatever it is asked."""

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


# There are systems without a fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=DESCRIPTORS.acquire, after_in_parent=DESCRIPTORS.release, after_in_child=_tell_all
    )
