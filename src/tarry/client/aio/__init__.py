"""The client for asyncio: Producer, Consumer and Admin that are awaited.

    from tarry.client import aio

    async with aio.Producer(bootstrap_servers="localhost:9092") as producer:
        await producer.send("orders", b"...")

Each class is loaded at its first use.  Settings, errors and returned objects are those of
`tarry.client`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tarry.client.aio.admin import Admin as Admin
    from tarry.client.aio.consumer import Consumer as Consumer
    from tarry.client.aio.listener import Listener as Listener
    from tarry.client.aio.producer import Producer as Producer, Receipt as Receipt

_MODULE_OF: Final = {
    "Admin": "tarry.client.aio.admin",
    "Consumer": "tarry.client.aio.consumer",
    "Listener": "tarry.client.aio.listener",
    "Producer": "tarry.client.aio.producer",
    "Receipt": "tarry.client.aio.producer",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
