"""Companion logs: of each partition whose records may wait, a second log under its leadership.

It has no row in the metadata.  What is said of the partition holds for both logs; a topic's
settings say that its partitions have companions, and a directory on the disk says that one had.
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
        """Return what the topic's settings say about its companion logs."""
        return companion_config(topic.configs, self._settings)

    def describe(self, configs: Mapping[str, str], hosted: HostedTopic) -> None:
        """Note whether these settings of a topic give its partitions companion logs."""
        hosted.has_companions = may_delay(configs)

    def open(
        self, topic: TopicState, hosted: HostedTopic, index: int, found: set[str]
    ) -> ReplicatedLog | None:
        """Open the companion log of a partition that is here without it.

        It is to have one, or has had one in an earlier life: `found` are the directories that a
        start has found.
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
