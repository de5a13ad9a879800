"""Notices to a service manager: that the broker serves, and that it stops.

systemd names a datagram socket in NOTIFY_SOCKET (sd_notify(3)); without one nothing happens, and
a message that cannot be sent is no reason to do anything else.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def notify(state: str) -> None:
    """Send one state to who started us, if that asked for it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    if address[0] == "@":
        # A name that lies in no directory: Linux writes it with a zero byte.
        address = f"\0{address[1:]}"
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one,
    ):
        one.setblocking(False)
        one.sendto(state.encode(), address)
