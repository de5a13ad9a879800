"""IncrementalAlterConfigs (key 44): single settings are set, deleted, appended to, subtracted from.

Every resource is changed as a whole or not at all, and has an answer of its own.
"""

from __future__ import annotations

from tarry.base.doors import LogLevels
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.config_changes import (
    ConfigOutcome,
    change_configs,
    check_resources,
    set_levels,
)
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(
    changes: MetadataChanges,
    levels: LogLevels,
    context: RequestContext,
    request: IncrementalAlterConfigsRequest,
) -> Message | None:
    """Change what can be changed; with `validate_only` say only what would be."""
    outcomes = [
        ConfigOutcome(
            resource.resource_type,
            resource.resource_name,
            [(each.name, each.config_operation, each.value) for each in resource.configs],
        )
        for resource in request.resources
    ]
    check_resources(outcomes, changes.settings, is_whole=False)
    if not request.validate_only:
        set_levels(levels, context, outcomes)
    return change_configs(
        changes,
        context,
        outcomes,
        _response,
        is_whole=False,
        validate_only=request.validate_only,
    )


def _response(outcomes: list[ConfigOutcome]) -> Message:
    return IncrementalAlterConfigsResponse(
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
