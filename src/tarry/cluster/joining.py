"""Joining of a cluster: what a broker has to know of etcd before it opens its logs.

etcd's release and the cluster of the prefix are looked at, all rows are read, and the directory is
held against them.  While etcd does not answer this waits, and says for what.
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
from tarry.cluster.change import Change
from tarry.cluster.embedded import METADATA_DIRECTORY
from tarry.cluster.etcd_store import ANSWER_MS_MAX, RETRY_MS, EtcdStore
from tarry.cluster.identity import Identity, read_identity, write_identity
from tarry.cluster.life import Life, why_taken
from tarry.cluster.records import ClusterCreated, MetadataRecord
from tarry.cluster.rows import ROW_FORMAT, BrokerRow, Keys, LifeRow
from tarry.cluster.state import ClusterState, stands_still
from tarry.log.identity import LogIdentity
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.cluster")

# A lease may end late.  A life under this id that lasts longer is one of another broker.
LEASES_WAITED: Final = 3
# Older ones renew leases that are over, or read what is stale.
RELEASES_MIN: Final = ((3, 5, 28), (3, 6, 9))


class JoinRefused(TarryError):
    """The cluster cannot be joined; the sentence says what to do."""


class MakeCluster(Change):
    """The making of a cluster, by whichever broker comes first."""

    def __init__(self, cluster_id: str) -> None:
        super().__init__()
        self._cluster_id = cluster_id

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        return [] if view.cluster_id else [ClusterCreated(cluster_id=self._cluster_id)]


class Joining:
    """A broker on its way into a cluster.  `turn` until `is_done`; `JoinRefused` if it may not.

    Afterwards `store` has read everything, `timer` and `turn_state` are the broker's from then on,
    and `life` waits to be begun.
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
        release: str,
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
        self.store = EtcdStore(etcd, self.keys, self.turn_state, self.timer, self._fail)
        self.store.known.count_here = self._count_here
        self.life: Life | None = None
        # The registered disk is another one than this.
        self.is_other_disk = False
        # When to give up that the id becomes free.
        self._refuse_ms: int | None = None
        self._identity = read_identity(disk)
        self._status_id = 0
        self._is_status_known = False
        self._making: MakeCluster | None = None
        self._alarm = _JoiningAlarm(self._on_time)
        # What it waits for, for the log.
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
        """Take what etcd has answered, and the next step."""
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
        """Return when the next step is due though nothing is answered; None: not at all."""
        return self.timer.next_due_ms()

    def _fail(self, sentence: str) -> None:
        self._failure = sentence

    # --- etcd.

    def _ask_status(self) -> None:
        self._status_id = self._etcd.begin_status()
        self._arm(ANSWER_MS_MAX)

    def _on_time(self) -> None:
        if self._is_status_known:
            # The cluster is looked at in every turn.
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
            self._arm(RETRY_MS)
        elif isinstance(answer, StatusRead):
            self.timer.cancel(self._alarm)
            check_release(answer.version)
            self._is_status_known = True
            self.obstacle = "the rows in etcd are not read yet"
            self.store.begin()

    def _arm(self, delay_ms: int) -> None:
        self.timer.cancel(self._alarm)
        self._alarm.deadline_ms = self.turn_state.now_ms + delay_ms
        self.timer.add(self._alarm)

    # --- The cluster.

    def _look_at_cluster(self) -> None:
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
        self.timer.cancel(self._alarm)
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
        """Return whether a broker with another disk lives under this id; refuse if it stays.

        It may have been killed, and its lease may still run.
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
        self._arm(RETRY_MS)
        return True

    def _count_here(self, topic: str, topic_id: bytes) -> int:
        """Return how many partitions of a topic there are at least: it has data of the last one."""
        indexes = [-1]
        for path in self._disk.paths():
            name, _, index = path.removesuffix("/").rpartition("-")
            if name == topic and index.isascii() and index.isdigit() and len(index) < 10:
                identity = LogIdentity(path.removesuffix("/"), topic_id)
                if identity.read(self._disk) == identity.text:
                    indexes.append(int(index))
        return max(indexes) + 1

    def _make_life(self, identity: Identity) -> Life:
        settings = self._settings
        fault = self.store.known.fault(self.keys.broker(identity.broker_id))
        if fault:
            raise JoinRefused(
                f"the registration of this broker cannot be had, so it is not known whether its "
                f"data is that of another disk: {fault}; mend the row"
            )
        endpoints = {
            listener.name: (listener.advertised_host, listener.advertised_port)
            for listener in settings.open_listeners
        }
        known = self.store.known.get(self.keys.broker(identity.broker_id))
        registered = known.directory_id if isinstance(known, BrokerRow) else ""
        self.is_other_disk = registered not in ("", identity.directory_id)
        if self.is_other_disk:
            self._refuse_what_cannot_be_left()
            logger.warning(
                "broker %d is registered with another log directory: what it has to keep is not on "
                "this one, so it leaves all replicas in sync and copies them anew",
                identity.broker_id,
            )
        registration = BrokerRow(
            ROW_FORMAT,
            # Another disk is registered when nobody counts on the one before any more.
            registered or identity.directory_id,
            settings.broker_rack or "",
            endpoints,
            self._release,
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

    def _refuse_what_cannot_be_left(self) -> None:
        """Refuse another disk while a partition stands still: it may have this broker in sync, and
        once its row is mended nobody could tell an empty log from one that never had a record.
        """
        for topic in self.store.state.topics.values():
            if any(stands_still(row) for row in topic.partitions):
                raise JoinRefused(
                    f"broker {self._settings.node_id} is registered with another log directory, "
                    f"and topic {topic.name} stands still, so that this broker cannot leave its "
                    "replicas in sync: mend the rows that tarry metadata check names, then start "
                    "this broker again"
                )


def check_release(version: str) -> None:
    """Refuse a release of etcd whose leases or reads cannot be relied on; `JoinRefused`."""
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


class _JoiningAlarm(TimerEntry):
    """Timer's entry of the next question to etcd."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__(0)
        self._act = act

    def expire(self) -> None:
        self._act()
