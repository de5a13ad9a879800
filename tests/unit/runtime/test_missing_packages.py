"""Without the extra `cluster` a sentence names the package to install, and not a module of it."""

from __future__ import annotations

import pytest

from tarry.runtime.etcd.packages import missing_package


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("google", "protobuf"),
        ("google.protobuf", "protobuf"),
        ("h2", "h2"),
        ("h2.config", "h2"),
    ],
)
def test_the_package_that_is_missing_is_named(module: str, package: str) -> None:
    assert missing_package(ModuleNotFoundError("no", name=module)) == package
