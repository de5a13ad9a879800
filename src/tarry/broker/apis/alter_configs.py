"""AlterConfigs (key 33): all settings of a resource are replaced; what is not named is unset.

The older way, which loses what somebody else has just set: clients of today send
IncrementalAlterConfigs.
"""

from __future__ import annotations

from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.config_changes import ConfigOutcome, change_configs, check_resources
from tarry.broker.request import RequestContext
from tarry.cluster.config_changes import SET
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(
    changes: MetadataChanges, context: RequestContext, request: AlterConfigsRequest
) -> Message | None:
    """Replace what can be replaced; with `validate_only` say only what would be."""
    outcomes = [
        ConfigOutcome(
            resource.resource_type,
            resource.resource_name,
            [(each.name, SET, each.value) for each in resource.configs],
        )
        for resource in request.resources
    ]
    check_resources(outcomes, changes.settings, is_whole=True)
    return change_configs(
        changes, context, outcomes, _response, is_whole=True, validate_only=request.validate_only
    )


def _response(outcomes: list[ConfigOutcome]) -> Message:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=outcome.error_code,
                error_message=outcome.message,
                resource_type=outcome.resource_type,
                resource_name=outcome.name,
            )
            for outcome in outcomes
        ]
    )
