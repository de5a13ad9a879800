"""The Arrow face of the client: topics as columns of pyarrow, without an object for each record.

    from tarry.client.arrow import ArrowConsumer, ArrowProducer, scan

pyarrow is loaded when it is first needed; `make dist`, then `pip install --find-links dist
"tarry[arrow]"` installs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tarry.client.arrow.consumer import ArrowConsumer as ArrowConsumer
    from tarry.client.arrow.producer import ArrowProducer as ArrowProducer
    from tarry.client.arrow.receipts import (
        BatchReceipt as BatchReceipt,
        TableReceipt as TableReceipt,
    )
    from tarry.client.arrow.scanner import scan as scan

# Public names of each module.
MODULES: Final = {
    "tarry.client.arrow.consumer": ("ArrowConsumer",),
    "tarry.client.arrow.producer": ("ArrowProducer",),
    "tarry.client.arrow.receipts": ("BatchReceipt", "TableReceipt"),
    "tarry.client.arrow.scanner": ("scan",),
}

_MODULE_OF: Final = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
