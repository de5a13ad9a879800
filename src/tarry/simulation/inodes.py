"""Files and directories of a device, each with a cached and a durable side.

`content` and `entries` are what a process sees (the page cache).  `pending` are the operations
since the last completed flush, in order.  A crash of the machine leaves the durable side plus any
part of the pending operations: each kept, lost or torn, in any combination, because a device
writes back in any order.  What a completed flush covered is never touched.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Random

# A device writes a sector whole or not at all; a prefix of one may still come from a torn page.
SECTOR_BYTES: Final = 512

_KEPT: Final = 0
_LOST: Final = 1
_TORN: Final = 2
_SCATTERED: Final = 3


class WriteOperation:
    """Bytes written at a position, or with `data` None a cut of the file to `position`."""

    __slots__ = ("cut_bytes", "data", "position")

    def __init__(self, position: int, data: bytes | None, cut_bytes: int = 0) -> None:
        self.position = position
        self.data = data
        self.cut_bytes = cut_bytes


class FileNode:
    """File: its bytes as a process sees them, and those that are sure to survive."""

    def __init__(self) -> None:
        self.content = bytearray()
        self._durable = bytearray()
        self._pending: list[WriteOperation] = []
        # Count of operations that have left `_pending`: the marks of flushes count them, too.
        self._settled = 0
        self._is_poisoned = False

    def append(self, data: bytes) -> None:
        self._pending.append(WriteOperation(len(self.content), data))
        self.content += data

    def truncate(self, size: int) -> None:
        cut_bytes = max(len(self.content) - size, 0)
        self._pending.append(WriteOperation(size, None, cut_bytes))
        del self.content[size:]

    def is_written_behind_cut(self) -> bool:
        """Return whether a crash may bring back cut bytes behind bytes written after the cut."""
        was_cut = False
        for operation in self._pending:
            if operation.data is not None and was_cut:
                return True
            was_cut = was_cut or operation.cut_bytes > 0
        return False

    def mark(self) -> int:
        """Return the mark up to which a flush that begins now covers."""
        return self._settled + len(self._pending)

    def settle(self, mark: int) -> None:
        """Make durable the operations up to `mark`: the flush that began there succeeded."""
        count = max(0, mark - self._settled)
        for operation in self._pending[:count]:
            _apply(self._durable, operation)
        self._drop(count)

    def poison(self, mark: int, random: Random) -> None:
        """Let part of the operations up to `mark` survive: the flush that began there failed.

        As on Linux, the pages of the file count as clean from now on: lost bytes stay readable from
        the cache, and no later flush writes them.
        """
        count = max(0, mark - self._settled)
        for operation in self._pending[:count]:
            _survive(self._durable, operation, random)
        self._drop(count)
        self._is_poisoned = True

    def lose_process(self) -> None:
        """Keep the cache after a kill of the process, except what a failed flush left in it."""
        if not self._is_poisoned:
            return
        self.content = bytearray(self._durable)
        for operation in self._pending:
            _apply(self.content, operation)
        self._is_poisoned = False

    def lose_power(self, random: Random) -> None:
        """Keep the durable bytes and any part of the pending ones after a loss of power."""
        for operation in self._pending:
            _survive(self._durable, operation, random)
        self._drop(len(self._pending))
        self.content = bytearray(self._durable)
        self._is_poisoned = False

    def flip_bit(self, position: int, bit: int) -> None:
        """Flip a bit on the medium: no flush and no crash brings it back."""
        self.content[position] ^= 1 << bit
        if position < len(self._durable):
            self._durable[position] ^= 1 << bit

    def _drop(self, count: int) -> None:
        del self._pending[:count]
        self._settled += count


class NameOperation:
    """Change of a node's name from `old` to `new`; "" stands for no name."""

    __slots__ = ("new", "node", "old")

    def __init__(self, old: str, new: str, node: FileNode | DirectoryNode) -> None:
        self.old = old
        self.new = new
        self.node = node


class DirectoryNode:
    """Directory: its names as a process sees them, and those that are sure to survive."""

    def __init__(self) -> None:
        self.entries: dict[str, FileNode | DirectoryNode] = {}
        self._durable: dict[str, FileNode | DirectoryNode] = {}
        self._pending: list[NameOperation] = []
        self._settled = 0

    def link(self, name: str, node: FileNode | DirectoryNode) -> None:
        self._change(NameOperation("", name, node))

    def rename(self, old: str, new: str) -> None:
        self._change(NameOperation(old, new, self.entries[old]))

    def unlink(self, name: str) -> None:
        self._change(NameOperation(name, "", self.entries[name]))

    def lose(self, name: str) -> None:
        """Lose the name durably: no pending operation brings it back."""
        node = self.entries.pop(name)
        for known in [known for known, other in self._durable.items() if other is node]:
            del self._durable[known]
        for operation in self._pending:
            if operation.node is node:
                operation.old = operation.new = ""

    def mark(self) -> int:
        return self._settled + len(self._pending)

    def settle(self, mark: int) -> None:
        count = max(0, mark - self._settled)
        for operation in self._pending[:count]:
            _rename(self._durable, operation)
        self._drop(count)

    def lose_process(self) -> None:
        for node in self.entries.values():
            node.lose_process()

    def lose_power(self, random: Random) -> None:
        """Keep all name changes, none, those up to some moment (a journal), or each by chance."""
        count = len(self._pending)
        fate = random.randrange(4)
        prefix = random.randrange(count + 1)
        for index, operation in enumerate(self._pending):
            is_kept = (
                fate == _KEPT
                or (fate == _TORN and index < prefix)
                or (fate == _SCATTERED and random.randrange(2) == 0)
            )
            if is_kept:
                _rename(self._durable, operation)
        self._drop(count)
        self.entries = dict(self._durable)
        for name in sorted(self.entries):
            self.entries[name].lose_power(random)

    def _change(self, operation: NameOperation) -> None:
        self._pending.append(operation)
        _rename(self.entries, operation)

    def _drop(self, count: int) -> None:
        del self._pending[:count]
        self._settled += count


def _apply(image: bytearray, operation: WriteOperation) -> None:
    if operation.data is None:
        del image[operation.position :]
        return
    _reach(image, operation.position)
    image[operation.position : operation.position + len(operation.data)] = operation.data


def _survive(image: bytearray, operation: WriteOperation, random: Random) -> None:
    """Apply what a crash leaves of one operation."""
    fate = random.randrange(4)
    if operation.data is None:
        if fate in (_KEPT, _TORN):
            _apply(image, operation)
    elif fate == _KEPT:
        _apply(image, operation)
    elif fate == _TORN:
        kept = operation.data[: random.randrange(len(operation.data) + 1)]
        if kept:
            _apply(image, WriteOperation(operation.position, kept))
    elif fate == _SCATTERED:
        _scatter(image, operation, random)


def _scatter(image: bytearray, operation: WriteOperation, random: Random) -> None:
    """Keep or lose each sector of the write; a lost one before a kept one reads as zeros."""
    data = operation.data
    assert data is not None
    start = operation.position
    end = start + len(data)
    while start < end:
        stop = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        if random.randrange(2) == 0:
            part = data[start - operation.position : stop - operation.position]
            _apply(image, WriteOperation(start, part))
        start = stop
    if random.randrange(4) == 0:
        # The new size of a file may be durable before its bytes are.
        _reach(image, end)


def _reach(image: bytearray, size: int) -> None:
    if len(image) < size:
        image += bytes(size - len(image))


def _rename(entries: dict[str, FileNode | DirectoryNode], operation: NameOperation) -> None:
    if operation.new:
        # A node has one name.  If an earlier rename was lost, the node still has its older name.
        for name in [name for name, node in entries.items() if node is operation.node]:
            del entries[name]
        entries[operation.new] = operation.node
    elif entries.get(operation.old) is operation.node:
        del entries[operation.old]
