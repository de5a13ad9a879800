"""UpdateFeatures (key 57): an administrator brings feature levels into force, or lowers them."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.feature_updates import (
    SAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    LevelWanted,
)
from tarry.protocol.message import Message
from tarry.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

# Version 1 replaces the flag that allows a downgrade by a type.  Version 2 drops the results of
# single features.
VERSION_OF_TYPES: Final = 1
VERSION_WITHOUT_RESULTS: Final = 2

# Bound on the features that a request may name.  Kafka has fewer than ten, and Tarry a few more.
FEATURES_MAX: Final = 100


def handle(
    changes: MetadataChanges, context: RequestContext, request: UpdateFeaturesRequest
) -> Message | None:
    """Change all levels that the request names, or none."""
    updates = request.feature_updates
    names = list(dict.fromkeys(one.feature for one in updates))
    if len(updates) > FEATURES_MAX or len(names) < len(updates):
        return UpdateFeaturesResponse(
            error_code=errors.INVALID_REQUEST,
            error_message=f"one request names each feature once, {FEATURES_MAX} at most",
        )
    change = FeatureUpdate(
        [
            LevelWanted(one.feature, one.max_version_level, _upgrade_type(context, one))
            for one in updates
        ],
        changes.store.release,
    )

    def answer(error_code: int, sentence: str) -> Message | None:
        if error_code != errors.NONE:
            change.fail(error_code, sentence)
        response = UpdateFeaturesResponse(
            error_code=change.error_code, error_message=change.message
        )
        if change.error_code == errors.NONE and context.api_version < VERSION_WITHOUT_RESULTS:
            response.results = [UpdatableFeatureResult(feature=name) for name in names]
        return response

    if request.validate_only:
        change.decide(changes.store.view)
        return answer(errors.NONE, "")
    changes.ask(context, change, answer, request.timeout_ms)
    return None


def _upgrade_type(context: RequestContext, one: FeatureUpdateKey) -> int:
    if context.api_version >= VERSION_OF_TYPES:
        return one.upgrade_type
    return SAFE_DOWNGRADE if one.allow_downgrade else UPGRADE
