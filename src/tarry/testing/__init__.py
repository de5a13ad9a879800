"""A Kafka for tests: brokers in the test's own process, in another one, or in simulated time.

The pytest plugin (`pip install tarry[testing]`) has a fixture for each; the classes can be used
without it:

    from tarry.testing import Tarry

    with Tarry() as tarry:
        tarry.send("orders", b"one coffee")

Public names are loaded with their first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tarry.testing.process import TarryProcess as TarryProcess
    from tarry.testing.threaded import Tarry as Tarry, TarrySession as TarrySession
    from tarry.testing.world import TarryWorld as TarryWorld

# Where each public name is.
MODULES: Final = {
    "Tarry": "tarry.testing.threaded",
    "TarryProcess": "tarry.testing.process",
    "TarrySession": "tarry.testing.threaded",
    "TarryWorld": "tarry.testing.world",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    module = MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *MODULES])
