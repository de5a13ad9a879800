"""Run context: time, network, chance and known topics, shared by the clients of one run."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.simulation.clients.history import Place, RunHistory
from tarry.simulation.clock import SimulatedClock
from tarry.simulation.exchange import ObservedExchange
from tarry.simulation.network import SimulatedNetwork
from tarry.simulation.trace import Trace

# A stall of less than a second counts as time in which the process ran.
_EARLY_MS: Final = 1_000


class KnownTopic:
    """Topic whose creation was acknowledged."""

    def __init__(self, name: str, topic_id: bytes, partitions: int, *, is_lasting: bool) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions
        # True if it is never deleted in this run; only then does its name identify it.
        self.is_lasting = is_lasting
        # False once a client has asked for its deletion.
        self.is_alive = True

    def places(self) -> list[Place]:
        return [(self.topic_id, index) for index in range(self.partitions)]


class RunContext:
    """Context of one run, shared by all its clients."""

    def __init__(
        self, clock: SimulatedClock, network: SimulatedNetwork, random: Random, trace: Trace
    ) -> None:
        self.clock = clock
        self.network = network
        self.random = random
        self.trace = trace
        self.history = RunHistory()
        self.topics: list[KnownTopic] = []
        # Codecs that producers choose from; one may stand there several times.
        self.codecs: list[int] = [0]
        # Topics whose records may be parked, with the delay in ms below which they are not; -1 if
        # the timestamp does not say when records are due.
        self.delayed_topics: dict[str, int] = {}
        self.leader_epochs: dict[Place, int] = {}
        # Number of the broker's life.
        self.life = 0
        # True when clients begin no new work, and only finish what is under way.
        self.is_quiet = False
        # True when no client writes any more.
        self.is_still = False
        # Count of record batches that did not match their CRC.
        self.damages_seen = 0

    def alive_topics(self) -> list[KnownTopic]:
        return [topic for topic in self.topics if topic.is_alive]

    def topic_by_id(self, topic_id: bytes) -> KnownTopic | None:
        for topic in self.topics:
            if topic.topic_id == topic_id:
                return topic
        return None

    def topic_by_name(self, name: str) -> KnownTopic | None:
        """Return the newest incarnation of the topic."""
        for topic in reversed(self.topics):
            if topic.name == name:
                return topic
        return None

    def version(self, version_min: int, version_max: int) -> int:
        """Draw a version to speak: the newest in half of the cases, else any."""
        if self.random.randrange(2) == 0:
            return version_max
        return version_min + self.random.randrange(version_max - version_min + 1)

    def check_time_out(self, exchange: ObservedExchange, what: str) -> None:
        """Check that REQUEST_TIMED_OUT comes only after as long a wait as was asked for."""
        waited_ms = self.network.waited_ms(exchange)
        if waited_ms < exchange.wait_ms - _EARLY_MS and not exchange.is_answered_in_stop:
            self.history.violate(
                f"{what} timed out after {waited_ms} ms of the {exchange.wait_ms} ms that it may "
                "wait, not counting the time in which the broker was stopped"
            )

    def take_damage(self, batch: str) -> None:
        """Note a batch that does not match its CRC: a violation unless the network damaged it."""
        self.damages_seen += 1
        if self.damages_seen > self.network.damages:
            self.history.violate(
                f"{batch} does not match its CRC, and it was not damaged on its way"
            )

    def is_chance(self, per_mille: int) -> bool:
        return self.random.randrange(1000) < per_mille
