"""The broker's purgatories: every one of them is made here, so that none is forgotten.

What counts them, or asks whether anything waits, goes through `broker.purgatories`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.purgatory.purgatory import Purgatory

if TYPE_CHECKING:
    from tarry.broker.broker import Broker


def new_purgatory(broker: Broker, name: str) -> Purgatory:
    """One more, over the broker's wheel."""
    purgatory = Purgatory(broker.timer, name)
    broker.purgatories.append(purgatory)
    return purgatory
