"""Packages that the client of etcd needs: those of the extra `cluster`."""

from __future__ import annotations

from typing import Final

# Packages that have another name than what is imported of them.
_PACKAGES: Final = {"google": "protobuf"}


def missing_package(error: ImportError) -> str:
    """Return the package that is missing where an import has failed."""
    module = (error.name or "").partition(".")[0]
    return _PACKAGES.get(module, module)
