"""Notices to a service manager: that the broker serves, and that it stops.

systemd names a datagram socket in NOTIFY_SOCKET (sd_notify(3)).  Without that variable nothing is
sent, and a failed send is ignored.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def notify(state: str) -> None:
    """Send one state to the service manager, if it has asked for notices."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    if address[0] == "@":
        # An abstract socket name, which Linux writes with a zero byte.
        address = f"\0{address[1:]}"
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one,
    ):
        one.setblocking(False)
        one.sendto(state.encode(), address)
