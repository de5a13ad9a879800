"""The follower's side of replication: partitions that other brokers lead are fetched from them.

Each partition is in one lane to its leader, or waits for a record, or for the end of a pause: every
way in which it can come to stand still ends in one of these.  What goes wrong with one harms no
other.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.base.repeated import RepeatedFaults
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.part import Part
from tarry.broker.replication import divergence
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
from tarry.broker.replication.lane import AnsweredPart, Lane, LaneKey
from tarry.broker.replication.lane_requests import ReplicaTerms
from tarry.broker.replication.peer_links import PeerLinks
from tarry.broker.replication.taking import begins_before, copy_records
from tarry.cluster.records import BrokerDescribed, LifeChanged, LifeEnded, MetadataRecord
from tarry.cluster.state import ClusterState
from tarry.link.events import Address
from tarry.link.pauses import backoff_ms
from tarry.partition.role import Role
from tarry.partition.state import Partition
from tarry.protocol.messages.fetch import PartitionData
from tarry.wire.reader import Window

logger = logging.getLogger("tarry.replication")

# Who is further behind is in the other lane, so that it holds up nobody.
FAR_BYTES: Final = 1 << 20
# Bytes of answers that one turn takes in; a part of an answer is taken whole.
TAKEN_BYTES_PER_TURN: Final = 1 << 20

_RATE_UNLIMITED: Final = 1 << 62

# Whoever is told so has to wait until the rows are further, here or at the leader.
_EXPECTED_CODES: Final = (
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.FENCED_LEADER_EPOCH,
    errors.UNKNOWN_LEADER_EPOCH,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.OFFSET_NOT_AVAILABLE,
)


def terms_of(settings: Settings) -> ReplicaTerms:
    """Return the terms that the settings of a broker set for it as a follower."""
    return ReplicaTerms(
        settings.node_id,
        timeout_ms=settings.replica_socket_timeout_ms,
        wait_ms_max=settings.replica_fetch_wait_max_ms,
        bytes_min=settings.replica_fetch_min_bytes,
        partition_bytes_max=settings.replica_fetch_max_bytes,
        response_bytes_max=settings.replica_fetch_response_max_bytes,
        backoff_ms=settings.replica_fetch_backoff_ms,
    )


class ReplicaFollower(Part):
    """Part of the turn: what is followed here, and the lanes to its leaders."""

    def __init__(
        self,
        settings: Settings,
        state: ClusterState,
        turn: Turn,
        flushes: Flushes,
        links: PeerLinks,
        cuts: Cuts,
    ) -> None:
        self.links = links
        self.lanes: dict[LaneKey, Lane] = {}
        self.followed: dict[Partition, Followed] = {}
        self._settings = settings
        self._state = state
        self._turn = turn
        self._flushes = flushes
        self._cuts = cuts
        self._terms = terms_of(settings)
        self._by_leader: dict[int, dict[Followed, None]] = {}
        # Partitions whose log ends in something that is not durable yet.
        self._unsettled: dict[Followed, None] = {}
        # Whether one may have become so in this turn; and how many flush rounds were seen.
        self._must_look = False
        self._rounds_seen = -1
        self._stirred: dict[Lane, None] = {}
        self._faults = RepeatedFaults(logger)
        self._is_stopped = False

    # -- roles and lives

    def on_role(self, partition: Partition, before: Role | None, after: Role) -> None:
        """Follow, follow another leader, or follow no more."""
        followed = self.followed.get(partition)
        is_here = self._terms.broker_id in after.replicas and not partition.is_closed
        if after.is_leader or not is_here:
            if followed is not None:
                self._drop(followed, must_finish=is_here)
            return
        if followed is None:
            followed = self.followed[partition] = Followed(partition, self._begin)
        elif before is not None and before[:3] == after[:3] and followed.state != IDLE:
            # Only who is in sync has changed, and with it perhaps the lane.
            if followed.state == FETCHING:
                self._place(followed)
            return
        self._begin(followed)

    def forget(self, partition: Partition) -> None:
        """Follow a partition no more: its log is closed."""
        followed = self.followed.get(partition)
        if followed is not None:
            self._drop(followed, must_finish=False)

    def react(self, record: MetadataRecord) -> None:
        """Look anew at whom to ask, after a broker's life or address has changed."""
        if not isinstance(record, LifeChanged | LifeEnded | BrokerDescribed):
            return
        broker_id = record.broker_id
        if broker_id == self._terms.broker_id:
            own = self._state.brokers.get(broker_id)
            epoch = -1 if own is None else own.broker_epoch
            if epoch == self._terms.broker_epoch:
                return
            self._terms.broker_epoch = epoch
            self._terms.cluster_id = self._state.cluster_id
            for lane in self.lanes.values():
                lane.reset_session()
            for followed in list(self.followed.values()):
                self._begin(followed)
            return
        for followed in list(self._by_leader.get(broker_id, ())):
            if not self._is_in_place(followed):
                self._begin(followed)

    def _is_in_place(self, followed: Followed) -> bool:
        """Return whether nothing has changed for a partition that is being fetched."""
        lane = self._lane_of(followed)
        if lane is None:
            return followed.state in (PAUSED, CUTTING, STANDING)
        return self._address_of(followed) == lane.address

    def _address_of(self, followed: Followed) -> Address | None:
        """Return where the leader is reached, None while it, or this broker, does not live."""
        partition = followed.partition
        leader = self._state.brokers.get(partition.leader_id)
        if leader is None or self._terms.broker_epoch < 0 or self._is_stopped:
            return None
        if partition.leader_id == self._terms.broker_id:
            return None
        if leader.broker_epoch < 0 or leader.broker_epoch != partition.leader_broker_epoch:
            return None
        found = leader.endpoints.get(self._settings.inter_broker_listener)
        return None if found is None else Address(*found)

    # -- from row to lane

    def _begin(self, followed: Followed) -> None:
        """Follow a partition from where its log ends, or find out what that has to wait for."""
        self._leave(followed)
        partition = followed.partition
        if followed.leader_id != partition.leader_id:
            self._unlist(followed)
            followed.leader_id = partition.leader_id
            self._by_leader.setdefault(partition.leader_id, {})[followed] = None
        followed.leader_high_watermark = -1
        followed.leader_log_start = -1
        followed.kept = None
        if self._cuts.must_finish(followed):
            self._cut(followed)
        elif self._address_of(followed) is None:
            followed.state = IDLE
        else:
            self._place(followed)

    def _place(self, followed: Followed) -> None:
        """Put a partition into the lane that it belongs to, and have it fetched."""
        address = self._address_of(followed)
        if address is None:
            self._leave(followed)
            followed.state = IDLE
            return
        partition = followed.partition
        is_in_sync = self._terms.broker_id in partition.isr
        key = LaneKey(partition.leader_id, followed.is_far_behind or not is_in_sync)
        lane = self._lane_of(followed)
        if lane is None or lane.key != key or lane.address != address:
            self._leave(followed)
            lane = self._open_lane(key, address)
            lane.add(followed)
        if followed.is_settled:
            self._unsettled.pop(followed, None)
            lane.want(followed)
        else:
            followed.state = SETTLING
            followed.appended_end = partition.log.log_end_offset
            self._unsettled[followed] = None
            self._flushes.dirty[partition] = None

    def _lane_of(self, followed: Followed) -> Lane | None:
        key = followed.lane_key
        return None if key is None else self.lanes.get(LaneKey(*key))

    def _open_lane(self, key: LaneKey, address: Address) -> Lane:
        lane = self.lanes.get(key)
        if lane is not None and lane.address == address:
            return lane
        if lane is not None:
            self._close_lane(lane, "the broker has moved")
            # Its members may have opened the new one already.
            lane = self.lanes.get(key)
            if lane is not None:
                return lane
        bytes_max = max(
            self._terms.response_bytes_max,
            self._terms.partition_bytes_max,
            self._settings.socket_request_max_bytes,
        )
        lane = Lane(
            key,
            address,
            self.links,
            self._terms,
            answer_bytes_max=bytes_max,
            stir=self._stir,
            on_start=self._on_start_known,
        )
        self.lanes[key] = lane
        return lane

    def _close_lane(self, lane: Lane, reason: str) -> None:
        """Close a lane; members that are still in it go to its successor."""
        if self.lanes.get(lane.key) is lane:
            del self.lanes[lane.key]
        left = list(lane.members.values())
        for followed in left:
            self._unsettled.pop(followed, None)
            lane.remove(followed)
        self._stirred.pop(lane, None)
        lane.close(reason, self._turn.now_ms)
        for followed in left:
            self._begin(followed)

    def _stir(self, lane: Lane) -> None:
        self._stirred[lane] = None

    def _leave(self, followed: Followed) -> None:
        """Take a partition out of wherever it is."""
        self.links.tasks.cancel(followed.retry)
        self._unsettled.pop(followed, None)
        self._cuts.leave(followed)
        lane = self._lane_of(followed)
        if lane is not None:
            lane.remove(followed)
            self._stir(lane)

    def _unlist(self, followed: Followed) -> None:
        others = self._by_leader.get(followed.leader_id)
        if others is not None:
            others.pop(followed, None)
            if not others:
                del self._by_leader[followed.leader_id]
                for lane in self.lanes.values():
                    if lane.key.leader_id == followed.leader_id:
                        self._stir(lane)

    def _drop(self, followed: Followed, *, must_finish: bool) -> None:
        self._leave(followed)
        self._unlist(followed)
        del self.followed[followed.partition]
        if must_finish:
            self._cuts.finish(followed)

    def _pause(self, followed: Followed, reason: str, *, is_expected: bool = False) -> None:
        """Try again in a second or so."""
        self._leave(followed)
        followed.state = PAUSED
        now_ms = self._turn.now_ms
        if is_expected:
            logger.debug("%s is not fetched for now: %s", followed.partition.name, reason)
        else:
            self._faults.report(followed.partition.name, f"not fetched for now: {reason}", now_ms)
        pause_ms = self._terms.backoff_ms
        pause_ms = backoff_ms(pause_ms, pause_ms, 1, self.links.links.random)
        self.links.tasks.schedule(followed.retry, now_ms + pause_ms)
        self.links.carry_out()

    def _stand_still(self, followed: Followed, reason: str) -> None:
        self._leave(followed)
        followed.state = STANDING
        logger.error("%s is not replicated any more: %s", followed.partition.name, reason)

    # -- answers

    def _take(self, lane: Lane, part: AnsweredPart) -> None:
        """Take the part of an answer about one partition."""
        followed, position, data = part
        partition = followed.partition
        if lane.members.get(followed.key) is not followed or followed.state != FETCHING:
            return
        is_epoch = position.leader_epoch == partition.leader_epoch
        if not is_epoch or position.offset != partition.log.log_end_offset:
            lane.want(followed)
        elif data.error_code != errors.NONE:
            self._take_error(lane, followed, data.error_code)
        elif data.diverging_epoch is not None:
            diverging = data.diverging_epoch
            self._diverge(followed, diverging.epoch, diverging.end_offset)
        else:
            followed.leader_high_watermark = data.high_watermark
            followed.leader_log_start = data.log_start_offset
            self._take_records(lane, followed, data)

    def _take_error(self, lane: Lane, followed: Followed, code: int) -> None:
        if code == errors.OFFSET_OUT_OF_RANGE:
            lane.ask_start(followed)
            return
        reason = f"the leader, broker {followed.leader_id}, answers {errors.error_name(code)}"
        self._pause(followed, reason, is_expected=code in _EXPECTED_CODES)

    def _take_records(self, lane: Lane, followed: Followed, data: PartitionData) -> None:
        window = data.records
        # What was read from the wire.
        assert window is None or isinstance(window, Window)
        partition = followed.partition
        before = partition.log.log_end_offset
        try:
            if window is not None and len(window):
                restart_offset = begins_before(followed, window)
                if restart_offset >= 0:
                    followed.restart_offset = restart_offset
                    followed.kept = window
                    self._cut(followed)
                    return
                self._copy(lane, followed, window)
        except (CorruptData, StorageError) as error:
            if partition.log.log_end_offset == before:
                self._pause(followed, str(error))
                return
        if followed.state == FETCHING:
            self._go_on(followed)

    def _copy(self, lane: Lane, followed: Followed, window: Window) -> None:
        """Append records; the lane waits until they are durable."""
        partition = followed.partition
        largest = min(FAR_BYTES, max(self._terms.partition_bytes_max, 1))
        followed.is_far_behind = len(window) >= largest
        try:
            copy_records(followed, window, self._turn)
        finally:
            if partition.log.has_tail:
                lane.rest(followed)
                lane.awaiting[followed] = None
                followed.state = SETTLING
                followed.appended_end = partition.log.log_end_offset
                self._unsettled[followed] = None
                self._must_look = True
                self._flushes.touch(partition)

    def _go_on(self, followed: Followed) -> None:
        """Take over what the leader says of its ends, and ask for more."""
        followed.follow_high_watermark()
        self._cuts.follow_start(followed)
        if followed.partition.log.log_end_offset >= followed.leader_high_watermark >= 0:
            followed.is_far_behind = followed.is_far_behind and followed.state == SETTLING
        self._place(followed)

    def _diverge(self, followed: Followed, epoch: int, leader_end: int) -> None:
        partition = followed.partition
        log = partition.log
        offset = divergence.cut_offset(
            log.leader_epochs, log.log_start_offset, log.log_end_offset, epoch, leader_end
        )
        last_epoch: int = log.leader_epochs.latest_epoch
        if not divergence.may_cut(
            offset, partition.high_watermark, last_epoch, partition.unclean_epoch
        ):
            self._stand_still(
                followed,
                f"its leader, broker {partition.leader_id}, wants it to end at offset {offset}, "
                f"and everything below {partition.high_watermark} was promised: the leader has "
                "lost records; keep this broker's directory, and elect another leader",
            )
            return
        if offset >= log.log_end_offset and last_epoch <= epoch:
            self._pause(followed, f"nothing is to be cut for epoch {epoch}, and yet it diverges")
            return
        partition.high_watermark = min(partition.high_watermark, offset)
        followed.cut_offset = offset
        self._cut(followed)

    def _on_start_known(self, followed: Followed, code: int, start_offset: int) -> None:
        """Begin anew where the leader's log begins, if that is behind the end of the log here."""
        log = followed.partition.log
        if code != errors.NONE:
            reason = f"where its log begins the leader answers with {errors.error_name(code)}"
            self._pause(followed, reason, is_expected=code in _EXPECTED_CODES)
        elif start_offset <= log.log_end_offset:
            self._pause(
                followed,
                f"the leader has no offset {log.log_end_offset}, and its log begins before it",
            )
        else:
            logger.warning(
                "%s ended at offset %d, its leader's log begins at %d: it is begun anew there",
                followed.partition.name,
                log.log_end_offset,
                start_offset,
            )
            followed.restart_offset = start_offset
            self._cut(followed)

    # -- cuts

    def _cut(self, followed: Followed) -> None:
        """Cut the log, or begin it anew, in as many steps as it takes; then it is fetched again."""
        self._leave(followed)
        followed.state = CUTTING
        self._cuts.begin(followed)

    def _on_cut(self, followed: Followed, error: str) -> None:
        if error:
            self._pause(followed, error)
            return
        kept, followed.kept = followed.kept, None
        self._place(followed)
        if kept is None:
            return
        lane = self._lane_of(followed)
        if lane is not None:
            try:
                self._copy(lane, followed, kept)
            except (CorruptData, StorageError) as failure:
                self._pause(followed, str(failure))

    # -- the turn

    def step(self) -> None:
        """Take a share of what has been answered."""
        left = TAKEN_BYTES_PER_TURN
        for lane in list(self.lanes.values()):
            while lane.parts and left > 0:
                part = lane.parts.popleft()
                records = part.data.records
                left -= 0 if records is None else len(records)
                self._take(lane, part)
                if not lane.parts:
                    self._stir(lane)
        for followed, error in self._cuts.step():
            self._on_cut(followed, error)

    def settle(self) -> None:
        """Look at what has become durable, and send what may leave."""
        if self._unsettled and (self._must_look or self._rounds_seen != self._flushes.rounds_total):
            self._must_look = False
            self._rounds_seen = self._flushes.rounds_total
            for followed in list(self._unsettled):
                self._look_at(followed)
        if self._stirred:
            stirred, self._stirred = self._stirred, {}
            rate = self._settings.follower_replication_throttled_rate
            for lane in stirred:
                if lane.key.leader_id not in self._by_leader:
                    self._close_lane(lane, "nothing is left to fetch")
                else:
                    is_limited = lane.key.is_catching_up and rate < _RATE_UNLIMITED
                    lane.rate = max(rate, 1) if is_limited else 0
                    lane.maybe_send(self._turn.now_ms)

    def _look_at(self, followed: Followed) -> None:
        log = followed.partition.log
        if log.log_end_offset < followed.appended_end:
            self._pause(followed, "the disk did not take what was fetched", is_expected=True)
        elif followed.is_settled:
            del self._unsettled[followed]
            self._go_on(followed)

    def on_moved(self, partition: Partition) -> None:
        """Tell the leader where the log begins now."""
        followed = self.followed.get(partition)
        if followed is not None and followed.state == FETCHING:
            self._place(followed)

    def has_work_left(self) -> bool:
        if self._stirred or self._cuts.has_work_left():
            return True
        return any(lane.parts for lane in self.lanes.values())

    def stop(self) -> None:
        """Fetch nothing more: the broker is about to stop."""
        self._is_stopped = True
        for followed in list(self.followed.values()):
            self._leave(followed)
            followed.state = IDLE
        for lane in list(self.lanes.values()):
            self._close_lane(lane, "this broker stops")
        self._stirred.clear()
