"""The group coordinator of this broker: which shard a group is in, and who waits for its answer.

A request that a group answers later has a ticket; whatever comes of it, the ticket is answered
once.  Everything that waits here is a delayed operation over the broker's wheel.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from tarry.base import errors
from tarry.broker.coordinator.chores import Chore, ExpireOffsets, ForgetTopics
from tarry.broker.coordinator.history import History
from tarry.broker.coordinator.loader import Loader
from tarry.broker.coordinator.shard import Shard
from tarry.broker.part import Part
from tarry.cluster.topic_names import OFFSETS_TOPIC
from tarry.group.decision import Answer, GroupSettings, JoinAnswer, SyncAnswer
from tarry.group.placement import partition_of_group
from tarry.group.transitions import Moment
from tarry.purgatory.purgatory import Purgatory

if TYPE_CHECKING:
    from tarry.broker.broker import Broker
    from tarry.broker.request import RequestContext
    from tarry.partition.state import Partition
    from tarry.partition.topic import HostedTopic

logger = logging.getLogger("tarry.group")

MINUTE_MS: Final = 60_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Asked:
    """A request whose answer comes from a group.  A subclass knows the message."""

    def __init__(self, context: RequestContext) -> None:
        self.context = context

    def answer(self, answer: Answer) -> None:
        """Give the one answer."""
        raise NotImplementedError

    def time_out(self) -> None:
        """The records did not become durable in time; only what is written can time out."""
        raise NotImplementedError


class Coordinator(Part):
    """See the module's text."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.join_purgatory = Purgatory(broker.timer, "Join")
        self.sync_purgatory = Purgatory(broker.timer, "Sync")
        self.heartbeat_purgatory = Purgatory(broker.timer, "Heartbeat")
        self.commit_purgatory = Purgatory(broker.timer, "Commit")
        self.history = History(self)
        self.shards: list[Shard] = []
        self._hosted: HostedTopic | None = None
        # None of them changes while the broker runs.
        self._settings = group_settings(broker)
        self._tickets = 0
        self._asked: dict[int, Asked] = {}
        self._unsettled: dict[Shard, None] = {}
        self._advanced: dict[Shard, None] = {}
        self._chores: deque[Chore] = deque()

    def moment(self) -> Moment:
        """Now, with the settings of now."""
        broker = self.broker
        return Moment(broker.now_ms, broker.now_wall_ms, self._settings)

    # -- which shard

    def shard_of(self, group_id: str) -> Shard | None:
        """The shard that holds this group, loaded or not; None while there is none."""
        hosted = self._hosted
        if hosted is None:
            return None
        topic = self.broker.cluster.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return None
        index = partition_of_group(group_id, len(topic.partitions))
        return self.shards[index] if index < len(self.shards) else None

    def find(self, group_id: str) -> tuple[Shard | None, int]:
        """The shard that can decide about this group, or None with the error to answer."""
        shard = self.shard_of(group_id)
        if shard is None:
            return None, errors.NOT_COORDINATOR
        if shard.error_code != errors.NONE:
            return None, shard.error_code
        return shard, errors.NONE

    def find_named(self, group_id: str) -> tuple[Shard | None, int]:
        """The same for what only a group with a name can be asked."""
        if not group_id:
            return None, errors.INVALID_GROUP_ID
        return self.find(group_id)

    def is_loading(self) -> bool:
        """Whether some groups are not known yet."""
        return any(shard.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS for shard in self.shards)

    def is_loading_partition(self, partition: Partition) -> bool:
        """Whether its groups are being loaded: nothing of it may be cleaned away meanwhile."""
        return any(
            shard.partition is partition and shard.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
            for shard in self.shards
        )

    # -- partitions come and go

    def on_hosted(self, hosted: HostedTopic) -> None:
        """Partitions of `__consumer_offsets` are open: their groups are loaded."""
        if hosted.name != OFFSETS_TOPIC:
            return
        self._hosted = hosted
        for partition in list(hosted.partitions.values())[len(self.shards) :]:
            shard = Shard(self, partition)
            self.shards.append(shard)
            log = partition.log
            if log.flaw_offset < 0 and log.log_start_offset >= partition.high_watermark:
                shard.error_code = errors.NONE
            else:
                self._chores.append(Loader(shard))

    def on_loaded(self, began_ms: int) -> None:
        """A shard knows its groups; with the last of them one line says so."""
        if not self.is_loading():
            logger.info(
                "groups loaded: %d in %d ms",
                sum(len(shard.groups.by_id) for shard in self.shards),
                self.broker.now_ms - began_ms,
            )

    def on_given_up(self, hosted: HostedTopic) -> None:
        """A topic was deleted: its offsets go, or all groups if it was the one that keeps them."""
        if hosted is self._hosted:
            self._hosted = None
            shards = self.shards
            self.shards = []
            for shard in shards:
                shard.unload()
            return
        if self.shards and not any(
            isinstance(chore, ForgetTopics) and not chore.has_begun for chore in self._chores
        ):
            self._chores.append(ForgetTopics(self))

    def on_moved(self, partition: Partition) -> None:
        if partition.topic == OFFSETS_TOPIC and partition.index < len(self.shards):
            self._advanced[self.shards[partition.index]] = None

    # -- the turn

    def settle_after_write(self, shard: Shard) -> None:
        """Something was appended to the shard's tail."""
        self._unsettled[shard] = None

    def settle(self) -> None:
        if not self._unsettled:
            return
        unsettled = self._unsettled
        self._unsettled = {}
        for shard in unsettled:
            shard.settle()

    def complete(self, budget: int) -> int:
        if self._advanced:
            advanced = self._advanced
            self._advanced = {}
            for shard in advanced:
                shard.advance()
        if self._chores:
            chore = self._chores.popleft()
            if not chore.step():
                self._chores.append(chore)
        return budget

    def has_work_left(self) -> bool:
        return bool(self._chores) or bool(self._unsettled) or bool(self._advanced)

    def purgatories(self) -> list[Purgatory]:
        return [
            self.join_purgatory,
            self.sync_purgatory,
            self.heartbeat_purgatory,
            self.commit_purgatory,
        ]

    def on_stall(self) -> None:
        # Nobody could be heard: every member has a fresh session.
        for shard in self.shards:
            shard.begin_fresh_sessions()

    def expire_offsets(self) -> None:
        """Begin to look for offsets and groups whose time is over."""
        if not any(isinstance(chore, ExpireOffsets) for chore in self._chores):
            self._chores.append(ExpireOffsets(self))

    def stop(self) -> None:
        # Who waits for other members looks for another coordinator.
        self._chores.clear()
        code = errors.NOT_COORDINATOR
        for shard in self.shards:
            for group in shard.groups.by_id.values():
                for member_id, ticket in group.round.joins.items():
                    self.answer(JoinAnswer(ticket, code, member_id=member_id))
                for ticket in group.round.syncs.values():
                    self.answer(SyncAnswer(ticket, code))

    # -- answers

    def ticket(self, asked: Asked) -> int:
        """A number for a request that a group is going to answer."""
        self._tickets += 1
        self._asked[self._tickets] = asked
        return self._tickets

    def answer(self, answer: Answer) -> None:
        """Hand an answer to who asked; one that was answered already hears nothing."""
        asked = self._asked.pop(answer.ticket, None)
        if asked is not None:
            asked.answer(answer)

    def time_out(self, ticket: int) -> None:
        """The records behind this ticket did not become durable in time."""
        asked = self._asked.pop(ticket, None)
        if asked is not None:
            asked.time_out()

    @property
    def waiting(self) -> int:
        """How many requests wait for an answer."""
        return len(self._asked)


def group_settings(broker: Broker) -> GroupSettings:
    """The settings that groups depend on."""
    settings = broker.settings
    return GroupSettings(
        group_min_session_timeout_ms=settings.group_min_session_timeout_ms,
        group_max_session_timeout_ms=settings.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        group_max_size=settings.group_max_size,
        offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * MINUTE_MS,
    )
