"""An operator of a broker by hand: administration in one call each."""

from __future__ import annotations

from tests.support.broker.broker_user import ORDERS, User

from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages import alter_configs
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tarry.simulation.by_hand import BrokerByHand

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

Change = tuple[str, int, str | None]


class Operator(User):
    """One connection of somebody who administers."""

    def change_request(
        self,
        *resources: tuple[int, str, list[Change]],
        validate_only: bool = False,
    ) -> IncrementalAlterConfigsRequest:
        return IncrementalAlterConfigsRequest(
            [
                AlterConfigsResource(kind, name, [AlterableConfig(*change) for change in changes])
                for kind, name, changes in resources
            ],
            validate_only,
        )

    def change_all(
        self, *resources: tuple[int, str, list[Change]], validate_only: bool = False
    ) -> list[AlterConfigsResourceResponse]:
        request = self.change_request(*resources, validate_only=validate_only)
        return changed(self.client.ask(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, request))

    def change(
        self, kind: int, name: str, *changes: Change, validate_only: bool = False
    ) -> AlterConfigsResourceResponse:
        """One resource's outcome."""
        (outcome,) = self.change_all((kind, name, list(changes)), validate_only=validate_only)
        return outcome

    def set(self, kind: int, name: str, **configs: str) -> None:
        """Keys have underscores for dots."""
        changes = [(key.replace("_", "."), SET, value) for key, value in configs.items()]
        outcome = self.change(kind, name, *changes)
        assert outcome.error_code == 0, outcome.error_message

    def replace(
        self, kind: int, name: str, *configs: tuple[str, str | None], validate_only: bool = False
    ) -> alter_configs.AlterConfigsResourceResponse:
        request = alter_configs.AlterConfigsRequest(
            [
                alter_configs.AlterConfigsResource(
                    kind, name, [alter_configs.AlterableConfig(*each) for each in configs]
                )
            ],
            validate_only,
        )
        response = self.client.ask(api_keys.ALTER_CONFIGS, 2, request)
        assert isinstance(response, alter_configs.AlterConfigsResponse)
        return response.responses[0]

    def described(self, kind: int, name: str) -> dict[str, DescribeConfigsResourceResult]:
        request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)], True)
        response = self.client.ask(api_keys.DESCRIBE_CONFIGS, 4, request)
        assert isinstance(response, DescribeConfigsResponse)
        assert response.results[0].error_code == 0, response.results[0].error_message
        return {each.name: each for each in response.results[0].configs}

    def value(self, kind: int, name: str, key: str) -> tuple[str | None, int]:
        """A setting's value and source."""
        entry = self.described(kind, name)[key]
        return entry.value, entry.config_source

    def growth(
        self,
        *wanted: tuple[str, int],
        assignments: list[list[int]] | None = None,
        validate_only: bool = False,
        timeout_ms: int = 5_000,
    ) -> CreatePartitionsRequest:
        assigned = (
            None
            if assignments is None
            else [CreatePartitionsAssignment(replicas) for replicas in assignments]
        )
        return CreatePartitionsRequest(
            [CreatePartitionsTopic(name, count, assigned) for name, count in wanted],
            timeout_ms,
            validate_only,
        )

    def grow(
        self, *wanted: tuple[str, int], **terms: bool | list[list[int]]
    ) -> list[CreatePartitionsTopicResult]:
        request = self.growth(*wanted, **terms)  # type: ignore[arg-type]
        return grown(self.client.ask(api_keys.CREATE_PARTITIONS, 3, request))

    def deletion(
        self, *offsets: tuple[int, int], topic: str = ORDERS, timeout_ms: int = 30_000
    ) -> DeleteRecordsRequest:
        parts = [DeleteRecordsPartition(index, offset) for index, offset in offsets]
        return DeleteRecordsRequest([DeleteRecordsTopic(topic, parts)], timeout_ms)

    def delete_records(
        self, *offsets: tuple[int, int], topic: str = ORDERS, timeout_ms: int = 30_000
    ) -> list[tuple[int, int]]:
        """Low watermark and error code of each partition."""
        request = self.deletion(*offsets, topic=topic, timeout_ms=timeout_ms)
        self.client.send(api_keys.DELETE_RECORDS, 2, request)
        self.hand.settle()
        # Recovery points are written by a duty of the timer.
        self.hand.turn(after_ms=1)
        self.hand.settle()
        return deleted(self.answers()[0])


def operator(settings: dict[str, str] | None = None) -> Operator:
    """An operator of a new broker without topics."""
    return Operator(BrokerByHand(settings))


def changed(answer: Message) -> list[AlterConfigsResourceResponse]:
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    return answer.responses


def grown(answer: Message) -> list[CreatePartitionsTopicResult]:
    assert isinstance(answer, CreatePartitionsResponse)
    return answer.results


def deleted(answer: Message) -> list[tuple[int, int]]:
    assert isinstance(answer, DeleteRecordsResponse)
    return [
        (part.low_watermark, part.error_code)
        for topic in answer.topics
        for part in topic.partitions
    ]
