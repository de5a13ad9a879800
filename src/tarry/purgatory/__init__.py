"""Delayed operations: they complete by a watch key or expire by the wheel, exactly once."""

from __future__ import annotations

from tarry.purgatory.operation import DelayedOperation
from tarry.purgatory.purgatory import Purgatory

__all__ = ["DelayedOperation", "Purgatory"]
