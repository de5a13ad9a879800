"""The calls of an admin client that change settings of topics and brokers."""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.base.errors import NONE, UNKNOWN_TOPIC_OR_PARTITION
from tarry.client.core.admin.calls import RESOURCE_BROKER, left_out, unknown_topic
from tarry.client.core.routing import ANYONE
from tarry.client.errors import BrokerError
from tarry.link.errand import Call
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    decode_incremental_alter_configs_response,
)

# Operation of a ConfigChange: gives the setting this value.
SET: Final = 0
# Operation of a ConfigChange: restores the default.
DELETE: Final = 1
# Operation of a ConfigChange: appends the value to a list setting.
APPEND: Final = 2
# Operation of a ConfigChange: removes the value from a list setting.
SUBTRACT: Final = 3


class ConfigChange(NamedTuple):
    """Change of one setting by its name; `operation` is SET, DELETE, APPEND or SUBTRACT, and DELETE
    has no value."""

    name: str
    operation: int
    value: str | None = None


class ChangeConfigs(Call[IncrementalAlterConfigsResponse, ClientError | None]):
    """Call that changes settings of one topic or broker, either all of them or none.

    An empty name of a broker means all brokers.  Result: None, or the error that the topic does not
    exist.  Other refusals are raised.
    """

    def __init__(
        self, resource_type: int, name: str, changes: list[ConfigChange], *, validate_only: bool
    ) -> None:
        target = int(name) if resource_type == RESOURCE_BROKER and name else ANYONE
        super().__init__(
            api_keys.INCREMENTAL_ALTER_CONFIGS, decode_incremental_alter_configs_response, target
        )
        self.resource_type = resource_type
        self.name = name
        self.changes = changes
        self.validate_only = validate_only

    def build(self, version: int) -> Message:
        configs = [AlterableConfig(one.name, one.operation, one.value) for one in self.changes]
        resource = AlterConfigsResource(self.resource_type, self.name, configs)
        return IncrementalAlterConfigsRequest([resource], self.validate_only)

    def interpret(self, response: IncrementalAlterConfigsResponse) -> ClientError | None:
        if not response.responses:
            raise left_out(f"the settings of {self.name or 'all brokers'}")
        for answer in response.responses:
            if answer.error_code == UNKNOWN_TOPIC_OR_PARTITION:
                return unknown_topic(self.name)
            if answer.error_code != NONE:
                sentence = answer.error_message or f"the settings of {self.name} were not changed"
                raise BrokerError(answer.error_code, sentence.rstrip("."))
        return None
