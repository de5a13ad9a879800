"""Topics that come into being because a client asked for them: so many a minute and host.

Past the bound a topic is not created; it is unknown for now, as it is in Kafka while the controller
defers it, and its client asks again.  A host is counted as `base/hosts` says, so that neither new
ports nor new client ids help.
"""

from __future__ import annotations

from typing import Final

from tarry.base.hosts import counted_host, host_of
from tarry.base.limits import TOPICS_AUTO_CREATED_PER_MINUTE_MAX
from tarry.broker.request import RequestContext

MINUTE_MS: Final = 60_000

# Hosts remembered at the same time; the one whose minute began longest ago makes room.
HOSTS_MAX: Final = 1_000


class AutoCreations:
    """Counts the topics of each host's minute, which begins with its first one."""

    def __init__(self) -> None:
        # Host to the begin of its minute and its topics in it, the oldest minute first.
        self._minutes: dict[str, tuple[int, int]] = {}

    def admit(self, context: RequestContext, names: list[str]) -> list[str]:
        """Return which of these topics may be created now; of the others the log tells."""
        if not names:
            return names
        now_ms = context.now_ms
        host = counted_host(host_of(context.connection.peer))
        begun_ms, count = self._minutes.get(host, (now_ms, 0))
        if now_ms - begun_ms >= MINUTE_MS:
            begun_ms, count = now_ms, 0
        if not count:
            self._minutes.pop(host, None)
            if len(self._minutes) >= HOSTS_MAX:
                del self._minutes[next(iter(self._minutes))]
        admitted = names[: TOPICS_AUTO_CREATED_PER_MINUTE_MAX - count]
        self._minutes[host] = (begun_ms, count + len(admitted))
        if len(admitted) < len(names):
            context.report(
                f"asking for topics creates at most {TOPICS_AUTO_CREATED_PER_MINUTE_MAX} a minute: "
                f"{len(names) - len(admitted)} are not created now",
                "auto-creation",
            )
        return admitted
