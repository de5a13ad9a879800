"""Job `verify`: an archive is recounted, against itself and against the broker.

It shares nothing with what wrote the archive but the manifests: rows are counted from the files and
read anew from the broker.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tarry.base.ids import TopicPartition
from tarry.client import OffsetOutOfRange
from tarry.client.arrow import scan
from tarry.client.arrow.installed import load_pyarrow
from tarry.spark.archive.compactions import holders_of
from tarry.spark.archive.directory import DELTA, ArchiveDirectory
from tarry.spark.archive.manifest import ArchivedFile, ArchivedRange, ArchiveRefused, Manifest
from tarry.spark.archive.parquet_files import HIDDEN
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1024 * 1024


@dataclass
class VerifiedArchive:
    """Result of a recount.  `faults` has a sentence for each thing that is wrong."""

    rounds: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0
    offsets: int = 0
    # Offsets of ranges without a row: markers of transactions, compacted records.
    gaps: int = 0
    # Offsets that the log had lost before they were archived.
    lost: int = 0
    # Rows that the broker still has and that were compared.
    compared: int = 0
    # Rows by topic that no broker has any more, because the topic or the partition was deleted, or
    # the topic made anew.
    uncompared: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def verify(
    path: Path,
    settings: Mapping[str, str] | None = None,
    *,
    checksums: bool = True,
    tell: Callable[[int, int], None] = lambda done, count: None,
) -> VerifiedArchive:
    """Recount an archive; with a consumer's settings, beside what the broker still has.

    `tell` gets how many rounds are recounted, after each, and how many there are.
    Raises ArchiveRefused where there is no archive, a manifest that cannot be read, or another
    cluster at these settings.
    """
    directory = ArchiveDirectory(path)
    bound = directory.bound()
    found = VerifiedArchive()
    # Before the manifests are read: the file of a round that comes meanwhile has a manifest then.
    seen = _seen_by_readers(path)
    files = FilesNow(directory, found, checksums)
    ends: dict[TopicPartition, int] = {}
    if settings is None:
        for manifest in _manifests(directory, found, tell):
            _verify_round(files, manifest, ends, found)
        _verify_sums(directory, files, found)
        _verify_seen(directory, seen, found)
        return found
    committed = {"isolation.level": "read_committed", **settings}
    with closing(LiveCluster(settings)) as logs, closing(LiveCluster(committed)) as readable:
        cluster_id = logs.cluster_id()
        if cluster_id != bound.cluster_id:
            raise ArchiveRefused(
                f"{path} archives the cluster {bound.cluster_id}, and this is the cluster "
                f"{cluster_id}: give the address of the former, or recount without it (--offline)"
            )
        broker = BrokerRows(logs, readable, committed)
        for manifest in _manifests(directory, found, tell):
            offsets = _verify_round(files, manifest, ends, found)
            broker.compare(manifest, offsets, found)
        broker.check_ends(ends, found)
    _verify_sums(directory, files, found)
    _verify_seen(directory, seen, found)
    return found


def _seen_by_readers(path: Path) -> list[str]:
    """Return the files that readers of the directory take for rows of topics."""
    names = [str(one.relative_to(path)) for one in path.glob("topic=*/**/*") if one.is_file()]
    # What begins so is hidden.
    return sorted(
        name for name in names if not any(part.startswith(("_", ".")) for part in name.split("/"))
    )


def _verify_seen(directory: ArchiveDirectory, seen: Sequence[str], found: VerifiedArchive) -> None:
    """Check that readers see files of rounds only; no manifest knows what others hold.

    Readers of a Delta table see what its log names, whatever else lies there.
    """
    if directory.bound().table == DELTA:
        return
    known = {
        file.path for number in directory.numbers() for file in directory.manifest(number).files
    }
    known.update(file.path for one in directory.compactions.since(0) for file in one.files)
    found.faults += [
        f"{directory.path / name} is of no round, and readers see its rows: move it away"
        for name in seen
        if name not in known
    ]


def _verify_sums(directory: ArchiveDirectory, files: FilesNow, found: VerifiedArchive) -> None:
    """Check what no round alone tells: merged files, and the Delta table."""
    files.check_counted()
    table = directory.table()
    if table is None:
        return
    import pyarrow.compute as pc

    expected: dict[str, dict[int, int]] = {}
    numbers = directory.numbers()
    snapshot = table.snapshot()
    newest = table.round_of(snapshot)
    for number in numbers:
        manifest = directory.manifest(number)
        if number > newest and manifest.files:
            found.faults.append(
                f"round {number} is not in the Delta table yet: the next run of archive adds it"
            )
        for one in manifest.ranges if number <= newest else ():
            of_topic = expected.setdefault(one.topic, {})
            of_topic[one.partition] = of_topic.get(one.partition, 0) + one.rows
    for topic, partitions in sorted(expected.items()):
        rows = table.offsets(snapshot, topic)
        for partition, count in sorted(partitions.items()):
            offsets = rows.filter(pc.equal(rows["partition"], partition))["offset"]
            different = len(pc.unique(offsets))
            if (len(offsets), different) != (count, count):
                found.faults.append(
                    f"the Delta table has {len(offsets)} rows of {topic} [{partition}] with "
                    f"{different} offsets, and the rounds have {count}"
                )


def _manifests(
    directory: ArchiveDirectory, found: VerifiedArchive, tell: Callable[[int, int], None]
) -> Iterator[Manifest]:
    """Yield the manifests in order, the files of the newest one in their place."""
    expected = 1
    numbers = directory.numbers()
    for number in numbers:
        if number != expected:
            found.faults.append(f"the manifests of rounds {expected} to {number - 1} are missing")
        expected = number + 1
        found.rounds += 1
        manifest = directory.manifest(number)
        if number == numbers[-1]:
            # A run is at it just now, or was killed; who may only read cannot mend that.
            with suppress(OSError, ArchiveRefused):
                directory.place(manifest)
        yield manifest
        tell(found.rounds, len(numbers))


def _verify_round(
    files: FilesNow,
    manifest: Manifest,
    ends: dict[TopicPartition, int],
    found: VerifiedArchive,
) -> dict[TopicPartition, pa.Array]:
    """Check ranges and files of one round; return the offsets of its rows, sorted."""
    arrow = load_pyarrow()
    parts: dict[TopicPartition, list[pa.Array]] = {}
    for file in manifest.files:
        offsets = files.offsets_of(file)
        if offsets is not None:
            parts.setdefault((file.topic, file.partition), []).append(offsets)
    sorted_offsets: dict[TopicPartition, pa.Array] = {}
    for one in manifest.ranges:
        place = one.topic, one.partition
        _verify_range(manifest, one, ends.get(place), found)
        ends[place] = one.end
        joined = arrow.chunked_array(parts.pop(place, []), arrow.int64())
        offsets = joined.combine_chunks().sort()
        _verify_rows(manifest, one, offsets, found)
        sorted_offsets[place] = offsets
    for topic, partition in parts:
        found.faults.append(
            f"round {manifest.number} has files of {topic} [{partition}] and no range for them"
        )
    return sorted_offsets


def _verify_range(
    manifest: Manifest, one: ArchivedRange, end_before: int | None, found: VerifiedArchive
) -> None:
    found.lost += one.lost
    found.offsets += one.end - one.first
    found.gaps += one.end - one.first - one.rows
    if end_before is not None and one.first - one.lost != end_before:
        what = "overlap" if one.first - one.lost < end_before else "gap"
        found.faults.append(
            f"{what} in {one.topic} [{one.partition}]: round {manifest.number} begins at "
            f"{one.first}, the round before ended at {end_before}"
        )


def _verify_rows(
    manifest: Manifest, one: ArchivedRange, offsets: pa.Array, found: VerifiedArchive
) -> None:
    import pyarrow.compute as pc

    where = f"round {manifest.number}, {one.topic} [{one.partition}]"
    if len(offsets) != one.rows:
        found.faults.append(f"{where}: the files have {len(offsets)} rows, not {one.rows}")
    if len(offsets) == 0:
        return
    if offsets[0].as_py() < one.first or offsets[-1].as_py() >= one.end:
        found.faults.append(f"{where}: rows lie outside of {one.first} to {one.end}")
    doubled = len(offsets) - len(pc.unique(offsets))
    if doubled:
        found.faults.append(f"{where}: {doubled} offsets are there more than once")


class FilesNow:
    """Files that hold the rows of rounds now: their own ones, or those of compactions."""

    def __init__(
        self, directory: ArchiveDirectory, found: VerifiedArchive, checksums: bool
    ) -> None:
        self._path = directory.path
        self._compactions = directory.compactions
        self._found = found
        self._checksums = checksums
        # By path of a file that was replaced: the one that holds its rows.
        self._holders: dict[str, ArchivedFile] = {}
        # By path of a holder: its offsets, and how many files are still to be looked up in it.
        self._offsets: dict[str, pa.Array | None] = {}
        self._left: Counter[str] = Counter()
        self._rows_left: Counter[str] = Counter()
        # A run that was killed while it changed a directory; who may only read cannot mend that.
        with suppress(OSError, ArchiveRefused):
            if not self._compactions.is_settled():
                with self._compactions.lock(is_needed=True):
                    self._compactions.settle()
        self._read_holders()

    def offsets_of(self, file: ArchivedFile) -> pa.Array | None:
        """Check the file that holds the rows of a round's file; return the offsets of these."""
        if not (self._path / self._holders.get(file.path, file).path).is_file():
            # It may have been replaced a moment ago.
            self._read_holders()
        holder = self._holders.get(file.path)
        if holder is None:
            return _verify_file(self._path / file.path, file, self._found, self._checksums)
        return self._part_of(file, holder)

    def check_counted(self) -> None:
        """Find rows of merged files that are of no round."""
        for path, rows in sorted(self._rows_left.items()):
            if rows > 0 and self._left[path] == 0:
                self._found.faults.append(
                    f"{self._path / path} has {rows} rows more than the files that it replaced"
                )

    def _part_of(self, file: ArchivedFile, holder: ArchivedFile) -> pa.Array | None:
        import pyarrow.compute as pc

        if holder.path not in self._offsets:
            where = self._path / holder.path
            self._offsets[holder.path] = _verify_file(where, holder, self._found, self._checksums)
            self._rows_left[holder.path] = holder.rows
        offsets = self._offsets[holder.path]
        self._left[holder.path] -= 1
        if self._left[holder.path] == 0:
            self._offsets[holder.path] = None
        if offsets is None:
            return None
        is_within = pc.and_(pc.greater_equal(offsets, file.first), pc.less(offsets, file.end))
        part = offsets.filter(is_within)
        self._rows_left[holder.path] -= len(part)
        return part

    def _read_holders(self) -> None:
        compactions = self._compactions.since(0)
        self._holders = holders_of(compactions)
        merged = {file.path for one in compactions for file in one.files}
        self._left = Counter(
            holder.path for path, holder in self._holders.items() if path not in merged
        )


def _verify_file(
    path: Path, file: ArchivedFile, found: VerifiedArchive, checksums: bool
) -> pa.Array | None:
    """Check one file; return the offsets of its rows."""
    import pyarrow.parquet as pq

    found.files += 1
    if path.name.startswith(HIDDEN):
        found.faults.append(
            f"{path} is passed over by pyarrow and Spark, since its name begins with "
            f'"{path.name[0]}": archive {file.topic} to another path'
        )
    if not path.is_file():
        found.faults.append(f"{path} is missing")
        return None
    size = path.stat().st_size
    found.bytes += size
    if size != file.bytes:
        found.faults.append(f"{path} has {size} bytes, not {file.bytes}")
        return None
    if checksums and _sha256(path) != file.sha256:
        found.faults.append(f"{path} is damaged: its SHA-256 is not {file.sha256}")
        return None
    table: Any = pq.read_table(path, columns=["offset"], partitioning=None)
    if table.num_rows != file.rows:
        found.faults.append(f"{path} has {table.num_rows} rows, not {file.rows}")
    found.rows += table.num_rows
    return table.column("offset").combine_chunks()


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


class BrokerRows:
    """Rows that a broker still has, beside those of an archive.

    `logs` tells the ends of logs, `readable` those of what is committed.
    """

    def __init__(
        self, logs: LiveCluster, readable: LiveCluster, settings: Mapping[str, str]
    ) -> None:
        self._logs = logs
        self._readable = readable
        self._settings = settings
        # Partitions that are still those that were archived.
        self._there: dict[TopicPartition, None] = {}

    def compare(
        self,
        manifest: Manifest,
        archived: Mapping[TopicPartition, pa.Array],
        found: VerifiedArchive,
    ) -> None:
        """Compare a round, as far as the logs still reach back, and forth."""
        topics = self._logs.topics(TopicChoice(names=tuple(manifest.topic_ids)))
        there = [
            one
            for one in manifest.ranges
            if one.topic in topics
            and topics[one.topic].topic_id == manifest.topic_ids[one.topic]
            and topics[one.topic].has(one.partition)
        ]
        kept = {(one.topic, one.partition) for one in there}
        for one in manifest.ranges:
            if one.rows and (one.topic, one.partition) not in kept:
                found.uncompared[one.topic] = found.uncompared.get(one.topic, 0) + one.rows
        places = [(one.topic, one.partition) for one in there]
        self._there.update(dict.fromkeys(places))
        starts, ends = self._readable.starts(places), self._readable.ends(places)
        for one, place in zip(there, places, strict=True):
            first, end = max(one.first, starts[place]), min(one.end, ends[place])
            if first < end:
                self._compare_range(manifest, (*place, first, end), archived[place], found)

    def check_ends(self, archived: Mapping[TopicPartition, int], found: VerifiedArchive) -> None:
        """Check that no log ends before what was archived of it."""
        places = [place for place in archived if place in self._there]
        for (topic, partition), end in self._logs.ends(places).items():
            if end < archived[topic, partition]:
                found.faults.append(
                    f"the archive holds {topic} [{partition}] up to offset "
                    f"{archived[topic, partition]}, and the log ends at {end}: it was truncated"
                )

    def _compare_range(
        self,
        manifest: Manifest,
        place: tuple[str, int, int, int],
        archived: pa.Array,
        found: VerifiedArchive,
    ) -> None:
        import pyarrow.compute as pc

        topic, partition, _, end = place
        first, there = self._offsets(*place)
        kept = archived.filter(pc.greater_equal(archived, first))
        found.compared += len(there)
        missing = len(there) - pc.sum(pc.is_in(there, value_set=kept)).as_py() if len(there) else 0
        if missing:
            found.faults.append(
                f"round {manifest.number}, {topic} [{partition}]: the broker has {missing} records "
                f"from {first} to {end} that the archive does not have"
            )

    def _offsets(self, topic: str, partition: int, first: int, end: int) -> tuple[int, pa.Array]:
        """Return the offsets of records in a range, and where the log begins in it."""
        arrow = load_pyarrow()
        while True:
            try:
                ranges = {(topic, partition): (first, end)}
                scanned = list(scan(ranges, self._settings, columns=["offset"]))
            except OffsetOutOfRange:
                # Retention has taken the begin meanwhile.
                start = self._readable.starts([(topic, partition)])[topic, partition]
                if start <= first:
                    raise
                first = min(start, end)
                continue
            columns = [batch.column("offset") for batch in scanned]
            return first, arrow.chunked_array(columns, arrow.int64()).combine_chunks()
