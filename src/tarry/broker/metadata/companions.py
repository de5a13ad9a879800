"""Companion logs: a second log under the leadership of each partition whose records may wait.

A companion log has no row in the metadata.  The partition's row holds for both logs.  The topic's
settings say whether its partitions have companions, and a directory shows that one had.
"""

from __future__ import annotations

from collections.abc import Mapping

from tarry.base.settings import Settings
from tarry.broker.metadata.removals import companion_directory
from tarry.cluster.configs.topic_settings import companion_config
from tarry.cluster.state.levels import may_delay
from tarry.cluster.state.state import TopicState
from tarry.log.config import LogConfig
from tarry.log.logs import Logs
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import COMPANION, ProducerListener, ReplicatedLog
from tarry.partition.topic import HostedTopic, has_companion


class Companions:
    """Opener of companion logs."""

    def __init__(self, settings: Settings, logs: Logs) -> None:
        self._settings = settings
        self._logs = logs

    def config(self, topic: TopicState) -> LogConfig:
        """Return the configuration of a topic's companion logs."""
        return companion_config(topic.configs, self._settings)

    def describe(self, configs: Mapping[str, str], hosted: HostedTopic) -> None:
        """Note whether these settings of a topic give its partitions companion logs."""
        hosted.has_companions = may_delay(configs)

    def open(
        self, topic: TopicState, hosted: HostedTopic, index: int, found: set[str]
    ) -> ReplicatedLog | None:
        """Open the companion log of a partition that is hosted here without it; return None if it
        has none.

        A companion log is opened if the topic's settings want one, or if its directory is in
        `found`, the directories that the start has found.
        """
        partition = hosted.replica(index)
        if partition is None or has_companion(partition):
            return None
        directory = companion_directory(topic.name, index, topic.topic_id)
        if not hosted.has_companions and directory not in found:
            return None
        producers = ProducerStates(self._settings.producer_id_expiration_ms)
        listener = ProducerListener(producers)
        log = self._logs.open(directory, topic.topic_id, self.config(topic), listener)
        companion = ReplicatedLog(partition.leadership, log, producers)
        assert companion.which == COMPANION
        return companion
