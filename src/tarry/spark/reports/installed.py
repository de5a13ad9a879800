"""Installed libraries of reports: a sentence says what is missing."""

from __future__ import annotations

from typing import Any, Final

MISSING: Final = 'reports need altair and vl-convert-python: pip install "tarry[spark]"'


def load_altair() -> Any:
    """Import Altair; raises ImportError with what to do."""
    try:
        import altair
    except ImportError as error:
        raise ImportError(MISSING) from error
    return altair


def load_scripts() -> str:
    """Return the scripts that draw Vega-Lite's plots, for a browser without a network."""
    try:
        import vl_convert
    except ImportError as error:
        raise ImportError(MISSING) from error
    # The version that Altair writes, such as v6.1.0: the bundle is named by two numbers.
    version = ".".join(load_altair().SCHEMA_VERSION.lstrip("v").split(".")[:2])
    # Its stub asks for a snippet that it has a default for.
    bundle: Any = vl_convert.javascript_bundle
    return str(bundle(vl_version=version))
