"""Parts that all faces of the client share: clocks, sockets, and calls that do not wait."""

from __future__ import annotations
