"""FaceDriver: the common part of the drivers of all faces; a subclass turns the core.

A driver belongs to one face.  It can be used until it is closed, or until a fork copies it: the
copy, in the child, refuses every call.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from tarry.client.core.core import ClientCore
from tarry.client.core.operation import Answer, Operation
from tarry.client.errors import ClientClosed
from tarry.client.face import forks
from tarry.client.face.clock import monotonic_ms, wall_ms
from tarry.client.settings import ClientSettings

Core = TypeVar("Core", bound=ClientCore)

# Function that begins an operation of the core; it takes the time-out and the time, in ms.
Begin = Callable[[int, int], Operation[Answer]]


class FaceDriver(Generic[Core]):
    """Driver of one core, to be subclassed; a subclass turns the core."""

    # Word before the name of a face in its `repr`.
    prefix: ClassVar[str] = ""

    def __init__(self, settings: ClientSettings, make_core: Callable[[Self], Core]) -> None:
        self.core = make_core(self)
        self.settings = settings
        self.is_closed = False
        # True in the child of a fork: sockets and threads belong to the process that made the
        # client.
        self.is_forked = False
        # Lock that is held while the core is accessed.
        self.lock: AbstractContextManager[object] = nullcontext()
        # Calls the user's functions for events of the core; clients without such functions do
        # nothing.
        self.tell_users: Callable[[], None] = _tell_nobody
        self._finalizer: weakref.finalize[..., object] | None = None

    # --- The clocks, which tests replace

    def now_ms(self) -> int:
        """Return the monotonic time.  The time of an event loop may stand still within a turn of
        the loop."""
        return monotonic_ms()

    def wall_ms(self) -> int:
        return wall_ms()

    # --- Refusals

    def check_usable(self) -> None:
        """Raise an error if the client was closed, or copied by a fork."""
        self.check_parent()
        if self.is_closed:
            raise ClientClosed("the client is closed")

    def check_parent(self) -> None:
        """Raise ClientForked if a fork has copied the client."""
        if self.is_forked:
            forks.refuse()

    def describe(self, face: object, what: str = "") -> str:
        """Return the `repr` of a face: its bootstrap servers, and whether it is closed."""
        words = [type(face).__name__, self.settings.text("bootstrap.servers"), what]
        words.append("of the parent process" if self.is_forked else "")
        words.append("closed" if self.is_closed and not self.is_forked else "")
        return f"<{self.prefix}{' '.join(word for word in words if word)}>"

    # --- The end

    def close_when_forgotten(self, face: object, what: str) -> None:
        """Close the client, with a warning, if its face is collected without a close."""
        self._finalizer = weakref.finalize(face, _close_forgotten, self, what)
        # At the end of the program nobody could see the warning, and no event loop runs.
        self._finalizer.atexit = False

    def abandon(self) -> None:
        """Close the client, whose face is gone, when its work is done.  The collector may call this
        in any thread."""
        raise NotImplementedError

    def let_go(self) -> None:
        """Stop watching forks and the collector, because the client is closed."""
        forks.forget(self)
        if self._finalizer is not None:
            self._finalizer.detach()

    def disown(self) -> None:
        """Give up what belongs to the parent, in the child of a fork.  From now on every call is
        refused, also those of this thread that are under way."""
        self.is_forked = True
        self.is_closed = True
        self.core.disown()
        self.core = cast(Core, forks.ForkedCore())


def _close_forgotten(driver: FaceDriver[Any], what: str) -> None:
    if not driver.is_closed:
        driver.abandon()
        warnings.warn(f"{what} was not closed", ResourceWarning, stacklevel=1)


def _tell_nobody() -> None:
    pass
