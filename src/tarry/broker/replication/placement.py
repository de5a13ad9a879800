"""Placement of followed partitions: each is in one lane to its leader, or waits.

It waits for a record, because its leader has no life in the row's epoch or its row has to change,
or for the end of a pause or a cut.  Every way in which copying stops ends in one of these waits.
"""

from __future__ import annotations

import contextlib
import logging
from functools import partial
from typing import Final

from tarry.base.ids import id_from_text
from tarry.base.partition_row import PartitionRow
from tarry.base.repeated import RepeatedFaults
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.peers.asker import Asker
from tarry.broker.peers.peers import Peers
from tarry.broker.replication.calendars import Calendars
from tarry.broker.replication.cuts import Cuts
from tarry.broker.replication.followed import (
    CUTTING,
    FETCHING,
    IDLE,
    PAUSED,
    SETTLING,
    STANDING,
    Followed,
)
from tarry.broker.replication.lane import Lane, LaneKey
from tarry.broker.replication.lane_requests import ReplicaTerms
from tarry.cluster.state.records import BrokerDescribed, LifeChanged, LifeEnded, MetadataRecord
from tarry.cluster.state.state import ClusterState
from tarry.link.events import Address
from tarry.link.pauses import backoff_ms
from tarry.link.tasks import Task
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import ReplicatedLog

logger = logging.getLogger("tarry.replication")

_RATE_UNLIMITED: Final = 1 << 62

# A batch came to the leader in one request, and the rest of an answer is small.
_OVERHEAD_BYTES: Final = 1 << 20

# Pauses grow: from a part of `replica.fetch.backoff.ms` to all of it if the failure is expected,
# otherwise from all of it to a multiple.
_EXPECTED_PART: Final = 32
_PAUSES_MAX: Final = 5


def terms_of(settings: Settings) -> ReplicaTerms:
    """Return the terms of this broker as a follower, from its settings."""
    return ReplicaTerms(
        settings.node_id,
        timeout_ms=settings.replica_socket_timeout_ms,
        wait_ms_max=settings.replica_fetch_wait_max_ms,
        bytes_min=settings.replica_fetch_min_bytes,
        partition_bytes_max=settings.replica_fetch_max_bytes,
        response_bytes_max=settings.replica_fetch_response_max_bytes,
        backoff_ms=settings.replica_fetch_backoff_ms,
    )


def _directory_id_of(text: str) -> bytes:
    with contextlib.suppress(ValueError):
        return id_from_text(text)
    return bytes(16)


class Placement:
    """Followed partitions, and the lanes to their leaders."""

    def __init__(
        self,
        settings: Settings,
        state: ClusterState,
        turn: Turn,
        flushes: Flushes,
        peers: Peers,
        cuts: Cuts,
        *,
        calendars: Calendars,
    ) -> None:
        self.cuts = cuts
        self._calendars = calendars
        self.lanes: dict[LaneKey, Lane] = {}
        self.followed: dict[ReplicatedLog, Followed] = {}
        # Partitions with records or a cut at the end of their log that are not durable yet.
        self.unsettled: dict[Followed, None] = {}
        # Lanes that may have something to send.
        self.stirred: dict[Lane, None] = {}
        self.terms = terms_of(settings)
        self._peers = peers
        # Askers for the lanes of replicas in sync, and for the lanes of those that catch up.
        self._askers = (self._new_asker(settings), self._new_asker(settings))
        self._settings = settings
        self._state = state
        self._turn = turn
        self._flushes = flushes
        self._by_leader: dict[int, dict[Followed, None]] = {}
        self._faults = RepeatedFaults(logger)
        self._is_stopped = False

    def _new_asker(self, settings: Settings) -> Asker:
        bytes_max = max(
            self.terms.response_bytes_max,
            self.terms.partition_bytes_max,
            settings.socket_request_max_bytes,
        )
        return self._peers.asker(
            "replica",
            timeout_ms=settings.replica_socket_timeout_ms,
            backoff_ms=settings.replica_fetch_backoff_ms,
            answer_bytes_max=bytes_max + _OVERHEAD_BYTES,
        )

    # -- roles and lives

    def switch_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        """Follow, follow another leader, or stop following: for each log by itself."""
        for log in leadership.logs:
            self._take_role(leadership, log, before)

    def _take_role(
        self, leadership: Leadership, partition: ReplicatedLog, before: PartitionRow | None
    ) -> None:
        followed = self.followed.get(partition)
        is_here = self.terms.broker_id in leadership.replicas and not partition.is_closed
        if leadership.is_leader or not is_here:
            if followed is not None:
                self._drop(followed, must_finish=is_here)
            return
        if followed is None:
            followed = self.followed[partition] = Followed(
                partition, Task(partial(self._begin_again, partition))
            )
        elif _is_same_leader(before, leadership.row) and followed.state != IDLE:
            # Only the isr has changed, and with it perhaps the lane.
            if followed.state == FETCHING:
                self.place(followed)
            return
        followed.failures = 0
        # Earlier refusals of the disk concern records that are not written any more.
        self._flushes.refused.pop(partition, None)
        self.begin(followed)

    def _begin_again(self, partition: ReplicatedLog, now_ms: int) -> None:
        self.begin(self.followed[partition])

    def forget(self, partition: ReplicatedLog) -> None:
        """Stop following a partition, because its log is closed."""
        followed = self.followed.get(partition)
        if followed is not None:
            self._drop(followed, must_finish=False)

    def react(self, record: MetadataRecord) -> None:
        """Choose the addresses again after a broker's life or address has changed."""
        if not isinstance(record, LifeChanged | LifeEnded | BrokerDescribed):
            return
        broker_id = record.broker_id
        if broker_id == self.terms.broker_id:
            own = self._state.brokers.get(broker_id)
            epoch = -1 if own is None else own.broker_epoch
            directory_id = _directory_id_of("" if own is None else own.directory_id)
            if (epoch, directory_id) == (self.terms.broker_epoch, self.terms.directory_id):
                return
            self.terms.directory_id = directory_id
            self.terms.broker_epoch = epoch
            self.terms.cluster_id = self._state.cluster_id
            for lane in self.lanes.values():
                lane.reset_session()
            for followed in list(self.followed.values()):
                self.begin(followed)
            return
        if isinstance(record, LifeEnded):
            self._calendars.forget(broker_id)
        for is_catching_up in (False, True):
            to_leader = self.lanes.get(LaneKey(broker_id, is_catching_up))
            if to_leader is not None and to_leader.life != self._life_of(broker_id):
                # The connection may never be reported as closed: its machine may have lost power.
                self._close_lane(to_leader, "its life is over")
        for followed in list(self._by_leader.get(broker_id, ())):
            if not self._is_in_place(followed):
                self.begin(followed)

    def _life_of(self, broker_id: int) -> int:
        broker = self._state.brokers.get(broker_id)
        return -1 if broker is None else broker.broker_epoch

    def _is_in_place(self, followed: Followed) -> bool:
        """Return whether a partition is still fetched from the right address, or rightly waits."""
        lane = self.lane_of(followed)
        if lane is None:
            return followed.state in (PAUSED, CUTTING, STANDING)
        return self._address_of(followed) == lane.address

    def _address_of(self, followed: Followed) -> Address | None:
        """Return the leader's address; None while the leader or this broker has no life."""
        leadership = followed.partition.leadership
        leader = self._state.brokers.get(leadership.leader_id)
        if leader is None or self.terms.broker_epoch < 0 or self._is_stopped:
            return None
        if leadership.leader_id == self.terms.broker_id:
            return None
        if leader.broker_epoch < 0 or leader.broker_epoch != leadership.leader_broker_epoch:
            return None
        found = leader.endpoints.get(self._settings.inter_broker_listener)
        return None if found is None else Address(*found)

    def _tell_no_listener(self, leader_id: int) -> None:
        """Write it into the log if a living leader has no listener for other brokers."""
        leader = self._state.brokers.get(leader_id)
        name = self._settings.inter_broker_listener
        if leader is None or leader.broker_epoch < 0 or name in leader.endpoints:
            return
        has = ", ".join(leader.endpoints) or "none"
        self._faults.report(
            f"broker {leader_id}",
            f"what it leads is not replicated here: it has no listener {name}, its listeners are "
            f"{has}; let inter.broker.listener.name be the same at all brokers",
            self._turn.now_ms,
        )

    # -- from row to lane

    def begin(self, followed: Followed) -> None:
        """Follow a partition from the end of its log, or find out what it has to wait for first."""
        self.leave(followed)
        leader_id = followed.partition.leadership.leader_id
        if followed.leader_id != leader_id:
            self._unlist(followed)
            followed.leader_id = leader_id
            self._by_leader.setdefault(leader_id, {})[followed] = None
        followed.leader_high_watermark = -1
        followed.leader_log_start = -1
        followed.kept = None
        if followed.partition.log.cut.must_end:
            self._begin_cut(followed)
        elif self._address_of(followed) is None:
            followed.state = IDLE
            self._tell_no_listener(leader_id)
        else:
            self.place(followed)

    def place(self, followed: Followed) -> None:
        """Put a partition into the lane to which it belongs, and let it be fetched."""
        address = self._address_of(followed)
        if address is None:
            self.leave(followed)
            followed.state = IDLE
            return
        partition = followed.partition
        leadership = partition.leadership
        is_in_sync = self.terms.broker_id in leadership.isr
        key = LaneKey(leadership.leader_id, followed.is_far_behind or not is_in_sync)
        lane = self._put(followed, key, address)
        if partition.log.flaw_offset >= 0:
            self._replace_damaged(lane, followed, is_in_sync=is_in_sync)
        elif followed.is_settled and followed.kept is None:
            self.unsettled.pop(followed, None)
            lane.want(followed)
        else:
            followed.state = SETTLING
            followed.appended_end = partition.log.log_end_offset
            self.unsettled[followed] = None
            self._flushes.dirty[partition] = None

    def _put(self, followed: Followed, key: LaneKey, address: Address) -> Lane:
        """Put a partition into its lane, or note that it moves there; return the lane that fetches
        it.

        A partition that has caught up stays in its lane until the lane of replicas in sync is free:
        that lane's request may wait at the leader, and each write would wait for this replica
        meanwhile.
        """
        lane = self.lane_of(followed)
        self._withdraw(followed)
        if lane is not None and lane.key == key and lane.address == address:
            return lane
        is_catching_up = lane is not None and lane.key == LaneKey(key.leader_id, True)
        if lane is None or not is_catching_up or lane.address != address:
            self.leave(followed)
            lane = None
        new = self._open_lane(key, address)
        if lane is not None and not new.is_free:
            new.join(followed)
            return lane
        self.leave(followed)
        new.add(followed)
        return new

    def _withdraw(self, followed: Followed) -> None:
        if followed.is_joining:
            for lane in self.lanes.values():
                lane.withdraw(followed)

    def _take_joining(self, lane: Lane) -> None:
        """Move the partitions to a lane that wait for it, because it is free now.

        A partition whose part of an answer is not taken yet waits until it is.
        """
        other = self.lanes.get(LaneKey(lane.key.leader_id, not lane.key.is_catching_up))
        brought = {part.followed for part in other.parts} if other is not None else set()
        for followed in list(lane.joining.values()):
            if followed.state == FETCHING and followed not in brought:
                self.place(followed)

    def _replace_damaged(self, lane: Lane, followed: Followed, *, is_in_sync: bool) -> None:
        """Have a damaged log copied anew; its leader has all records that count.

        The log's end is not reported, since records before it are missing.  While this broker is in
        sync, the readable part of the log is kept, as it may be needed.
        """
        log = followed.partition.log
        if is_in_sync:
            reason = f"it is damaged at offset {log.flaw_offset} and counts as in sync"
            self.pause(followed, reason, is_expected=True)
        else:
            lane.ask_start(followed)

    def lane_of(self, followed: Followed) -> Lane | None:
        key = followed.lane_key
        return None if key is None else self.lanes.get(LaneKey(*key))

    def _open_lane(self, key: LaneKey, address: Address) -> Lane:
        lane = self.lanes.get(key)
        if lane is not None and lane.address == address:
            return lane
        if lane is not None:
            self._close_lane(lane, "the broker has moved")
            # Members of the closed lane may have opened the new one already.
            lane = self.lanes.get(key)
            if lane is not None:
                return lane
        lane = Lane(
            key,
            address,
            self._life_of(key.leader_id),
            self._peers.tasks,
            self._askers[key.is_catching_up],
            self.terms,
            stirred=self.stirred,
            calendars=self._calendars,
        )
        self.lanes[key] = lane
        return lane

    def _close_lane(self, lane: Lane, reason: str) -> None:
        """Close a lane; members that are still in it are placed again."""
        if self.lanes.get(lane.key) is lane:
            del self.lanes[lane.key]
        left = list(lane.members.values())
        for followed in left:
            self.unsettled.pop(followed, None)
            lane.remove(followed)
        for followed in list(lane.joining.values()):
            lane.withdraw(followed)
        self.stirred.pop(lane, None)
        lane.close(reason)
        for followed in left:
            self.begin(followed)

    def leave(self, followed: Followed) -> None:
        """Take a partition out of its lane, its pause or its cut."""
        self._peers.tasks.cancel(followed.retry)
        self.unsettled.pop(followed, None)
        self.cuts.leave(followed)
        self._withdraw(followed)
        lane = self.lane_of(followed)
        if lane is not None:
            lane.remove(followed)
            lane.stir()

    def _unlist(self, followed: Followed) -> None:
        others = self._by_leader.get(followed.leader_id)
        if others is not None:
            others.pop(followed, None)
            if not others:
                del self._by_leader[followed.leader_id]
                for lane in self.lanes.values():
                    if lane.key.leader_id == followed.leader_id:
                        lane.stir()

    def _drop(self, followed: Followed, *, must_finish: bool) -> None:
        self.leave(followed)
        self._unlist(followed)
        del self.followed[followed.partition]
        if must_finish:
            followed.partition.place_high_watermark()
            self.cuts.finish(followed)

    def pause(self, followed: Followed, reason: str, *, is_expected: bool = False) -> None:
        """Try again after a pause, which is short at first if a row or the leader is only late."""
        self.leave(followed)
        followed.state = PAUSED
        followed.failures += 1
        now_ms = self._turn.now_ms
        first_ms = last_ms = self.terms.backoff_ms
        if is_expected:
            first_ms = -(-first_ms // _EXPECTED_PART)
            logger.debug("%s is not fetched for now: %s", followed.partition.name, reason)
        else:
            last_ms *= _PAUSES_MAX
            self._faults.report(followed.partition.name, f"not fetched for now: {reason}", now_ms)
        pause_ms = backoff_ms(first_ms, last_ms, followed.failures, self._peers.random)
        self._peers.schedule(followed.retry, now_ms + pause_ms)

    def stand_still(self, followed: Followed, reason: str) -> None:
        self.leave(followed)
        followed.state = STANDING
        logger.error("%s is not replicated any more: %s", followed.partition.name, reason)

    def cut(self, followed: Followed, offset: int) -> None:
        """Cut the log to `offset`, in as many steps as it takes; then it is fetched again."""
        self._leave_for_cut(followed, offset)
        followed.cut_offset = offset
        self._begin_cut(followed)

    def restart(self, followed: Followed, offset: int, leader_epoch: int) -> None:
        """Give the log up for an empty one at `offset`, which lies in `leader_epoch` (-1: not
        known); then it is fetched again.
        """
        self._leave_for_cut(followed, offset)
        followed.restart_offset, followed.restart_epoch = offset, leader_epoch
        self._begin_cut(followed)

    def _leave_for_cut(self, followed: Followed, offset: int) -> None:
        partition = followed.partition
        partition.follow_high_watermark(min(partition.high_watermark, offset))
        self.leave(followed)

    def _begin_cut(self, followed: Followed) -> None:
        followed.state = CUTTING
        self.cuts.begin(followed)

    # -- the turn

    def send(self) -> None:
        """Send the requests that may leave."""
        stirred = list(self.stirred)
        self.stirred.clear()
        rate = self._settings.follower_replication_throttled_rate
        for lane in stirred:
            if lane.key.leader_id not in self._by_leader:
                self._close_lane(lane, "nothing is left to fetch")
            else:
                is_limited = lane.key.is_catching_up and rate < _RATE_UNLIMITED
                lane.rate = max(rate, 1) if is_limited else 0
                if lane.joining and lane.is_free:
                    self._take_joining(lane)
                lane.maybe_send()

    def stop(self) -> None:
        """Stop fetching."""
        self._is_stopped = True
        for followed in list(self.followed.values()):
            self.leave(followed)
            followed.state = IDLE
        for lane in list(self.lanes.values()):
            self._close_lane(lane, "this broker stops")
        self.stirred.clear()


def _is_same_leader(before: PartitionRow | None, after: PartitionRow) -> bool:
    """Return whether the same leader leads in the same life and epoch."""
    return before is not None and (
        before.leader_id == after.leader_id
        and before.leader_epoch == after.leader_epoch
        and before.broker_epoch == after.broker_epoch
    )
