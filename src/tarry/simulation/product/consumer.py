"""Consumer of the product with a user that reads partitions of its choice, seeks and pauses."""

from __future__ import annotations

from typing import Final

from tarry.base.ids import TopicPartition
from tarry.client.core.consumer.record_group import RecordGroup
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.errors import CorruptRecords
from tarry.client.settings import ConsumerSettings, SettingValue
from tarry.link.errors import ClientError
from tarry.simulation.clients.context import KnownTopic, RunContext
from tarry.simulation.clients.simulated_client import Delay
from tarry.simulation.product.client_node import CANCELLED, ClientNode, GivenUp, User
from tarry.simulation.product.history import HandOut, ProductHistory
from tarry.simulation.world import World

_POLL_MS: Final = 500
_RECORDS_MAX: Final = 50
_QUIET_WORK_MS_MAX: Final = 20
# One of so many polls is cancelled, unless it is done by then: at once, soon, or at any time.
_CANCELS_EVERY: Final = 4
_CANCEL_MS: Final = (1, 10, _POLL_MS)


class ConsumerNode(ClientNode):
    """Client that reads all partitions from their start and at times seeks back, until its end."""

    def __init__(
        self,
        world: World,
        context: RunContext,
        name: str,
        settings: dict[str, SettingValue],
        product_history: ProductHistory,
        work_ms_max: int,
    ) -> None:
        self.context = context
        self.history = product_history
        self._work_ms_max = work_ms_max
        self.is_to_end = False
        self.settings = ConsumerSettings({**settings, "client.id": name})
        self.patience_ms = max(self.patience_ms, 2 * self.settings.poll_interval_ms_max)
        self.consumer_core = GroupConsumerCore(self.settings, world.random, world.agenda.now_ms)
        super().__init__(world, name, self.consumer_core)

    def position(self, place: TopicPartition) -> int:
        """Return the next offset that the user is given; -1 if that is not known."""
        position = self.consumer_core.fetcher.positions.get(place)
        return -1 if position is None else position.position

    @property
    def work_now_ms_max(self) -> int:
        """Return how long the user works on records; not long once the run is quiet."""
        return (
            min(self._work_ms_max, _QUIET_WORK_MS_MAX)
            if self.context.is_quiet
            else self._work_ms_max
        )

    def user(self) -> User:
        context = self.context
        random = context.random
        topics = list(context.topics)
        self.consumer_core.assign(
            [(topic.name, index) for topic in topics for index in range(topic.partitions)]
        )
        for topic in topics:
            for index in range(topic.partitions):
                self._seek(topic, index, 0)
        while not self.is_to_end:
            yield from self.poll()
            yield Delay(random.randrange(self.work_now_ms_max))
            if random.randrange(3) == 0 and not context.is_quiet:
                topic = topics[random.randrange(len(topics))]
                index = random.randrange(topic.partitions)
                position = max(self.position((topic.name, index)), 0)
                self._seek(topic, index, random.randrange(position + 1))

    def poll(self) -> User:
        """Poll once, and note the records; a poll that is cancelled gives none, and loses none."""
        random = self.context.random
        poll = self.consumer_core.begin_poll(_RECORDS_MAX, _POLL_MS, self.clock.now_ms)
        if random.randrange(_CANCELS_EVERY) == 0:
            cancel_ms = _CANCEL_MS[random.randrange(len(_CANCEL_MS))]
            outcome = yield GivenUp(poll, random.randrange(cancel_ms))
        else:
            outcome = yield poll
        if outcome is CANCELLED:
            return
        if isinstance(outcome, ClientError):
            self.take_error(outcome)
            return
        for group in outcome:
            self._take(group)

    def take_error(self, error: ClientError) -> None:
        """Note an error: a violation unless records were damaged on their way."""
        if not isinstance(error, CorruptRecords):
            self.context.history.violate(f"{self.name} got from its poll: {error}")
            return
        for place, position in self.consumer_core.fetcher.positions.items():
            if position.error is not None:
                self.consumer_core.seek(place, position.position)

    def _seek(self, topic: KnownTopic, index: int, offset: int) -> None:
        self.consumer_core.seek((topic.name, index), offset)
        place = (topic.topic_id, index)
        self.context.history.begin_reading(self.name, place, offset)

    def _take(self, group: RecordGroup) -> None:
        records = group.records
        first, last = records[0].offset, records[-1].offset
        self.history.handed_out.append(
            HandOut(
                self.clock.now_ms,
                self.name,
                (group.topic, group.partition),
                first,
                last,
                [record.value or b"" for record in records],
            )
        )
        topic = self.context.topic_by_name(group.topic)
        assert topic is not None
        self.on_handed_out((topic.topic_id, group.partition), first, last + 1)
        if last - first + 1 != len(records):
            self.context.history.violate(f"{self.history.handed_out[-1]}, not all of them")

    def on_handed_out(self, place: tuple[bytes, int], offset: int, end_offset: int) -> None:
        """Note that the user got these records.  Members note it in their own way."""
        self.context.history.hand_out(self.name, place, offset, end_offset)
