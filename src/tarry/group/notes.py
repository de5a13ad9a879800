"""Notes of events in a group, which are logged and kept for `tarry groups why`.

Each kind of group adds its own notes.
"""

from __future__ import annotations

import logging
from typing import ClassVar, Final

import msgspec
from msgspec.structs import asdict, replace

from tarry.base.errors import error_name
from tarry.base.probe import Probe

# Characters of each text that a kept note has: clients choose the length of names, and all notes
# together must stay small.
TEXT_CHARACTERS_MAX: Final = 500


class Note(msgspec.Struct, frozen=True):
    """Note of an event that an operator may ask about."""

    level: ClassVar[int] = logging.DEBUG

    def sentence(self) -> str:
        """Return the sentence for the broker's log, which follows the group's name."""
        raise NotImplementedError

    def shortened(self) -> Note:
        """Return the note with its texts shortened, to be kept."""
        changes = {
            name: f"{value[:TEXT_CHARACTERS_MAX]}..."
            for name, value in asdict(self).items()
            if isinstance(value, str) and len(value) > TEXT_CHARACTERS_MAX
        }
        return replace(self, **changes) if changes else self

    def report(self, group_id: str, probe: Probe) -> None:
        """Report the event to the probe, if it has a call for it."""


class MemberRemoved(Note, frozen=True):
    """Note of a removed member, or of a removed id that was given out."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    reason: str
    # Time since the last sign of life, in ms.
    silent_ms: int
    # Consequence for the group, as half a sentence.
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
    """Note of records that did not get into the log; the answers say the consequence."""

    what: str
    error_code: int

    level: ClassVar[int] = logging.WARNING

    def sentence(self) -> str:
        return f"{self.what} could not be stored: {error_name(self.error_code)}"
