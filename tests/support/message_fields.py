"""Fields of messages, in both forms of the modules that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from types import GetSetDescriptorType
from typing import Any


def fields_of(message: Any) -> list[str]:
    if hasattr(message, "__dict__"):
        return list(vars(message))
    # Compiled.
    return [
        name for name, one in vars(type(message)).items() if isinstance(one, GetSetDescriptorType)
    ]


def slots_of(message: Any) -> Iterator[tuple[Any, str]]:
    """Yield every field of a message and of what it holds, each as its owner and name."""
    for name in fields_of(message):
        yield message, name
        value = getattr(message, name)
        for one in value if isinstance(value, list) else [value]:
            if type(one).__module__.startswith("tarry.protocol"):
                yield from slots_of(one)
