"""IncrementalAlterConfigs (key 44): sets, deletes, appends to and subtracts from single settings.

Every resource is changed as a whole or not at all, and has an answer of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tarry.base.doors import LogLevels
from tarry.broker.delayed.long_answers import LongAnswer
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.config_changes import (
    add_rows,
    change_configs,
    checked,
    set_levels,
)
from tarry.broker.request import RequestContext
from tarry.cluster.configs.config_changes import KeyChange
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
    """Change the settings of each resource, or refuse; with `validate_only` only check the
    request.
    """
    steps = _steps(changes, levels, context, request)
    return changes.long_answers.begin(LongAnswer(context), steps)


def _steps(
    changes: MetadataChanges,
    levels: LogLevels,
    context: RequestContext,
    request: IncrementalAlterConfigsRequest,
) -> Iterator[int]:
    resources: Iterator[tuple[int, str, list[KeyChange]]] = (
        (
            resource.resource_type,
            resource.resource_name,
            [(each.name, each.config_operation, each.value) for each in resource.configs],
        )
        for resource in request.resources
    )
    outcomes = yield from checked(resources, changes.settings, is_whole=False)
    if not request.validate_only:
        set_levels(levels, context, outcomes)
    change_configs(
        changes,
        context,
        outcomes,
        partial(add_rows, IncrementalAlterConfigsResponse(), AlterConfigsResourceResponse),
        is_whole=False,
        validate_only=request.validate_only,
    )
