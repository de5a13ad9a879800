"""World of a real broker core and real client cores in simulated time, without sockets or threads.

An hour passes in about a second, and a seed gives the same run every time.  The network delays and
cuts what it carries; the broker's disk forgets what was not flushed when power is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Unpack

from tarry.base.ids import TopicPartition
from tarry.client.core.admin.calls import NewTopic
from tarry.client.core.consumer.record_group import ConsumerRecord
from tarry.client.setting_arguments import ConsumerArguments, ProducerArguments
from tarry.client.settings import ClientSettings, ConsumerSettings, ProducerSettings
from tarry.client.sync.listener import Listener
from tarry.simulation import faults
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.faults import FaultPlan
from tarry.simulation.world import World
from tarry.testing.controls import FaultControls, Result
from tarry.testing.faults import Faults
from tarry.testing.settings import HELPER_ID, TEST_SETTINGS, duration_ms, texts_of
from tarry.testing.world_clients import WorldAdmin, WorldClient, WorldConsumer, WorldProducer

# Settings of tests that a simulated broker does not use: it has no sockets, and its disk flushes.
NOT_SIMULATED: Final = ("listeners", "flush.policy")

# Time within which a killed broker is started again.
START_MS_MAX: Final = 60_000


class TarryWorld(FaultControls, NodeObserver):
    """World of one broker and as many clients as a test makes; `bootstrap` is an address in it.

    Time passes in `run` and while a client waits, and at no other time.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, seed: int = 1) -> None:
        self.world = World(seed)
        self.node = BrokerNode(self.world, FaultPlan(), self)
        defaults = {key: TEST_SETTINGS[key] for key in TEST_SETTINGS if key not in NOT_SIMULATED}
        self.node.settings = {**defaults, **texts_of(settings or {})}
        self._faults: Faults | None = None
        self._clients: list[WorldClient] = []
        self._admin: WorldAdmin | None = None
        self._asker: WorldAdmin | None = None
        self.node.start()

    @property
    def bootstrap(self) -> str:
        """Address of the broker in its world."""
        host, port = self.node.address
        return f"{host}:{port}"

    @property
    def now_ms(self) -> int:
        """Monotonic time of the world, in ms."""
        return self.world.agenda.now_ms

    # --- Time

    def run(self, duration: str | float) -> None:
        """Let time pass: `duration` is `"45s"`, `"1h"`, or a number of seconds."""
        self.world.run_for(duration_ms(duration))

    def run_until(self, is_done: Callable[[], bool], timeout: str | float = "1h") -> None:
        """Let time pass until `is_done` returns true; AssertionError if it does not in time."""
        self.world.run_until(self.now_ms + duration_ms(timeout), is_done)
        assert is_done(), f"it did not happen within {timeout}"

    # --- Clients

    def topic(self, name: str, partitions: int = 1, **configs: object) -> str:
        """Create a topic and return its name."""
        admin = self._helper
        topic = NewTopic(name, partitions, configs=texts_of(configs))
        admin.ask(admin.requests.create_topics([topic]))
        return name

    def producer(self, **arguments: Unpack[ProducerArguments]) -> WorldProducer:
        """Make a producer in a process of its own."""
        arguments.setdefault("bootstrap_servers", self.bootstrap)
        producer = WorldProducer(self.world, self._name("producer"), ProducerSettings(**arguments))
        self._clients.append(producer)
        return producer

    def consumer(
        self,
        *topics: str,
        listener: Listener | None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> WorldConsumer:
        """Make a consumer in a process of its own, which reads from the first record unless
        `auto_offset_reset` says otherwise."""
        arguments.setdefault("bootstrap_servers", self.bootstrap)
        arguments.setdefault("auto_offset_reset", "earliest")
        settings = ConsumerSettings(**arguments)
        consumer = WorldConsumer(self.world, self._name("consumer"), settings, listener)
        self._clients.append(consumer)
        if topics:
            consumer.subscribe(topics)
        return consumer

    @property
    def admin(self) -> WorldAdmin:
        """Administrator."""
        if self._admin is None:
            self._admin = self._make_admin("admin")
        return self._admin

    @property
    def _helper(self) -> WorldAdmin:
        """Administrator that faults do not affect."""
        if self._asker is None:
            self._asker = self._make_admin(HELPER_ID)
        return self._asker

    def _make_admin(self, client_id: str) -> WorldAdmin:
        settings = ClientSettings(bootstrap_servers=self.bootstrap, client_id=client_id)
        admin = WorldAdmin(self.world, client_id, settings)
        self._clients.append(admin)
        return admin

    def _name(self, kind: str) -> str:
        return f"{kind}{len(self._clients) + 1}"

    def send(self, topic: str, *values: bytes, key: bytes | None = None) -> None:
        """Send one record for each value; return when all are in the log."""
        producer = self.producer(client_id=HELPER_ID)
        for value in values:
            producer.send(topic, value, key=key)
        producer.flush()
        producer.kill()

    def records(self, topic: str) -> list[ConsumerRecord]:
        """Return all records of a topic that are there now, by partition and offset."""
        admin = self._helper
        (described,) = admin.ask(admin.requests.describe_topics([topic]))
        places: list[TopicPartition] = [(topic, index) for index in sorted(described.partitions)]
        consumer = self.consumer(client_id=HELPER_ID)
        consumer.assign(places)
        read: list[ConsumerRecord] = []
        while not all(consumer.is_at_end(place) for place in places):
            for group in consumer.poll(1.0):
                read += group
        consumer.kill()
        return sorted(read, key=lambda record: (record.partition, record.offset))

    # --- The broker's lives

    def kill_broker(self) -> None:
        """Kill the broker's process; it is started again on the same data."""
        self._end_life(faults.KILL)

    def lose_power(self) -> None:
        """Turn the broker's machine off and on: what was not flushed is gone."""
        self._end_life(faults.POWER)

    def pause_broker(self, duration: str | float) -> None:
        """Pause the broker's process for `duration`, while time goes on for the clients."""
        self.node.busy_until_ms = self.node.clock.now_ms + duration_ms(duration)

    def _end_life(self, kind: str) -> None:
        self.node.lose(kind)
        self.world.run_until(self.now_ms + START_MS_MAX, lambda: self.node.broker is not None)

    # --- The network

    def set_delay(self, duration: str | float) -> None:
        """Set the longest time that a message takes from now on; it is 2 ms at the beginning."""
        self.node.network.conditions.delay_ms_max = duration_ms(duration)

    # --- Faults of the broker's life

    def on_faults(self, do: Callable[[Faults], Result]) -> Result:
        if self._faults is None:
            raise RuntimeError("the broker does not run")
        return do(self._faults)

    def on_life_begins(self, node: BrokerNode) -> None:
        assert node.broker is not None
        self._faults = Faults(node.broker)

    def on_life_ends(self, node: BrokerNode) -> None:
        self._faults = None

    def close(self) -> None:
        """End every client; AssertionError if the broker broke one of its own rules."""
        for client in self._clients:
            client.kill()
        assert not self.node.violations, self.node.violations
