"""Loading of pyarrow when it is first needed; no other part of the client loads it."""

from __future__ import annotations

import logging
from functools import cache
from types import ModuleType
from typing import Final

import tarry

log = logging.getLogger("tarry.client")

VERSION_MIN: Final = 20


@cache
def load_pyarrow() -> ModuleType:
    """Return pyarrow; raise ImportError with a hint if it is missing or too old."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            'tarry.client.arrow needs pyarrow; install it with: pip install "tarry[arrow]"'
        ) from None
    if int(pyarrow.__version__.split(".")[0]) < VERSION_MIN:
        raise ImportError(
            f"tarry.client.arrow needs pyarrow {VERSION_MIN} or newer, not {pyarrow.__version__}; "
            'install it with: pip install "tarry[arrow]"'
        )
    if tarry.FORM == "interpreted":
        log.warning(
            "tarry.client.arrow runs interpreted (%s): columns take many times longer",
            tarry.FORM_REASON,
        )
    module: ModuleType = pyarrow
    return module
