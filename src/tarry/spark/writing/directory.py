"""Directory of a sink: plans, marks and the files of tasks, shared by the driver and the workers.

| name | holds |
|---|---|
| `sink.json` | the query that the directory belongs to |
| `plan-BATCH.AMENDMENT.json` | the plan of a micro-batch |
| `done-BATCH` | the mark that all of it is in the topics |
| `task-ID.batches` | finished batches of one task |

A file that counts appears with all of its content, or not at all, and is durable when it appears.
"""

from __future__ import annotations

import errno
import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from tarry.spark.durable_files import (
    TEMPORARY,
    create_if_absent,
    flush_directory,
    make_directories,
)
from tarry.spark.writing.effects import StoredPlan
from tarry.spark.writing.plan import (
    Plan,
    PlannedFile,
    SinkInterrupted,
    SinkRefused,
    decode_plan,
    encode_plan,
)

BINDING: Final = "sink.json"
PLAN: Final = "plan-"
DONE: Final = "done-"
TASK: Final = "task-"

# Plans that are done are kept for so many micro-batches, as Spark keeps its own logs.
PLANS_KEPT: Final = 100

# Files of tasks that no plan names are left over; no task takes a day.
LEFT_OVER_SECONDS: Final = 24 * 3600


URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(//(?P<host>[^/]*))?(?P<path>.*)")


class Binding(msgspec.Struct, frozen=True):
    """Content of `sink.json`."""

    query_id: str
    version: int = 1


def local_path(location: str, option: str = "sinkLocation") -> Path:
    """Return the path of a location.  Raises SinkRefused for what is no directory of a file
    system.

    A path in a URL stands for itself, "%20" too: Spark reads its checkpoint's location so.
    """
    found = URL.fullmatch(location)
    if found is None:
        return Path(location)
    if found["scheme"].lower() == "file" and found["host"] in (None, "", "localhost"):
        return Path(found["path"])
    raise SinkRefused(
        f"{option} is {location}, and the sink needs a directory of a file system that driver and "
        "workers share (local, NFS, a mounted volume), where a file is created by one of two only: "
        f"give such a directory as the option {option}"
    )


class SinkDirectory:
    """Directory at `path`, made when something is written."""

    def __init__(self, path: Path, plans_kept: int = PLANS_KEPT) -> None:
        self.path = path
        self._plans_kept = plans_kept

    # --- The query

    def bind(self, query_id: str) -> None:
        """Take the directory for a query.  Raises SinkRefused if it is another one's."""
        self.make()
        if self._create(BINDING, msgspec.json.encode(Binding(query_id))):
            # A task that was killed may have made the directory, and not its durable name.
            flush_directory(self.path.parent)
        text = self._read(BINDING) or b""
        try:
            bound = msgspec.json.decode(text, type=Binding)
        except msgspec.MsgspecError as error:
            raise SinkRefused(f"{self.path / BINDING} is damaged: {error}") from None
        if bound.query_id != query_id:
            raise SinkRefused(
                f"the sink's directory {self.path} belongs to query {bound.query_id}, and this is "
                f"query {query_id}: give this query a sinkLocation of its own"
            )

    def make(self) -> None:
        """Make the directory, with a durable name: plans in it are of no use without that."""
        with self._telling("cannot be made"):
            make_directories(self.path)

    # --- Plans

    def read_plan(self, batch_id: int) -> StoredPlan | None:
        """Read the newest plan of a micro-batch."""
        amendments = [amendment for batch, amendment in self._plans() if batch == batch_id]
        if not amendments:
            return None
        name = f"{PLAN}{batch_id:020d}.{max(amendments)}.json"
        text = self._read(name)
        if text is None:
            return None
        plan = decode_plan(text, str(self.path / name))
        return StoredPlan(plan, (self.path / _done(batch_id)).exists())

    def read_first_plan(self, batch_id: int) -> Plan | None:
        """Read the plan of a micro-batch before anything of it was amended: it has all records."""
        name = f"{PLAN}{batch_id:020d}.0.json"
        text = self._read(name)
        return None if text is None else decode_plan(text, str(self.path / name))

    def read_newest(self) -> StoredPlan | None:
        """Read the plan of the newest micro-batch."""
        batch_id = max((batch for batch, _ in self._plans()), default=None)
        return None if batch_id is None else self.read_plan(batch_id)

    def create_plan(self, plan: Plan) -> bool:
        """Write a plan; False if there is one of this micro-batch and amendment."""
        name = f"{PLAN}{plan.batch_id:020d}.{plan.amendment}.json"
        return self._create(name, encode_plan(plan))

    def mark_done(self, plan: Plan) -> None:
        """Mark a plan, and remove what is of no use any more."""
        self._create(_done(plan.batch_id), b"")
        self._remove_old()

    def _plans(self) -> list[tuple[int, int]]:
        """List micro-batch and amendment of every plan."""
        found: list[tuple[int, int]] = []
        for name in self._names():
            batch, _, rest = name.removeprefix(PLAN).partition(".")
            amendment, _, suffix = rest.partition(".")
            if name.startswith(PLAN) and suffix == "json" and batch.isdigit():
                found.append((int(batch), int(amendment)))
        return found

    def _names(self) -> list[str]:
        with self._telling("cannot be read"):
            return sorted(os.listdir(self.path)) if self.path.exists() else []

    def _remove_old(self) -> None:
        newest = self.read_newest()
        if newest is None:
            return
        oldest = newest.plan.batch_id - self._plans_kept
        kept = {file.name for file in newest.plan.files}
        for batch, amendment in self._plans():
            if batch < oldest:
                self.remove([f"{PLAN}{batch:020d}.{amendment}.json"])
        for name in self._names():
            number = name.removeprefix(DONE)
            if name.startswith(DONE) and number.isdigit() and int(number) < oldest:
                self.remove([name])
            elif name.startswith((TASK, TEMPORARY)) and name not in kept:
                with suppress(OSError):
                    if time.time() - (self.path / name).stat().st_mtime > LEFT_OVER_SECONDS:
                        self.remove([name])

    # --- Files

    def new_task_file(self) -> str:
        """Return a name that no other file has."""
        return f"{TASK}{uuid.uuid4().hex}.batches"

    def lacking(self, files: list[PlannedFile]) -> list[str]:
        """Return the paths of files that are not there, or with fewer or more bytes."""
        return [str(self.path / file.name) for file in files if not self._has(file)]

    def _has(self, file: PlannedFile) -> bool:
        with self._telling("cannot be read"):
            try:
                return (self.path / file.name).stat().st_size == file.size
            except FileNotFoundError:
                return False

    def remove(self, names: list[str]) -> None:
        """Remove files; those that are gone already are fine."""
        for name in names:
            with suppress(OSError):
                os.unlink(self.path / name)

    def flush_names(self) -> None:
        """Make the names in the directory durable."""
        flush_directory(self.path)

    def _read(self, name: str) -> bytes | None:
        with self._telling("cannot be read"):
            try:
                return (self.path / name).read_bytes()
            except FileNotFoundError:
                return None

    def _create(self, name: str, content: bytes) -> bool:
        """Create a file with its content, durable; False if one of this name is there."""
        with self._telling("cannot be written"):
            return create_if_absent(self.path / name, content)

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        """Raise an error of the operating system as a sentence."""
        try:
            yield
        except OSError as error:
            raise refusal(self.path, what, error) from error


def _done(batch_id: int) -> str:
    return f"{DONE}{batch_id:020d}"


def refusal(path: Path, what: str, error: OSError) -> SinkRefused:
    """Make the error of a directory that cannot be used."""
    advice = "mend that and start the query again; it goes on where it stopped"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "make room and start the query again; it goes on where it stopped"
    elif error.errno in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
        advice = (
            "the file system must be able to give a file a second name (a hard link); give another "
            "directory as the option sinkLocation"
        )
    return SinkInterrupted(
        f"the sink's directory {path} {what}: {error.strerror}. Advice: {advice}"
    )
