"""A Kafka for tests: brokers in the test's own process, in another one, or in simulated time.

The pytest plugin (`make dist`, then `pip install --find-links dist 'tarry[testing]'`) has a fixture
for each; the classes can be used without it:

    from tarry.testing import Tarry

    with Tarry() as tarry:
        tarry.send("orders", b"one coffee")

A public name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tarry.testing.access import BrokerAccess
    from tarry.testing.clock import BrokerClock
    from tarry.testing.controls import FaultControls
    from tarry.testing.faults import ApiFault
    from tarry.testing.process import ProcessEnded, TarryProcess
    from tarry.testing.threaded import Tarry, TarrySession
    from tarry.testing.world import TarryWorld
    from tarry.testing.world_clients import WorldAdmin, WorldConsumer, WorldProducer

__all__ = [
    "ApiFault",
    "BrokerAccess",
    "BrokerClock",
    "FaultControls",
    "ProcessEnded",
    "Tarry",
    "TarryProcess",
    "TarrySession",
    "TarryWorld",
    "WorldAdmin",
    "WorldConsumer",
    "WorldProducer",
]

# Module of each public name.
MODULES: Final = {
    "ApiFault": "tarry.testing.faults",
    "BrokerAccess": "tarry.testing.access",
    "BrokerClock": "tarry.testing.clock",
    "FaultControls": "tarry.testing.controls",
    "ProcessEnded": "tarry.testing.process",
    "Tarry": "tarry.testing.threaded",
    "TarryProcess": "tarry.testing.process",
    "TarrySession": "tarry.testing.threaded",
    "TarryWorld": "tarry.testing.world",
    "WorldAdmin": "tarry.testing.world_clients",
    "WorldConsumer": "tarry.testing.world_clients",
    "WorldProducer": "tarry.testing.world_clients",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    module = MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *MODULES])
