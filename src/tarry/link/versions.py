"""Versions of each API that a broker accepts: the request for them, and its answer."""

from __future__ import annotations

from typing import Final

import tarry
from tarry.base.errors import UNSUPPORTED_VERSION
from tarry.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    decode_api_versions_response,
)
from tarry.wire.reader import Reader

SOFTWARE_NAME: Final = "tarry"

# Lowest and highest version that a broker accepts, by API key.
VersionTable = dict[int, tuple[int, int]]


def versions_request() -> ApiVersionsRequest:
    return ApiVersionsRequest(SOFTWARE_NAME, tarry.__version__)


def decode_versions(reader: Reader, version: int) -> ApiVersionsResponse:
    """Decode an answer; it is in version 0 if the broker lacks the asked version (KIP-511)."""
    error_code = reader.data[reader.position : reader.position + 2]
    if int.from_bytes(error_code, "big") == UNSUPPORTED_VERSION:
        version = 0
    return decode_api_versions_response(reader, version)


def version_table(response: ApiVersionsResponse) -> VersionTable:
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
