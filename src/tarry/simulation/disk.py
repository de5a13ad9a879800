"""Simulated disk: the door `Disk`, with each fault of a real one, drawn from the seed.

Plain use needs nothing: `SimulatedDisk()` behaves like a directory, and `complete_flushes()` gives
the `Flushed` events.  `crash()` is a loss of power: what was not flushed, bytes and names, is kept,
lost or torn by the seed.  `kill()` is a kill -9: what was written stays readable, and is still not
durable.  After both, handles from before are dead.  Faults are asked for one by one
(`fail_writes`, `fail_flushes`, `fail_reads`, `capacity_bytes`, `files_left`, `refuse_directory`,
`flip_bit`, `lose_file`): when they come is the world's decision, not the disk's.
"""

from __future__ import annotations

import random as chance
from typing import Final

from tarry.base.doors import Event, LogFile, Random, flushed
from tarry.base.errors import DiskFull, StorageError, TooManyOpenFiles
from tarry.simulation.inodes import DirectoryNode, FileNode

# Free bytes that a disk without a capacity reports.
_FREE_BYTES: Final = 1 << 40


class PowerLoss(BaseException):
    """Loss of power in the middle of a turn of the broker.

    It is no `Exception`, so that no handler stops it on the way to the world, which calls `crash`.
    """


class SimulatedFile:
    """Handle, the door `LogFile`: it holds its file, so a removed file is read to its end."""

    def __init__(self, disk: SimulatedDisk, path: str, node: FileNode) -> None:
        self.path = path
        self.size = len(node.content)
        self.node = node
        self._disk = disk
        self._life = disk.life
        self._is_closed = False

    def append(self, chunks: list[bytes | memoryview]) -> int:
        self._check_alive()
        assert not self._is_closed, f"{self.path}: append after close"
        assert self.size == len(self.node.content), f"{self.path}: two handles append"
        self._disk.step(self.path)
        position = self.size
        data = b"".join(chunks)
        room = self._disk.room_for_write(self.path, len(data))
        if room < len(data):
            # The bytes before the failure are cut off again, but may come back after a crash.
            self.node.append(data[:room])
            self.node.truncate(position)
            raise DiskFull(f"{self.path}: the disk took {room} of {len(data)} bytes")
        self.node.append(data)
        self.size = len(self.node.content)
        return position

    def read(self, position: int, size_max: int) -> bytes:
        self._check_alive()
        assert position >= 0
        self._disk.check_read(self.path)
        return bytes(self.node.content[position : position + size_max])

    def truncate(self, size: int) -> None:
        self._check_alive()
        assert not self._is_closed, f"{self.path}: truncate after close"
        assert 0 <= size <= len(self.node.content)
        self._disk.step(self.path)
        self.node.truncate(size)
        self.size = size

    def close(self) -> None:
        self._is_closed = True

    def _check_alive(self) -> None:
        if self._life != self._disk.life:
            raise StorageError(f"{self.path}: opened before the crash")


class _Fault:
    """Fault of the next `count` operations on paths that contain `path_part`."""

    __slots__ = ("count", "path_part")

    def __init__(self, count: int, path_part: str) -> None:
        self.count = count
        self.path_part = path_part

    def hits(self, path: str) -> bool:
        if self.count == 0 or self.path_part not in path:
            return False
        self.count -= 1
        return True


class _FlushUnderWay:
    """Flush under way: the files and directories that it covers, with their marks at its start."""

    __slots__ = ("directories", "files", "paths")

    def __init__(self) -> None:
        self.files: list[tuple[FileNode, int]] = []
        self.directories: list[tuple[DirectoryNode, int]] = []
        self.paths: list[str] = []


class SimulatedDisk:
    """Disk with the broker's log directory in memory."""

    def __init__(self, random: Random | None = None, capacity_bytes: int | None = None) -> None:
        self.life = 1
        self.capacity_bytes = capacity_bytes
        # If true, `begin_remove` waits for `complete_removals`, like a worker thread that lags.
        self.defers_removals = False
        self._random: Random = chance.Random(0) if random is None else random
        self._root = DirectoryNode()
        self._flushes: dict[int, _FlushUnderWay] = {}
        self._flush_id = 0
        # Removals under way: the directory, whatever its name is later, and the name in it.
        self._removals: list[tuple[DirectoryNode, str]] = []
        self._write_faults: list[_Fault] = []
        self._flush_faults: list[_Fault] = []
        self._read_faults: list[_Fault] = []
        self._refused_directories: dict[str, None] = {}
        # Count of files that the process may still open; None if there is no limit.
        self.files_left: int | None = None
        self._operations_left = -1
        self._crash_path_part = ""

    # --- The door.

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        self._check_directory(path)
        self._take_files(path, 1)
        directory, name = self._parent(path)
        node = directory.entries.get(name)
        if node is None:
            if not create:
                raise StorageError(f"{path}: no such file")
            self.step(path)
            node = FileNode()
            directory.link(name, node)
        if isinstance(node, DirectoryNode):
            raise StorageError(f"{path}: is a directory")
        return SimulatedFile(self, path, node)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def paths(self, directory: str = "") -> list[str]:
        self._check_directory(directory)
        node = self._directory(directory)
        prefix = f"{directory.rstrip('/')}/" if directory else ""
        return [
            f"{prefix}{name}/" if isinstance(child, DirectoryNode) else f"{prefix}{name}"
            for name, child in sorted(node.entries.items(), key=lambda entry: entry[0])
        ]

    def make_directory(self, path: str) -> None:
        self._check_directory(path)
        directory, name = self._parent(path)
        node = directory.entries.get(name)
        if isinstance(node, FileNode):
            raise StorageError(f"{path}: is a file")
        if node is None:
            self.step(path)
            directory.link(name, DirectoryNode())

    def rename(self, old: str, new: str) -> None:
        directory, old_name = self._parent(old)
        new_directory, new_name = self._parent(new)
        assert directory is new_directory, "a rename stays inside its directory"
        node = directory.entries.get(old_name)
        if node is None:
            raise StorageError(f"{old}: no such file")
        if isinstance(directory.entries.get(new_name), DirectoryNode):
            raise StorageError(f"{new}: is a directory")
        if old_name != new_name:
            self.step(new)
            directory.rename(old_name, new_name)

    def remove(self, path: str) -> None:
        node = self._find(path)
        if isinstance(node, DirectoryNode):
            raise StorageError(f"{path}: is a directory")
        if node is not None:
            self.step(path)
            directory, name = self._parent(path)
            directory.unlink(name)

    def begin_remove(self, path: str) -> None:
        self.step(path)
        if self._find(path) is not None:
            self._removals.append(self._parent(path))
        if not self.defers_removals:
            self.complete_removals()

    def begin_flush(self, files: list[LogFile], directories: list[str]) -> int:
        self._take_files("".join(directories[-1:]), len(directories))
        self.step("")
        flush = _FlushUnderWay()
        for file in files:
            assert isinstance(file, SimulatedFile)
            file._check_alive()
            flush.files.append((file.node, file.node.mark()))
            flush.paths.append(file.path)
        for path in directories:
            node = self._directory(path)
            flush.directories.append((node, node.mark()))
            flush.paths.append(f"{path.rstrip('/')}/")
        self._flush_id += 1
        self._flushes[self._flush_id] = flush
        return self._flush_id

    def flush(self, files: list[LogFile], directories: list[str]) -> None:
        flush_id = self.begin_flush(files, directories)
        self.step("")
        event = self.complete_flush(flush_id)
        if event.error:
            raise StorageError(event.error)

    def free_bytes(self) -> int:
        if self.capacity_bytes is None:
            return _FREE_BYTES
        return max(0, self.capacity_bytes - self.used_bytes())

    def total_bytes(self) -> int:
        if self.capacity_bytes is None:
            return _FREE_BYTES + self.used_bytes()
        return self.capacity_bytes

    # --- The world's side: what happens later, and what goes wrong.

    def pending_flushes(self) -> list[int]:
        """Return the ids of the flushes under way, oldest first."""
        return list(self._flushes)

    def complete_flush(self, flush_id: int) -> Event:
        """End one flush; the event goes into a turn."""
        flush = self._flushes.pop(flush_id)
        for path in flush.paths:
            if _hits_any(self._flush_faults, path):
                for node, mark in flush.files:
                    node.poison(mark, self._random)
                return flushed(flush_id, f"{path}: the device failed to flush (EIO)")
        for node, mark in flush.files:
            node.settle(mark)
        for directory, mark in flush.directories:
            directory.settle(mark)
        return flushed(flush_id)

    def complete_flushes(self) -> list[Event]:
        """End every flush under way, in order."""
        return [self.complete_flush(flush_id) for flush_id in self.pending_flushes()]

    def complete_removals(self) -> int:
        """Complete the removals that were begun, for a world that set `defers_removals`."""
        removals = self._removals
        self._removals = []
        for directory, name in removals:
            if name in directory.entries:
                directory.unlink(name)
        return len(removals)

    def content(self, path: str, start: int = 0) -> bytes:
        """Return a file's bytes from `start` on, without any fault; nothing if it is not there."""
        node = self._find(path)
        return bytes(node.content[start:]) if isinstance(node, FileNode) else b""

    def is_written_behind_cut(self, path: str) -> bool:
        """Return whether a file's bytes may be a mixture of two histories after a crash."""
        node = self._find(path)
        return isinstance(node, FileNode) and node.is_written_behind_cut()

    def used_bytes(self) -> int:
        """Count the bytes of all files that have a name."""
        return _size_of(self._root)

    def fail_writes(self, count: int = 1, path_part: str = "") -> None:
        """Let the next `count` writes to paths that contain `path_part` fail with EIO."""
        self._write_faults.append(_Fault(count, path_part))

    def fail_flushes(self, count: int = 1, path_part: str = "") -> None:
        """Let the next `count` flushes of paths that contain `path_part` fail when they end."""
        self._flush_faults.append(_Fault(count, path_part))

    def fail_reads(self, count: int = 1, path_part: str = "") -> None:
        """Let the next `count` reads of paths that contain `path_part` fail with EIO."""
        self._read_faults.append(_Fault(count, path_part))

    @property
    def fails_reads(self) -> bool:
        """True while a read fault was asked for and has not struck."""
        return any(fault.count for fault in self._read_faults)

    def refuse_directory(self, path: str) -> None:
        """Refuse to make, list or open anything at this path until the disk is healed."""
        self._refused_directories[path] = None

    def is_refused(self, path: str) -> bool:
        """Return whether this directory is refused now."""
        return path in self._refused_directories

    def accept_directory(self, path: str) -> None:
        """Refuse nothing more at this path."""
        self._refused_directories.pop(path, None)

    def crash_after(self, operations: int, path_part: str = "") -> None:
        """Let the power fail after `operations` more operations that change something.

        With a `path_part`, they are counted from the first operation on a path that contains it.
        """
        self._operations_left = operations
        self._crash_path_part = path_part

    def heal(self) -> None:
        """Forget the faults that were asked for and have not struck, and the byte budget."""
        self._write_faults.clear()
        self._flush_faults.clear()
        self._read_faults.clear()
        self._refused_directories.clear()
        self._operations_left = -1
        self.capacity_bytes = None
        self.files_left = None

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Flip one bit of a file, durably."""
        node = self._find(path)
        assert isinstance(node, FileNode)
        node.flip_bit(position, bit)

    def lose_file(self, path: str) -> None:
        """Remove a file from outside of the broker, durably."""
        directory, name = self._parent(path)
        directory.lose(name)

    def crash(self) -> None:
        """Crash the machine: power is lost."""
        self._lose_handles()
        self._root.lose_power(self._random)

    def kill(self) -> None:
        """Kill the process: written bytes and names stay, durable or not."""
        self._lose_handles()
        self._root.lose_process()

    # --- For `SimulatedFile`.

    def step(self, path: str) -> None:
        """Count an operation that is about to change something; `path` is "" for a flush."""
        if self._operations_left < 0 or self._crash_path_part not in path:
            return
        self._crash_path_part = ""
        self._operations_left -= 1
        if self._operations_left < 0:
            raise PowerLoss

    def room_for_write(self, path: str, size: int) -> int:
        """Return how many of `size` bytes the device takes now."""
        room = min(size, self.free_bytes())
        if size and _hits_any(self._write_faults, path):
            return self._random.randrange(size)
        return room

    def check_read(self, path: str) -> None:
        if _hits_any(self._read_faults, path):
            raise StorageError(f"{path}: the device failed to read (EIO)")

    def _check_directory(self, path: str) -> None:
        if not self._refused_directories:
            return
        directory = path.partition("/")[0]
        if directory in self._refused_directories:
            raise StorageError(f"{path}: permission denied")

    def _take_files(self, path: str, count: int) -> None:
        """Count opened files.  Closing gives none back, as a broker rarely closes its files."""
        if self.files_left is None:
            return
        if count > self.files_left:
            raise TooManyOpenFiles(f"{path}: too many files are open")
        self.files_left -= count

    # --- Names.

    def _lose_handles(self) -> None:
        self._operations_left = -1
        self.life += 1
        self._flushes.clear()
        self._removals.clear()

    def _find(self, path: str) -> FileNode | DirectoryNode | None:
        node: FileNode | DirectoryNode | None = self._root
        for name in path.split("/"):
            if name:
                if not isinstance(node, DirectoryNode):
                    return None
                node = node.entries.get(name)
        return node

    def _directory(self, path: str) -> DirectoryNode:
        node = self._find(path)
        if not isinstance(node, DirectoryNode):
            raise StorageError(f"{path}: no such directory")
        return node

    def _parent(self, path: str) -> tuple[DirectoryNode, str]:
        parent, _, name = path.rstrip("/").rpartition("/")
        assert name not in ("", ".", ".."), f"not a path: {path!r}"
        return self._directory(parent), name


def _hits_any(faults: list[_Fault], path: str) -> bool:
    return any(fault.hits(path) for fault in faults)


def _size_of(node: FileNode | DirectoryNode) -> int:
    if isinstance(node, FileNode):
        return len(node.content)
    return sum(_size_of(child) for child in node.entries.values())
