"""ApiVersions (key 18): what this broker serves.  Only this API answers a version it does not know.

The answer to an unknown version is UNSUPPORTED_VERSION in the form of version 0, with the range of
ApiVersions itself, so that the client asks again in a lower version (KIP-511).
"""

from __future__ import annotations

import re
from typing import Any, Final

from tarry.base import errors
from tarry.broker.metadata.cluster_view import ClusterView
from tarry.broker.request import RequestContext
from tarry.broker.route import Route
from tarry.cluster.store.store import MetadataStore
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

# KIP-511's rule for software names and versions.
SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
VERSION_OF_SOFTWARE_NAMES: Final = 3

# Kafka's features that brokers agree on.  Each has level 0, because Tarry lacks the feature.
ABSENT_FEATURES: Final = (
    "eligible.leader.replicas.version",
    "group.version",
    "share.version",
    "streams.version",
    "transaction.version",
)
# KAFKA-17011: older clients fail at a feature whose lowest level is 0.
VERSION_OF_LEVEL_0: Final = 4

# Broker id in version 5 that means that the client does not say which broker it expects.
NO_NODE: Final = -1


def handle(
    routes: dict[int, Route[Any]],
    view: ClusterView,
    store: MetadataStore,
    context: RequestContext,
    request: ApiVersionsRequest,
) -> Message | None:
    """List the advertised routes, each with its range of versions, and the features."""
    if context.api_version >= VERSION_OF_SOFTWARE_NAMES:
        for text in (request.client_software_name, request.client_software_version):
            if SOFTWARE.fullmatch(text) is None:
                return ApiVersionsResponse(error_code=errors.INVALID_REQUEST)
        context.connection.client_software = (
            f"{request.client_software_name} {request.client_software_version}"
        )
    error_code = _mistaken(view, request)
    if error_code != errors.NONE:
        return ApiVersionsResponse(error_code=error_code)
    response = ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=key,
                min_version=routes[key].version_advertised_min,
                max_version=routes[key].version_max,
            )
            for key in sorted(routes)
            if routes[key].is_advertised
        ],
        # Kafka too gives the version of all metadata as the epoch of the feature levels.
        finalized_features_epoch=store.version,
        finalized_features=[
            FinalizedFeatureKey(name, level, level)
            for name, level in sorted(view.state.feature_levels.items())
        ],
    )
    if context.api_version >= VERSION_OF_LEVEL_0:
        levels = {**dict.fromkeys(ABSENT_FEATURES, 0), **store.release.levels}
        response.supported_features = [
            SupportedFeatureKey(name, 0, level) for name, level in sorted(levels.items())
        ]
    return response


def _mistaken(view: ClusterView, request: ApiVersionsRequest) -> int:
    """Return the error for a client at the wrong address (KIP-1242): another cluster or broker has
    the address of the one that the client expects.  Before version 5 clients do not say what they
    expect.
    """
    if (request.cluster_id is None) != (request.node_id == NO_NODE):
        return errors.INVALID_REQUEST
    if request.cluster_id is None:
        return errors.NONE
    if request.cluster_id != view.state.cluster_id or request.node_id != view.own_id:
        return errors.REBOOTSTRAP_REQUIRED
    return errors.NONE


def unsupported(routes: dict[int, Route[Any]]) -> ApiVersionsResponse:
    """Return the answer to an unknown version of ApiVersions, to be encoded as version 0."""
    route = routes[api_keys.API_VERSIONS]
    return ApiVersionsResponse(
        error_code=errors.UNSUPPORTED_VERSION,
        api_keys=[
            ApiVersion(
                api_key=api_keys.API_VERSIONS,
                min_version=route.version_advertised_min,
                max_version=route.version_max,
            )
        ],
    )
