"""AlterConfigs (key 33): the request replaces all settings of a resource, and unsets missing ones.

This older API loses what another client has just set: today's clients send IncrementalAlterConfigs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tarry.broker.delayed.long_answers import LongAnswer
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.config_changes import add_rows, change_configs, checked
from tarry.broker.request import RequestContext
from tarry.cluster.configs.config_changes import SET, KeyChange
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(
    changes: MetadataChanges, context: RequestContext, request: AlterConfigsRequest
) -> Message | None:
    """Replace the settings of each resource, or refuse; with `validate_only` only check the
    request.
    """
    return changes.long_answers.begin(LongAnswer(context), _steps(changes, context, request))


def _steps(
    changes: MetadataChanges, context: RequestContext, request: AlterConfigsRequest
) -> Iterator[int]:
    resources: Iterator[tuple[int, str, list[KeyChange]]] = (
        (
            resource.resource_type,
            resource.resource_name,
            [(each.name, SET, each.value) for each in resource.configs],
        )
        for resource in request.resources
    )
    outcomes = yield from checked(resources, changes.settings, is_whole=True)
    change_configs(
        changes,
        context,
        outcomes,
        partial(add_rows, AlterConfigsResponse(), AlterConfigsResourceResponse),
        is_whole=True,
        validate_only=request.validate_only,
    )
