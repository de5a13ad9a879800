"""Joining of a cluster: what a broker has to learn from etcd before it opens its logs.

It checks etcd's release and the cluster below the prefix, reads all rows, and checks that the log
directory belongs to them.  While etcd does not answer, it waits and says for what.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Final

from tarry.base.doors import Disk, Event, Random
from tarry.base.errors import TarryError
from tarry.base.etcd import CallFailed, Etcd, EtcdAnswer, EtcdEvent, StatusRead
from tarry.base.ids import id_text, random_id
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.cluster.etcd.etcd_store import ANSWER_MS_MAX, RETRY_MS, EtcdStore
from tarry.cluster.lives.identity import Identity, read_identity, write_identity
from tarry.cluster.lives.life import Life, why_taken
from tarry.cluster.rows.rows import ROW_FORMAT, BrokerRow, Keys, LifeRow
from tarry.cluster.state.levels import THIS_RELEASE, Release, why_not_known
from tarry.cluster.state.records import ClusterCreated, MetadataRecord
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.change import Change
from tarry.cluster.store.embedded import METADATA_DIRECTORY
from tarry.purgatory.alarm import Alarm
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.cluster")

# A lease may end late.  A life under this broker's id that lasts longer than so many leases belongs
# to another running broker.
LEASES_WAITED: Final = 3
# Older releases of etcd renew leases that are over, or give stale answers to reads.
RELEASES_MIN: Final = ((3, 5, 28), (3, 6, 9))


class JoinRefused(TarryError):
    """The cluster cannot be joined; the sentence says what to do."""


class MakeCluster(Change):
    """The creation of a cluster, by the broker that comes first."""

    def __init__(self, cluster_id: str) -> None:
        super().__init__()
        self._cluster_id = cluster_id

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        return [] if view.cluster_id else [ClusterCreated(cluster_id=self._cluster_id)]


class Joining:
    """A broker on its way into a cluster.  Call `turn` until `is_done`; it raises `JoinRefused`.

    Afterwards `store` has read all rows, the broker goes on with `timer` and `turn_state`, and
    `life` is ready to begin.
    """

    def __init__(
        self,
        etcd: Etcd,
        disk: Disk,
        random: Random,
        settings: Settings,
        now_ms: int,
        now_wall_ms: int,
        *,
        release: Release = THIS_RELEASE,
    ) -> None:
        address = settings.store_address
        assert address is not None
        self._etcd = etcd
        self._disk = disk
        self._random = random
        self._settings = settings
        self._address = address
        self._release = release
        self.turn_state = Turn(now_ms, now_wall_ms)
        self.timer = TimingWheel(now_ms)
        self.keys = Keys(address.prefix)
        self._failure = ""
        self._fail_broker: Callable[[str], None] | None = None
        self.store = EtcdStore(
            etcd,
            self.keys,
            self.turn_state,
            self.timer,
            self._fail,
            release=release,
            broker_id=settings.node_id,
        )
        self.life: Life | None = None
        # True if the broker is registered with another disk than this one.
        self.is_other_disk = False
        # Time at which the broker gives up waiting for its id to become free; None if it does not
        # wait.
        self._refuse_ms: int | None = None
        self._identity = read_identity(disk)
        self._status_id = 0
        self._is_status_known = False
        self._making: MakeCluster | None = None
        self._alarm = Alarm(self.timer, self.turn_state, self._on_time)
        # Reason why the broker waits, as a sentence for the log.
        self.obstacle = f"no answer of etcd at {address.text} yet"
        if self._identity is None and disk.exists(METADATA_DIRECTORY):
            raise JoinRefused(
                "log.dirs holds the topics of a broker that keeps its metadata itself: take them "
                "into the cluster with tarry metadata migrate, name another directory, or start "
                "it without metadata.store"
            )
        self._ask_status()

    @property
    def is_done(self) -> bool:
        """True once the broker may open its logs."""
        return self.life is not None

    def turn(self, events: list[Event], now_ms: int, now_wall_ms: int) -> None:
        """Take the answers of etcd, and do the next step."""
        self.turn_state.now_ms = now_ms
        self.turn_state.now_wall_ms = now_wall_ms
        for event in events:
            if isinstance(event, EtcdEvent):
                self._on_answer(event.answer)
        for entry in self.timer.advance(now_ms):
            entry.expire()
        if self._failure:
            raise JoinRefused(self._failure)
        if self.store.reading_trouble:
            self.obstacle = f"the rows in etcd cannot be read: {self.store.reading_trouble}"
        if self._is_status_known and self.store.is_ready and self.life is None:
            self._look_at_cluster()

    def next_due_ms(self) -> int | None:
        """Return the time of the next step if etcd answers nothing; None if there is none."""
        return self.timer.next_due_ms()

    def serve(self, fail: Callable[[str], None]) -> None:
        """Call `fail`, which stops the broker, if the rows become unreadable from now on."""
        self._fail_broker = fail

    def _fail(self, sentence: str) -> None:
        if self._fail_broker is None:
            self._failure = sentence
        else:
            self._fail_broker(sentence)

    # --- etcd.

    def _ask_status(self) -> None:
        self._status_id = self._etcd.begin_status()
        self._alarm.arm(ANSWER_MS_MAX)

    def _on_time(self) -> None:
        if self._is_status_known:
            # The status is known, and every turn looks at the cluster by itself.
            return
        if self._status_id:
            status_id, self._status_id = self._status_id, 0
            self._etcd.cancel(status_id)
        self._ask_status()

    def _on_answer(self, answer: EtcdAnswer) -> None:
        if answer.call_id != self._status_id:
            self.store.on_answer(answer)
            return
        self._status_id = 0
        if isinstance(answer, CallFailed):
            self.obstacle = answer.reason
            self._alarm.arm(RETRY_MS)
        elif isinstance(answer, StatusRead):
            self._alarm.cancel()
            check_release(answer.version)
            self._is_status_known = True
            self.obstacle = "the rows in etcd are not read yet"
            self.store.begin()

    # --- The cluster.

    def _look_at_cluster(self) -> None:
        fault = why_not_known(self.store.state.feature_levels.items(), self._release.levels)
        if fault:
            raise JoinRefused(fault)
        cluster_id = self.store.state.cluster_id
        identity = self._identity
        if not cluster_id:
            if identity is not None:
                raise JoinRefused(
                    f"log.dirs belongs to cluster {identity.cluster_id}, and etcd has none below "
                    f"{self._address.prefix}: name its prefix in metadata.store, or restore etcd"
                )
            if self._making is None or self._making.is_ended:
                self._making = MakeCluster(id_text(random_id(self._random)))
                self.store.change(self._making)
            return
        if identity is not None:
            self._check_identity(identity, cluster_id)
        if self._is_id_in_use():
            return
        if identity is None:
            directory_id = id_text(random_id(self._random))
            identity = Identity(cluster_id, self._settings.node_id, directory_id)
            write_identity(self._disk, identity)
            self._identity = identity
        self._alarm.cancel()
        self.life = self._make_life(identity)

    def _check_identity(self, identity: Identity, cluster_id: str) -> None:
        if identity.cluster_id != cluster_id:
            raise JoinRefused(
                f"log.dirs belongs to cluster {identity.cluster_id}, and etcd keeps cluster "
                f"{cluster_id} below {self._address.prefix}: name the prefix of the first in "
                "metadata.store, or another directory"
            )
        if identity.broker_id != self._settings.node_id:
            raise JoinRefused(
                f"node.id={self._settings.node_id}: the data belongs to broker "
                f"{identity.broker_id}; write node.id={identity.broker_id} or choose another "
                "log.dirs"
            )

    def _is_id_in_use(self) -> bool:
        """Return whether a broker with another disk lives under this id.  Raise `JoinRefused` if it
        stays.

        That broker may have been killed while its lease still runs.
        """
        broker_id = self._settings.node_id
        other = self.store.known.get(self.keys.life(broker_id))
        own = None if self._identity is None else self._identity.directory_id
        if not isinstance(other, LifeRow) or other.directory_id == own:
            return False
        now_ms = self.turn_state.now_ms
        if self._refuse_ms is None:
            self._refuse_ms = now_ms + LEASES_WAITED * self._settings.broker_session_timeout_ms
        self.obstacle = why_taken(self.store.known, broker_id)
        if now_ms >= self._refuse_ms:
            raise JoinRefused(self.obstacle)
        self._alarm.arm(RETRY_MS)
        return True

    def _make_life(self, identity: Identity) -> Life:
        settings = self._settings
        endpoints = settings.advertised_addresses()
        known = self.store.known.get(self.keys.broker(identity.broker_id))
        registered = known.directory_id if isinstance(known, BrokerRow) else ""
        self.is_other_disk = registered not in ("", identity.directory_id)
        if self.is_other_disk:
            logger.warning(
                "broker %d is registered with another log directory: what it has to keep is not on "
                "this one, so it leaves all replicas in sync and copies them anew",
                identity.broker_id,
            )
        registration = BrokerRow(
            ROW_FORMAT,
            # Another disk is registered once no partition depends on the disk before it.
            registered or identity.directory_id,
            settings.broker_rack or "",
            endpoints,
            self._release.name,
            dict(self._release.levels),
        )
        return Life(
            self._etcd,
            self.store.known,
            settings.node_id,
            registration,
            self.turn_state,
            self.timer,
            ttl_ms=settings.broker_session_timeout_ms,
            renew_ms=settings.broker_heartbeat_interval_ms,
            directory_id=identity.directory_id,
        )


def check_release(version: str) -> None:
    """Raise `JoinRefused` for a release of etcd whose leases or reads cannot be relied on."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if len(numbers) < 3 or numbers < RELEASES_MIN[0]:
        is_accepted = False
    elif numbers[:2] == RELEASES_MIN[1][:2]:
        is_accepted = numbers >= RELEASES_MIN[1]
    else:
        is_accepted = True
    if not is_accepted:
        raise JoinRefused(
            f"etcd is release {version}: it renews leases that are over, or reads what is stale; "
            "install 3.6.9 or newer, or 3.5.28 or newer of 3.5"
        )
