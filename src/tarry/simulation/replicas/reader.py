"""Reader: a consumer of the product that seeks, cancels polls, and notes what it is handed out."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.settings import ConsumerSettings, SettingValue
from tarry.link.errors import ClientError
from tarry.simulation.clients.simulated_client import Delay
from tarry.simulation.product.client_node import CANCELLED, ClientNode, GivenUp, User
from tarry.simulation.replicas.cluster import TOPIC, PeerCluster
from tarry.simulation.world import World

_POLL_MS: Final = 400
_RECORDS_MAX: Final = 20
_SEEKS_EVERY: Final = 12
# A poll is cancelled at once, soon, at any time, or never.
_CANCEL_MS: Final = (1, 20, _POLL_MS, 0, 0)


class SoughtReading:
    """Records that a reader was handed out since it sought an offset."""

    def __init__(self, reader: str, place: TopicPartition, offset: int) -> None:
        self.reader = reader
        self.place = place
        self.offset = offset
        self.records: list[tuple[int, bytes]] = []


class ReaderNode(ClientNode):
    """Client that reads all partitions until it is told to end."""

    def __init__(
        self, world: World, cluster: PeerCluster, name: str, settings: dict[str, SettingValue]
    ) -> None:
        self.readings: list[SoughtReading] = []
        self.violations: list[str] = []
        self.is_to_end = False
        # True if the reader seeks no other offset any more.
        self.is_quiet = False
        self._leader_epochs: dict[int, int] = {}
        self._cluster = cluster
        self._random: Random = world.random
        self._current: dict[TopicPartition, SoughtReading] = {}
        self.settings = ConsumerSettings({**settings, "client.id": name})
        self.is_committed = self.settings.isolation_level > 0
        self.consumer_core = GroupConsumerCore(self.settings, world.random, world.agenda.now_ms)
        super().__init__(world, name, self.consumer_core)

    def position(self, place: TopicPartition) -> int:
        """Return the next offset that the user is given."""
        return self.consumer_core.fetcher.positions[place].position

    def readable_end(self, place: TopicPartition) -> int:
        """Return the offset up to which this reader may read a log now."""
        log = self._cluster.logs[place[1]]
        return log.stable_end(log.end_offset) if self.is_committed else log.end_offset

    def turn(self) -> None:
        """Turn the client, and check that what it knows of leaders does not go back."""
        super().turn()
        topic = self.consumer_core.metadata.topic(TOPIC)
        for index, known in () if topic is None else topic.partitions.items():
            before = self._leader_epochs.get(index, -1)
            if known.leader_epoch < before:
                self.violations.append(
                    f"{self.name} knew leader epoch {before} of {TOPIC}-{index}, and goes back to "
                    f"{known.leader_epoch}"
                )
            self._leader_epochs[index] = known.leader_epoch

    def user(self) -> User:
        random = self._random
        places = self._cluster.places()
        self.consumer_core.assign(places)
        for place in places:
            self._seek(place, 0)
        while not self.is_to_end:
            yield from self._poll()
            yield Delay(random.randrange(40))
            if not self.is_quiet and random.randrange(_SEEKS_EVERY) == 0:
                place = places[random.randrange(len(places))]
                end = self.readable_end(place)
                self._seek(place, end if random.randrange(2) else random.randrange(end + 1))

    def _seek(self, place: TopicPartition, offset: int) -> None:
        self.world.trace.add(self.clock.now_ms, f"{self.name} seeks {offset} of {place[1]}")
        self.consumer_core.seek(place, offset)
        reading = SoughtReading(self.name, place, offset)
        self._current[place] = reading
        self.readings.append(reading)

    def _poll(self) -> User:
        """Poll once, and note the records; a poll that is cancelled gives none, and loses none."""
        random = self._random
        poll = self.consumer_core.begin_poll(_RECORDS_MAX, _POLL_MS, self.clock.now_ms)
        cancel_ms = _CANCEL_MS[random.randrange(len(_CANCEL_MS))]
        outcome = yield GivenUp(poll, random.randrange(cancel_ms)) if cancel_ms else poll
        if outcome is CANCELLED:
            return
        if isinstance(outcome, ClientError):
            self.violations.append(f"{self.name} got from its poll: {outcome}")
            return
        for group in outcome:
            place = (group.topic, group.partition)
            self._current[place].records += [
                (record.offset, record.value or b"") for record in group.records
            ]
            first, last = group.records[0].offset, group.records[-1].offset
            self.world.trace.add(
                self.clock.now_ms, f"{self.name} gets {first}..{last} of {place[0]}-{place[1]}"
            )
            if last >= self.readable_end(place):
                self.violations.append(
                    f"{self.name} was handed out offset {last} of {place[0]}-{place[1]}, behind a "
                    "transaction that is open"
                )
