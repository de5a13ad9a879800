"""Packages that the client of etcd needs, those of the extra `cluster`."""

from __future__ import annotations

from typing import Final

# Module -> package, where the names differ.
_PACKAGES: Final = {"google": "protobuf"}


def missing_package(error: ImportError) -> str:
    """Return the package that is missing after a failed import."""
    module = (error.name or "").partition(".")[0]
    return _PACKAGES.get(module, module)
