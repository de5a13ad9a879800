"""Reconfigurations: logs in use take over changed settings, some logs in each turn.

A topic may have ten thousand logs, and a setting of the broker is the default of every topic.  The
answer to the client that changed a setting does not wait for the last of many logs, just as it does
not wait for other brokers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.doors import Random
from tarry.base.settings import Settings
from tarry.broker.flushes import Flushes
from tarry.broker.metadata.companions import Companions
from tarry.broker.topics import Topics
from tarry.cluster.configs.topic_settings import log_config, log_configs, topic_value
from tarry.cluster.state.state import ClusterState, TopicState
from tarry.log.config import LogConfig
from tarry.partition.replicated_log import COMPANION, ReplicatedLog
from tarry.partition.topic import HostedTopic

# Replicas that take over settings in one turn; a topic without replicas here counts as one.  A
# replica takes 7 µs, or 35 µs if each log draws its own jitter; a topic with its own settings 12
# µs.
RECONFIGURED_PER_TURN: Final = 500


class Reconfigurations:
    """Topics whose logs have not taken over their settings yet, in the order of the requests.

    `on_counted` is called with a log whose high watermark has advanced because of its new settings.
    """

    def __init__(
        self,
        state: ClusterState,
        settings: Settings,
        topics: Topics,
        companions: Companions,
        *,
        flushes: Flushes,
        random: Random,
        on_counted: Callable[[ReplicatedLog], None],
    ) -> None:
        self._state = state
        self._settings = settings
        self._topics = topics
        self._companions = companions
        self._flushes = flushes
        self._random = random
        self._on_counted = on_counted
        # Replicas that still have to take over the settings, by topic.
        self._waiting: dict[HostedTopic, list[ReplicatedLog]] = {}
        # Number of replicas that may still be reconfigured in this turn.
        self._left = RECONFIGURED_PER_TURN

    def begin(self, hosted: HostedTopic) -> None:
        """Let all logs of a topic take over its settings; a small topic is finished in this
        turn.
        """
        # All replicas: those that have been reconfigured already have older settings.
        self._waiting[hosted] = hosted.replicas()
        self._go_on()

    def begin_all(self) -> None:
        """Let the logs of all topics take over the broker's settings."""
        for hosted in self._topics.all():
            self._waiting[hosted] = hosted.replicas()
        self._go_on()

    def has_work_left(self) -> bool:
        return len(self._waiting) > 0

    def step(self) -> None:
        """Continue with the share of this turn that events have left."""
        self._go_on()
        self._left = RECONFIGURED_PER_TURN

    def _go_on(self) -> None:
        made: dict[tuple[tuple[str, str], ...], LogConfig] = {}
        while self._waiting and self._left > 0:
            hosted = next(iter(self._waiting))
            waiting = self._waiting.pop(hosted)
            topic = self._state.topic_by_id(hosted.topic_id)
            if topic is None:
                # The topic was deleted.
                continue
            share, rest = waiting[: self._left], waiting[self._left :]
            self._left -= max(len(share), 1)
            if rest:
                self._waiting[hosted] = rest
            # A replica may have been given up meanwhile.
            here = [each for each in share if hosted.replica(each.leadership.index) is each]
            self._reconfigure(topic, here, made)

    def _reconfigure(
        self,
        topic: TopicState,
        replicas: list[ReplicatedLog],
        made: dict[tuple[tuple[str, str], ...], LogConfig],
    ) -> None:
        """Reconfigure replicas of a topic; `made` caches configurations by the topic's settings,
        for a broker with ten thousand topics.
        """
        settings, configs = self._settings, topic.configs
        has_jitter = topic_value("segment.jitter.ms", configs, settings) != 0
        key = tuple(configs.items())
        config = made.get(key)
        if config is None:
            config = log_config(configs, settings)
            made[key] = config
        # Each log draws its own jitter, so that not all of them roll at once.
        new_config = log_configs(configs, settings, self._random) if has_jitter else None
        waiting: LogConfig | None = None
        for replica in replicas:
            for log in replica.leadership.logs:
                if log.which == COMPANION:
                    waiting = waiting or self._companions.config(topic)
                    log.reconfigure(waiting)
                else:
                    log.reconfigure(config if new_config is None else new_config())
                log.producers.reconfigure(settings.producer_id_expiration_ms)
                self.choose_flush(log)
                if log.leadership.followers is not None and log.maybe_advance_high_watermark():
                    # min.insync.replicas was lowered, or fewer flushes are required before a record
                    # counts.
                    self._on_counted(log)

    def choose_flush(self, log: ReplicatedLog) -> None:
        """Set whether appended records are flushed at once, by the settings of the log."""
        was_flushed_at_once = log.is_flushed_at_once
        log.is_flushed_at_once = (
            self._settings.flush_policy == "commit" or log.config.flush_messages == 1
        )
        if log.is_flushed_at_once and not was_flushed_at_once:
            # From now on requests may wait for the flush of records that are already written.
            self._flushes.dirty[log] = None
