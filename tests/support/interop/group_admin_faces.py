"""One face for the admin calls of every client about groups, offsets, settings and records.

A call that a client does not have raises `NotImplementedError`; what it cannot do to a broker is
not asked of it.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from tests.support.interop.aiokafka_face import LoopThread, aiokafka
from tests.support.interop.confluent_face import confluent_admin, confluent_kafka
from tests.support.interop.java_face import JavaError
from tests.support.interop.java_groups import JavaGroups
from tests.support.interop.kafka_python_face import kafka
from tests.support.patience import PATIENCE_S

STEP_SECONDS_MAX: Final = PATIENCE_S

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    if kafka is not None:
        import kafka.admin
        import kafka.errors
        import kafka.structs
    if aiokafka is not None:
        import aiokafka.admin
        import aiokafka.admin.config_resource
        import aiokafka.errors
        import aiokafka.structs


class Described(NamedTuple):
    """A group's state, and the partitions of each member."""

    state: str
    shares: list[list[int]]


class Refused(Exception):
    """The broker refused; the text is Kafka's name of the error, without underscores and case."""

    def __init__(self, name: str) -> None:
        super().__init__(name.rpartition(".")[2].replace("_", "").lower())


class GroupAdminFace(Protocol):
    def groups(self) -> list[str]: ...

    def describe(self, group: str) -> Described: ...

    def offsets(self, group: str, topic: str) -> dict[int, int]: ...

    def alter_offsets(self, group: str, topic: str, offsets: dict[int, int]) -> None: ...

    def delete_offset(self, group: str, topic: str, partition: int) -> None: ...

    def delete_group(self, group: str) -> None: ...

    def set_config(self, topic: str, key: str, value: str) -> str:
        """Set it, ask for it: the new value."""

    def create_partitions(self, topic: str, count: int) -> None: ...

    def delete_records(self, topic: str, partition: int, offset: int) -> int:
        """Delete before the offset: the first offset that is left."""

    def close(self) -> None: ...


class ConfluentGroupAdmin:
    def __init__(self, address: str) -> None:
        settings = {"bootstrap.servers": address, "log_level": 0}
        self.admin = confluent_admin.AdminClient(settings)

    def result(self, future: Any) -> Any:
        try:
            return future.result(STEP_SECONDS_MAX)
        except confluent_kafka.KafkaException as error:
            raise Refused(error.args[0].name()) from error

    def groups(self) -> list[str]:
        return [one.group_id for one in self.result(self.admin.list_consumer_groups()).valid]

    def describe(self, group: str) -> Described:
        found = self.result(self.admin.describe_consumer_groups([group])[group])
        shares = [
            sorted(one.partition for one in member.assignment.topic_partitions)
            for member in found.members
        ]
        return Described(found.state.name.title(), shares)

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        wanted = confluent_kafka.ConsumerGroupTopicPartitions(group)
        found = self.result(self.admin.list_consumer_group_offsets([wanted])[group])
        return {one.partition: one.offset for one in found.topic_partitions if one.topic == topic}

    def alter_offsets(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        partitions = [
            confluent_kafka.TopicPartition(topic, partition, offset)
            for partition, offset in offsets.items()
        ]
        wanted = confluent_kafka.ConsumerGroupTopicPartitions(group, partitions)
        done = self.result(self.admin.alter_consumer_group_offsets([wanted])[group])
        for one in done.topic_partitions:
            if one.error is not None:
                raise Refused(one.error.name())

    def delete_offset(self, group: str, topic: str, partition: int) -> None:
        raise NotImplementedError

    def delete_group(self, group: str) -> None:
        self.result(self.admin.delete_consumer_groups([group])[group])

    def set_config(self, topic: str, key: str, value: str) -> str:
        kind = confluent_admin.ConfigResource.Type.TOPIC
        change = confluent_admin.ConfigEntry(
            key, value, incremental_operation=confluent_admin.AlterConfigOpType.SET
        )
        wanted = confluent_admin.ConfigResource(kind, topic, incremental_configs=[change])
        self.result(self.admin.incremental_alter_configs([wanted])[wanted])
        asked = confluent_admin.ConfigResource(kind, topic)
        text: str = self.result(self.admin.describe_configs([asked])[asked])[key].value
        return text

    def create_partitions(self, topic: str, count: int) -> None:
        wanted = confluent_admin.NewPartitions(topic, count)
        self.result(self.admin.create_partitions([wanted])[topic])

    def delete_records(self, topic: str, partition: int, offset: int) -> int:
        wanted = confluent_kafka.TopicPartition(topic, partition, offset)
        low: int = self.result(self.admin.delete_records([wanted])[wanted]).low_watermark
        return low

    def close(self) -> None:
        self.admin = None


class KafkaPythonGroupAdmin:
    def __init__(self, address: str) -> None:
        self.admin = kafka.KafkaAdminClient(bootstrap_servers=address)

    def groups(self) -> list[str]:
        return [one["group_id"] for one in self.admin.list_groups()]

    def describe(self, group: str) -> Described:
        found = self.admin.describe_groups([group])[group]
        if found["error"] is not None:
            raise Refused(found["error"])
        shares = [
            sorted(
                partition
                for topic in member["member_assignment"]["assigned_partitions"]
                for partition in topic["partitions"]
            )
            for member in found["members"]
        ]
        return Described(found["group_state"], shares)

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        found = self.admin.list_group_offsets({group: None})[group]
        return {one.partition: at.offset for one, at in found.items() if one.topic == topic}

    def alter_offsets(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        wanted = {
            kafka.TopicPartition(topic, partition): kafka.OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }
        for error in self.admin.alter_group_offsets(group, wanted).values():
            refuse(error)

    def delete_offset(self, group: str, topic: str, partition: int) -> None:
        wanted = [kafka.TopicPartition(topic, partition)]
        for error in self.admin.delete_group_offsets(group, wanted).values():
            refuse(error)

    def delete_group(self, group: str) -> None:
        for answer in self.admin.delete_groups([group]).values():
            if answer != "OK":
                raise Refused(answer)

    def set_config(self, topic: str, key: str, value: str) -> str:
        kind = kafka.admin.ConfigResourceType.TOPIC
        self.admin.alter_configs([kafka.admin.ConfigResource(kind, topic, {key: value})])
        asked = kafka.admin.ConfigResource(kind, topic)
        text: str = self.admin.describe_configs([asked])["topic"][topic][key]["value"]
        return text

    def create_partitions(self, topic: str, count: int) -> None:
        self.admin.create_partitions({topic: count})

    def delete_records(self, topic: str, partition: int, offset: int) -> int:
        wanted = kafka.TopicPartition(topic, partition)
        low: int = self.admin.delete_records({wanted: offset})[wanted]["low_watermark"]
        return low

    def close(self) -> None:
        self.admin.close()


def refuse(error: type[Exception]) -> None:
    """kafka-python answers with the class of an error."""
    if error is not kafka.errors.NoError:
        raise Refused(error.__name__.removesuffix("Error"))


class AiokafkaGroupAdmin:
    def __init__(self, address: str) -> None:
        self.loop = LoopThread()
        self.admin = self.loop.run(self.started(address))

    async def started(self, address: str) -> Any:
        admin = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=address)
        await admin.start()
        return admin

    def groups(self) -> list[str]:
        return [one[0] for one in self.loop.run(self.admin.list_consumer_groups())]

    def describe(self, group: str) -> Described:
        answer = self.loop.run(self.admin.describe_consumer_groups([group]))[0]
        code, _, state, _, _, members = answer.groups[0][:6]
        assert code == 0
        # It leaves an assignment as the bytes of the consumers' protocol.
        return Described(state, [partitions_of_one_topic(member[4]) for member in members])

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        found = self.loop.run(self.admin.list_consumer_group_offsets(group))
        return {one.partition: at.offset for one, at in found.items() if one.topic == topic}

    def alter_offsets(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        raise NotImplementedError

    def delete_offset(self, group: str, topic: str, partition: int) -> None:
        raise NotImplementedError

    def delete_group(self, group: str) -> None:
        raise NotImplementedError

    def set_config(self, topic: str, key: str, value: str) -> str:
        resource = aiokafka.admin.config_resource.ConfigResource
        kind = aiokafka.admin.config_resource.ConfigResourceType.TOPIC
        wanted = resource(kind, topic, {key: value})
        changed = self.loop.run(self.admin.alter_configs([wanted]))[0]
        assert [each[0] for each in changed.resources] == [0], changed
        answer = self.loop.run(self.admin.describe_configs([resource(kind, topic)]))[0]
        entries = {entry[0]: entry[1] for entry in answer.resources[0][4]}
        text: str = entries[key]
        return text

    def create_partitions(self, topic: str, count: int) -> None:
        wanted = {topic: aiokafka.admin.NewPartitions(count)}
        self.loop.run(self.admin.create_partitions(wanted))

    def delete_records(self, topic: str, partition: int, offset: int) -> int:
        wanted = aiokafka.structs.TopicPartition(topic, partition)
        until = aiokafka.admin.RecordsToDelete(offset)
        low: int = self.loop.run(self.admin.delete_records({wanted: until}))[wanted]
        return low

    def close(self) -> None:
        self.loop.run(self.admin.close())
        self.loop.close()


def partitions_of_one_topic(assignment: bytes) -> list[int]:
    """Version, one topic with its name, its partitions; of a member with nothing, nothing."""
    _, topics = struct.unpack_from(">hi", assignment)
    if topics == 0:
        return []
    (size,) = struct.unpack_from(">h", assignment, 6)
    (count,) = struct.unpack_from(">i", assignment, 8 + size)
    return sorted(struct.unpack_from(f">{count}i", assignment, 12 + size))


class JavaGroupAdmin:
    def __init__(self, address: str, program: JavaGroups) -> None:
        self.address = address
        self.program = program

    def ask(self, do: str, **fields: Any) -> Any:
        try:
            return self.program.ask(do, address=self.address, **fields)
        except JavaError as error:
            raise Refused(str(error).partition(":")[0].removesuffix("Exception")) from error

    def groups(self) -> list[str]:
        return list(self.ask("list groups"))

    def describe(self, group: str) -> Described:
        found = self.ask("describe group", group=group)
        return Described(found["state"], [member[4] for member in found["members"]])

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        found = self.ask("offsets", group=group)
        return {partition: offset for name, partition, offset, *_ in found if name == topic}

    def alter_offsets(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        wanted = [[partition, offset, ""] for partition, offset in offsets.items()]
        self.ask("alter offsets", group=group, topic=topic, offsets=wanted)

    def delete_offset(self, group: str, topic: str, partition: int) -> None:
        self.ask("delete offsets", group=group, topic=topic, partition=partition)

    def delete_group(self, group: str) -> None:
        self.ask("delete group", group=group)

    def set_config(self, topic: str, key: str, value: str) -> str:
        changed = self.ask("alter configs", kind="TOPIC", name=topic, changes=[["SET", key, value]])
        text: str = changed[key][0]
        return text

    def create_partitions(self, topic: str, count: int) -> None:
        self.ask("create partitions", topic=topic, count=count)

    def delete_records(self, topic: str, partition: int, offset: int) -> int:
        low: int = self.ask("delete records", topic=topic, partition=partition, offset=offset)
        return low

    def close(self) -> None:
        return


FACES: Final[dict[str, Callable[[str], GroupAdminFace]]] = {
    "confluent-kafka": ConfluentGroupAdmin,
    "kafka-python": KafkaPythonGroupAdmin,
    "aiokafka": AiokafkaGroupAdmin,
}
