"""The versions of each API that a broker takes, as its ApiVersions answer tells them."""

from __future__ import annotations

from tarry.protocol.messages.api_versions import ApiVersionsResponse

VersionTable = dict[int, tuple[int, int]]


def version_table(response: ApiVersionsResponse) -> VersionTable:
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
