"""Notes: what happens in a group, to be logged and kept for `tarry groups why`.

A kind of groups has notes of its own beside these.
"""

from __future__ import annotations

import logging
from typing import ClassVar, Final

import msgspec
from msgspec.structs import asdict, replace

from tarry.base.errors import error_name
from tarry.base.probe import Probe

# Most characters of each text that a note keeps: clients choose the length of names, and all notes
# together have to stay small.
TEXT_CHARACTERS_MAX: Final = 500


class Note(msgspec.Struct, frozen=True):
    """Note of what an operator may ask about."""

    level: ClassVar[int] = logging.DEBUG

    def sentence(self) -> str:
        """Return what the broker's log says of it, after the name of the group."""
        raise NotImplementedError

    def shortened(self) -> Note:
        """Return the note, with what is kept of its texts."""
        changes = {
            name: f"{value[:TEXT_CHARACTERS_MAX]}..."
            for name, value in asdict(self).items()
            if isinstance(value, str) and len(value) > TEXT_CHARACTERS_MAX
        }
        return replace(self, **changes) if changes else self

    def report(self, group_id: str, probe: Probe) -> None:
        """Report to the probe what it asks for."""


class MemberRemoved(Note, frozen=True):
    """A member, or an id that was given out, is gone."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    reason: str
    # Since when nothing was heard of it.
    silent_ms: int
    # What comes of it, as half a sentence.
    follows: str = ""

    level: ClassVar[int] = logging.INFO

    def sentence(self) -> str:
        instance = f" (instance {self.instance_id})" if self.instance_id is not None else ""
        return (
            f"member {self.member_id}{instance} of client {self.client_id} at {self.client_host} "
            f"was removed: {self.reason}; silent for {self.silent_ms} ms; {self.follows}"
        )

    def report(self, group_id: str, probe: Probe) -> None:
        probe.on_member_removed(group_id, self.member_id, self.reason, self.silent_ms)


class AppendFailed(Note, frozen=True):
    """Records did not get into the log; what came of it is in the answers."""

    what: str
    error_code: int

    level: ClassVar[int] = logging.WARNING

    def sentence(self) -> str:
        return f"{self.what} could not be stored: {error_name(self.error_code)}"
