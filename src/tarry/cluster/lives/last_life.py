"""Trust in a disk: what a process leaves for the next one about how far its logs are whole.

A log is whole if it holds every record that counted as kept.  A log is whole after a clean stop,
which waits for each flush, and after a crash of the process alone, if the machine was not
restarted.  A broker whose log of a partition may not be whole leaves that partition's isr.  Until
it has left, the partition is a doubt and stands in this file: nothing else on the disk says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import msgspec

from tarry.base.doors import Disk, LogFile
from tarry.base.errors import StorageError
from tarry.base.ids import id_from_text, id_text
from tarry.cluster.decisions.row_changes import Place

FILE: Final = ".tarry_last_life"
_NEW_FILE: Final = f"{FILE}.new"


class LastLife(msgspec.Struct, frozen=True):
    """Content of the file: the flush policy and the boot of the machine of the life that wrote it,
    and the partitions whose logs are not whole, by topic id and index.
    """

    flush_policy: str
    boot_id: str
    doubts: list[tuple[str, int]] = []
    format: int = 1


# Value that stands for a file that cannot be read: no log can be trusted then.
UNREADABLE: Final = LastLife("", "")


def read_last_life(disk: Disk) -> LastLife | None:
    """Return what the last life left; None if there is no file, `UNREADABLE` if it is damaged."""
    if not disk.exists(FILE):
        return None
    file = disk.open(FILE)
    try:
        last = msgspec.json.decode(file.read(0, file.size), type=LastLife)
        doubted_places(last)
        return last
    except (msgspec.DecodeError, ValueError):
        return UNREADABLE
    finally:
        file.close()


# Function that calls another one when the flush with this id has ended.
Then = Callable[[int, Callable[[int], None]], None]


class Doubts:
    """Partitions whose logs on this broker are not whole.  The disk has the list as long as this
    broker counts as in sync in them.

    `then(flush_id, function)` has the function called when the flush with this id has ended.
    """

    def __init__(
        self,
        disk: Disk,
        flush_policy: str,
        boot_id: str,
        places: Iterable[Place] = (),
        *,
        then: Then | None = None,
    ) -> None:
        self._disk = disk
        self._flush_policy = flush_policy
        self._boot_id = boot_id
        self._places: dict[Place, None] = dict.fromkeys(places)
        self._then = then
        self._is_flushing = False
        self._has_changed = False

    def __contains__(self, place: object) -> bool:
        return place in self._places

    def __len__(self) -> int:
        return len(self._places)

    def places(self) -> list[Place]:
        """Return all doubted partitions."""
        return list(self._places)

    def save(self) -> None:
        """Write the doubts durably.  Only at start: the call waits for the disk."""
        file = self._write()
        try:
            self._disk.flush([file], [""])
        finally:
            file.close()
        self._disk.rename(_NEW_FILE, FILE)
        self._disk.flush([], [""])

    def settle(self, places: Iterable[Place]) -> None:
        """Doubt these partitions no more: this broker has left their isr, or was elected there
        uncleanly.

        A crash before the file is durable brings the doubts back.  A doubt too many makes the
        broker leave an isr once more, and loses no record.
        """
        settled = [place for place in places if place in self._places]
        for place in settled:
            del self._places[place]
        self._has_changed = self._has_changed or bool(settled)
        if self._has_changed and not self._is_flushing and self._then is not None:
            self._has_changed = False
            try:
                file = self._write()
                flush_id = self._disk.begin_flush([file], [])
            except StorageError:
                # The next call of `settle` writes the file.
                self._has_changed = True
                return
            self._is_flushing = True
            self._then(flush_id, partial(self._on_flushed, file))

    def _on_flushed(self, file: LogFile, flush_id: int) -> None:
        self._is_flushing = False
        try:
            file.close()
            self._disk.rename(_NEW_FILE, FILE)
        except StorageError:
            # The next call of `settle` writes the file.
            self._has_changed = True
            return
        self.settle(())

    def _write(self) -> LogFile:
        doubts = [(id_text(topic_id), index) for topic_id, index in self._places]
        content = msgspec.json.encode(LastLife(self._flush_policy, self._boot_id, doubts))
        self._disk.remove(_NEW_FILE)
        file = self._disk.open(_NEW_FILE, create=True)
        file.append([content])
        return file


def doubted_places(last: LastLife | None) -> list[Place]:
    """Return the partitions that the last life doubted and did not settle."""
    return [] if last is None else [(id_from_text(text), index) for text, index in last.doubts]


def was_trustworthy(
    last: LastLife | None, flush_policy: str, boot_id: str, *, was_clean: bool
) -> bool:
    """Return whether the disk holds what the last life counted as kept.

    If the last life left no file, its flush policy is taken to be the present one.
    """
    if last is UNREADABLE:
        return False
    if was_clean:
        return True
    if last is None:
        return flush_policy == "commit"
    return last.flush_policy == "commit" or (last.boot_id == boot_id != "")
