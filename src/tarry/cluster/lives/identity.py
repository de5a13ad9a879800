"""Identity of a log directory that belongs to a cluster: which cluster, which broker, which disk.

The directory id is drawn once for each directory.  A broker whose directory id differs from the
registered one runs on another disk, which lacks the data that the broker's id promises.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tarry.base.doors import Disk
from tarry.base.errors import CorruptData, InvalidSetting

FILE: Final = ".tarry_cluster"
_NEW_FILE: Final = f"{FILE}.new"
_SIZE_MAX: Final = 4_096


class Identity(msgspec.Struct, frozen=True):
    """Content of the file of a directory."""

    cluster_id: str
    broker_id: int
    directory_id: str
    format: int = 1


def read_identity(disk: Disk) -> Identity | None:
    """Return the identity of the directory; None if it belongs to no cluster; `CorruptData` if
    damaged.
    """
    if not disk.exists(FILE):
        return None
    file = disk.open(FILE)
    try:
        return msgspec.json.decode(file.read(0, _SIZE_MAX), type=Identity)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptData(f"{FILE} in log.dirs cannot be read: {error}") from error
    finally:
        file.close()


def write_identity(disk: Disk, identity: Identity) -> None:
    """Write the identity durably.  Only at start: the call waits for the disk."""
    disk.remove(_NEW_FILE)
    file = disk.open(_NEW_FILE, create=True)
    try:
        file.append([msgspec.json.encode(identity)])
        disk.flush([file], [""])
    finally:
        file.close()
    disk.rename(_NEW_FILE, FILE)
    disk.flush([], [""])


def refuse_members_directory(disk: Disk) -> None:
    """Raise `InvalidSetting` if a broker without a cluster is started on a member's directory."""
    identity = read_identity(disk)
    if identity is not None:
        raise InvalidSetting(
            f"log.dirs has the data of broker {identity.broker_id} of cluster "
            f"{identity.cluster_id}, whose metadata is in etcd: name it in metadata.store, or "
            "choose another log.dirs"
        )
