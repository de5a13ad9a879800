"""Reader of a cluster: the product's consumer, which may lose records to unclean elections only."""

from __future__ import annotations

from typing import Final

from tarry.client.errors import LogTruncated
from tarry.client.settings import SettingValue
from tarry.link.errors import ClientError
from tarry.simulation.clients.context import RunContext
from tarry.simulation.cluster.replica_checker import ReplicaChecker
from tarry.simulation.product.consumer import ConsumerNode
from tarry.simulation.product.history import ProductHistory
from tarry.simulation.world import World

_WORK_MS_MAX: Final = 50


class ClusterReader(ConsumerNode):
    """Consumer of all partitions from their start."""

    def __init__(
        self,
        world: World,
        context: RunContext,
        settings: dict[str, SettingValue],
        history: ProductHistory,
        checker: ReplicaChecker,
    ) -> None:
        self._checker = checker
        super().__init__(world, context, "consumer", settings, history, _WORK_MS_MAX)

    def take_error(self, error: ClientError) -> None:
        """Read a partition from its start again after an unclean election has cut its log."""
        if not isinstance(error, LogTruncated):
            super().take_error(error)
            return
        for place, position in self.consumer_core.fetcher.positions.items():
            if not isinstance(position.error, LogTruncated):
                continue
            topic = self.context.topic_by_name(place[0])
            assert topic is not None
            if not self._checker.was_unclean((topic.topic_id, place[1])):
                self.context.history.violate(f"{self.name} got from its poll: {error}")
            self.consumer_core.seek(place, 0)
            self.context.history.begin_reading(self.name, (topic.topic_id, place[1]), 0)
