"""The synchronous faces of the client: Producer, Consumer, Admin."""

from __future__ import annotations
