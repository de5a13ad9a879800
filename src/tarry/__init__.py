"""Tarry: a message broker that speaks Kafka's wire protocol and knows how to wait."""

from __future__ import annotations

__version__ = "0.1.0"
