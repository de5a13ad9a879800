"""Check and migration of shared metadata: the work behind `tarry metadata`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, NamedTuple

from tarry.base.doors import Disk
from tarry.base.errors import InvalidSetting, TarryError
from tarry.base.etcd import StatusRead
from tarry.base.store_address import StoreAddress, StoreFiles
from tarry.broker.metadata.removals import companion_directory
from tarry.cluster.etcd.joining import check_release
from tarry.cluster.etcd.migration import Migration, MigrationRefused
from tarry.cluster.lives.identity import Identity, read_identity, write_identity
from tarry.cluster.rows.row_check import RowCheck
from tarry.cluster.rows.rows import Keys
from tarry.cluster.state.levels import THIS_RELEASE, may_delay
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.embedded import METADATA_DIRECTORY
from tarry.cluster.store.stored_metadata import read_stored_state
from tarry.runtime.clock import Clock
from tarry.runtime.directory import HeldDirectory
from tarry.runtime.etcd.asking import AskedEtcd
from tarry.runtime.etcd.packages import missing_package
from tarry.runtime.etcd.security import make_tls, read_credentials
from tarry.runtime.files import OsDisk
from tarry.runtime.flusher import Flusher
from tarry.runtime.look_ups import LookUps
from tarry.runtime.poller import READABLE, make_poller
from tarry.runtime.reactor import Reactor
from tarry.runtime.wake import Wake

# Attempts at one transaction with lost answers.
_ATTEMPTS_MAX: Final = 20
_WORKERS_END_S: Final = 1.0
# Share of its quota from which on an operator should act.
_FULL_SHARE: Final = 0.75
# Bytes, and multiple of the rows, from which on etcd is said to keep old history.
_HISTORY_BYTES_MIN: Final = 64 << 20
_HISTORY_RATIO: Final = 20

Tell = Callable[[int, int], None]


class StoreCheck:
    """Findings in etcd: its rows and their consistency, and the member that answered."""

    def __init__(self, release: str, revision: int, rows: RowCheck) -> None:
        self.release = release
        self.revision = revision
        self.rows = rows
        # Faults of etcd itself, and warnings.
        self.problems: list[str] = []
        self.notes: list[str] = []


class Migrated(NamedTuple):
    """Directory that now belongs to a broker of a cluster."""

    cluster_id: str
    node_id: int
    topics: int
    partitions: int
    rows: int
    rows_written: int


def open_etcd(stack: ExitStack, address: StoreAddress, files: StoreFiles) -> AskedEtcd:
    """Return etcd at an address, usable until `stack` is closed.

    `InvalidSetting` if a package or a file is missing.
    """
    try:
        from tarry.runtime.etcd.client import Credentials, EtcdClient
        from tarry.runtime.etcd.socket_link import Endpoint
    except ImportError as error:
        raise InvalidSetting(
            f"the package {missing_package(error)} is missing: pip install tarry[cluster]"
        ) from None
    tls = make_tls(address, files)
    named = read_credentials(files)
    reactor = Reactor(make_poller())
    stack.callback(reactor.close)
    wake = Wake()
    stack.callback(wake.close)
    reactor.add(wake.read_descriptor, READABLE, wake)
    look_ups = LookUps(wake)
    stack.callback(look_ups.close)
    look_ups.begin()
    members = [Endpoint(host, port) for host, port in address.members]
    client = EtcdClient(
        reactor,
        members,
        look_up=look_ups.look_up,
        tls=tls,
        credentials=None if named is None else Credentials(*named),
    )
    stack.callback(client.close)
    return AskedEtcd(client, reactor.wait, Clock().now_ms, address.text)


def check_store(etcd: AskedEtcd, prefix: str) -> StoreCheck:
    """Read all rows below the prefix and check that they fit together."""
    status = etcd.status()
    keys = Keys(prefix)
    read = etcd.read(keys.prefix)
    found = StoreCheck(status.version, read.revision, RowCheck(keys, read.rows))
    try:
        check_release(status.version)
    except TarryError as error:
        found.problems.append(str(error))
    for alarm in status.alarms:
        found.problems.append(_alarm_text(alarm))
    found.notes = room_notes(status, sum(len(row.key) + len(row.value) for row in read.rows))
    return found


def room_notes(status: StatusRead, rows_bytes: int) -> list[str]:
    """Return notes about etcd's space: it keeps each change until that is compacted.

    etcd does not report whether it compacts by itself; the size beside the rows shows it.
    """
    notes: list[str] = []
    if 0 < _FULL_SHARE * status.quota_bytes < status.size_bytes:
        notes.append(
            f"etcd's file has {status.size_bytes >> 20} MiB of the {status.quota_bytes >> 20} that "
            "it may have, then no change is taken: defragment it (etcdctl defrag) or give it a "
            "larger --quota-backend-bytes"
        )
    if status.used_bytes > max(_HISTORY_BYTES_MIN, _HISTORY_RATIO * rows_bytes):
        notes.append(
            f"etcd holds {status.used_bytes >> 20} MiB, and the rows of this cluster have "
            f"{rows_bytes >> 10} KiB: if nobody else uses it, that is old history; start it with "
            "--auto-compaction-retention=1h"
        )
    return notes


def _alarm_text(alarm: str) -> str:
    if "NOSPACE" in alarm:
        return (
            "etcd has no room left below its quota and takes no change: compact and defragment it "
            "(etcdctl compact, etcdctl defrag), then etcdctl alarm disarm; start it with "
            "--auto-compaction-retention=1h so that it does not come back"
        )
    return f"etcd tells of trouble: {alarm}; look into the log of its members"


def migrate_directory(
    path: str, etcd: AskedEtcd, prefix: str, node_id: int | None, tell: Tell
) -> Migrated:
    """Move the metadata of a stopped broker into etcd; `tell` gets the rows done and their number.

    `TarryError` if that is impossible: the broker runs, the prefix is not empty, the data is
    damaged.
    """
    if not os.path.isdir(os.path.join(path, METADATA_DIRECTORY)):
        what = "holds no topics of a single broker" if os.path.isdir(path) else "does not exist"
        raise MigrationRefused(f"{path} {what}: name the directory that its log.dirs names")
    with ExitStack() as stack:
        directory = HeldDirectory(path)
        stack.callback(directory.close)
        flusher = Flusher(lambda: None)
        stack.callback(flusher.close, _WORKERS_END_S)
        return migrate(OsDisk(directory.path, flusher), etcd, prefix, node_id, tell)


def migrate(disk: Disk, etcd: AskedEtcd, prefix: str, node_id: int | None, tell: Tell) -> Migrated:
    """Move the metadata on this disk into etcd; no broker uses the disk."""
    before = read_identity(disk)
    if before is not None:
        raise MigrationRefused(
            f"the directory belongs to broker {before.broker_id} of cluster {before.cluster_id} "
            "already: start it with metadata.store"
        )
    state = read_stored_state(disk)
    _refuse_unnamed_delays(disk, state)
    own_id = state.broker_ids[0] if node_id is None else node_id
    keys = Keys(prefix)
    migration = Migration(state, keys, own_id, THIS_RELEASE)
    check_release(etcd.status().version)
    written = _write_rows(migration, etcd, prefix, tell)
    write_identity(disk, Identity(state.cluster_id, own_id, migration.directory_id))
    return Migrated(
        state.cluster_id,
        own_id,
        migration.topic_count,
        migration.partition_count,
        len(migration.rows),
        written,
    )


def _refuse_unnamed_delays(disk: Disk, state: ClusterState) -> None:
    """Refuse if records may wait on this disk although their topic's settings do not say that: a
    replica on another broker would be made without them.
    """
    directories = {path.partition("/")[0] for path in disk.paths()}
    for topic in state.topics.values():
        companions = (
            companion_directory(topic.name, index, topic.topic_id)
            for index in range(len(topic.partitions))
        )
        if not may_delay(topic.configs) and not directories.isdisjoint(companions):
            raise MigrationRefused(
                f"the topic {topic.name} had delay.enable=true once, and records of it may wait: "
                "start the broker, set delay.enable=false on the topic, stop the broker, and "
                "repeat the migration"
            )


def _write_rows(migration: Migration, etcd: AskedEtcd, prefix: str, tell: Tell) -> int:
    """Write the missing rows in order; return how many rows this attempt has written."""
    total = len(migration.rows)
    written = 0
    attempts = 0
    missing = _missing(migration, etcd, prefix)
    while missing:
        tell(total - len(missing), total)
        compares, puts = migration.step(missing)
        if etcd.transact(compares, list(puts)):
            attempts = 0
            written += len(puts)
            missing = missing[len(puts) :]
            continue
        attempts += 1
        if attempts == _ATTEMPTS_MAX:
            raise MigrationRefused(
                "etcd loses answer after answer: look at its members, then repeat the migration, "
                "which goes on where this one ended"
            )
        # The transaction was done or not, or another program has written: read the rows again.
        missing = _missing(migration, etcd, prefix)
    tell(total, total)
    return written


def _missing(migration: Migration, etcd: AskedEtcd, prefix: str) -> list[bytes]:
    try:
        return migration.missing(etcd.read(migration.keys.prefix).rows)
    except MigrationRefused as error:
        member = etcd.text.split(", ")[0]
        raise MigrationRefused(
            f"{error}; name another prefix, or, if nobody needs what is there, empty it: "
            f"etcdctl --endpoints {member} del --prefix {prefix}"
        ) from None
