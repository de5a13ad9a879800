"""Parts that all faces of the client share: clocks, sockets, calls that do not wait."""

from __future__ import annotations
