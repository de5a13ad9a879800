"""ApiVersions (key 18): what this broker serves.  The only API that answers any version.

A version that we do not know is answered with UNSUPPORTED_VERSION in version 0, and the range of
ApiVersions itself, so that the client asks again lower (KIP-511).
"""

from __future__ import annotations

import re
from typing import Any, Final

from tarry.base import errors
from tarry.broker.request import RequestContext
from tarry.broker.route import Route
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)

# KIP-511's rule for software names and versions.
SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
VERSION_OF_SOFTWARE_NAMES: Final = 3


def handle(
    routes: dict[int, Route[Any]], context: RequestContext, request: ApiVersionsRequest
) -> Message | None:
    """List every route with the range that is advertised for it."""
    if context.api_version >= VERSION_OF_SOFTWARE_NAMES:
        for text in (request.client_software_name, request.client_software_version):
            if SOFTWARE.fullmatch(text) is None:
                return ApiVersionsResponse(error_code=errors.INVALID_REQUEST)
        context.connection.client_software = (
            f"{request.client_software_name} {request.client_software_version}"
        )
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=key,
                min_version=routes[key].version_advertised_min,
                max_version=routes[key].version_max,
            )
            for key in sorted(routes)
        ],
    )


def unsupported(routes: dict[int, Route[Any]]) -> ApiVersionsResponse:
    """Make the answer, to be encoded as version 0, to an ApiVersions version that we do not
    have.
    """
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
