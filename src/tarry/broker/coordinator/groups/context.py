"""Surroundings that the shards of the group coordinator share."""

from __future__ import annotations

import logging
from typing import Final

from tarry.base.probe import Probe
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.coordinator.groups.history import History
from tarry.broker.coordinator.runtime import ShardContext
from tarry.broker.flushes import Flushes
from tarry.cluster.state.scheduled_topics import scheduled_topic
from tarry.cluster.state.state import ClusterState
from tarry.group.decision import Moment
from tarry.group.requests import GroupSettings
from tarry.group.state import Kinds
from tarry.purgatory.purgatory import Purgatory
from tarry.timer.wheel import TimingWheel

MINUTE_MS: Final = 60_000


class GroupContext(ShardContext):
    """Purgatories, history and settings that all groups share."""

    def __init__(
        self,
        turn: Turn,
        timer: TimingWheel,
        flushes: Flushes,
        settings: Settings,
        probe: Probe,
        cluster: ClusterState,
        *,
        kinds: Kinds,
    ) -> None:
        super().__init__(
            "groups",
            turn,
            flushes,
            Purgatory(timer, "Commit"),
            settings.offsets_commit_timeout_ms,
            logging.getLogger("tarry.group"),
        )
        self.cluster = cluster
        self.timer = timer
        self.kinds = kinds
        self.phases = {
            name: Purgatory(timer, name) for kind in kinds.by_name.values() for name in kind.phases
        }
        self.heartbeats = Purgatory(timer, "Heartbeat")
        self.history = History(turn, probe)
        # These settings do not change while the broker runs.
        self._settings = group_settings(settings)
        self._moment = Moment(turn.now_ms, turn.now_wall_ms, self._settings)

    def moment(self) -> Moment:
        """Return the turn's time with the settings; one object serves the whole turn."""
        moment = self._moment
        turn = self.turn
        if moment.now_ms != turn.now_ms or moment.now_wall_ms != turn.now_wall_ms:
            moment = self._moment = Moment(turn.now_ms, turn.now_wall_ms, self._settings)
        return moment

    def topic_ids(self) -> dict[str, bytes]:
        """Return the ids of all topics by name, with the virtual ones."""
        topics = self.cluster.topics
        topic_ids = {name: topic.topic_id for name, topic in topics.items()}
        for topic in topics.values():
            virtual = scheduled_topic(topic)
            if virtual is not None:
                # A topic of an earlier release may have this name; its id counts.
                topic_ids.setdefault(virtual.name, virtual.topic_id)
        return topic_ids


def group_settings(settings: Settings) -> GroupSettings:
    """Return the settings that groups depend on."""
    return GroupSettings(
        group_min_session_timeout_ms=settings.group_min_session_timeout_ms,
        group_max_session_timeout_ms=settings.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        group_max_size=settings.group_max_size,
        offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * MINUTE_MS,
    )
