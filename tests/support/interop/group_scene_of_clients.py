"""A topic that is written while its readers come and go."""

from __future__ import annotations

import time
from typing import Final

from tests.support.interop.confluent_face import PRODUCER_SETTINGS, confluent_admin, confluent_kafka
from tests.support.interop.group_laws import History, value_of
from tests.support.interop.group_members import Event, Member, Watch, owned
from tests.support.patience import PATIENCE_S

STEP_SECONDS_MAX: Final = PATIENCE_S


class Scene(History):
    """One group over one topic: writes records and waits for the members."""

    def __init__(self, address: str, topic: str, group: str, partitions: int) -> None:
        super().__init__(partitions)
        self.topic = topic
        self.group = group
        self.watch = Watch()
        settings = {"bootstrap.servers": address, "log_level": 0}
        self.admin = confluent_admin.AdminClient(settings)
        wanted = confluent_admin.NewTopic(topic, partitions)
        self.admin.create_topics([wanted])[topic].result(STEP_SECONDS_MAX)
        self.producer = confluent_kafka.Producer({**settings, **PRODUCER_SETTINGS})
        # It asks for the group's commits and never joins.
        self.asker = confluent_kafka.Consumer(
            {**settings, "group.id": group, "reconnect.backoff.max.ms": 200}
        )

    def write(self, count: int) -> None:
        """`count` more records in every partition."""
        for number in range(self.written, self.written + count):
            for partition in range(self.partitions):
                self.producer.produce(self.topic, value_of(partition, number), partition=partition)
        self.written += count
        assert self.producer.flush(STEP_SECONDS_MAX) == 0

    def wait_until_shared_by(self, *members: Member) -> None:
        """Each of these has as many partitions as the others, and together they have all."""
        share = self.partitions // len(members)

        def is_so() -> bool:
            shares = [owned(member) for member in members]
            return [len(each) for each in shares] == [share] * len(members) and len(
                frozenset().union(*shares)
            ) == self.partitions

        self.watch.wait_until(is_so, self.told)

    def wait_until_all_is_committed(self) -> None:
        """The broker has the end of every partition as committed."""

        def is_so() -> bool:
            return self.committed() == [self.written] * self.partitions

        self.watch.wait_until(is_so, lambda: f"committed {self.committed()}; {self.told()}")
        everything = [[partition, self.written] for partition in range(self.partitions)]
        self.seen_commits.append(Event(time.monotonic_ns(), "committed", everything))

    def wait_until_all_is_read(self) -> None:
        expected = self.partitions * self.written
        self.watch.wait_until(lambda: len(self.all_read()) >= expected, self.told)

    def wait_until_gone(self, member: Member) -> None:
        self.watch.wait_until(
            lambda: any(event.what == "left" for event in tuple(member.events)), self.told
        )

    def wait_until_empty(self) -> None:
        """The broker knows that all have left: librdkafka ends without waiting for that."""
        self.watch.wait_until(lambda: self.state() == "EMPTY", self.told)

    def state(self) -> str:
        asked = self.admin.describe_consumer_groups([self.group])[self.group]
        state: str = asked.result(STEP_SECONDS_MAX).state.name
        return state

    def committed(self) -> list[int]:
        asked = [
            confluent_kafka.TopicPartition(self.topic, partition)
            for partition in range(self.partitions)
        ]
        try:
            return [found.offset for found in self.asker.committed(asked, 5)]
        except confluent_kafka.KafkaException:
            # The broker is starting; the next look will tell.
            return []

    def told(self) -> str:
        """What the members said, for the message of a test that fails."""
        lines = []
        for member in self.members:
            events = [each[1:] for each in tuple(member.events) if each.what != "read"]
            lines.append(f"{member.name}: {events[-12:]}")
        missing = self.unread()
        return f"{len(missing)} unread, {missing[:5]}; {'; '.join(lines)}"

    def close(self) -> None:
        for member in self.members:
            member.close()
        self.asker.close()
