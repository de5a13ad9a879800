"""Creation of topics because a client asked for their metadata: so many a minute for each host.

Beyond the bound a topic is not created.  It stays unknown for now, as in Kafka while the controller
defers the creation, and the client asks again.  Hosts are counted as `base/hosts` says, so neither
new ports nor new client ids help a client around the bound.
"""

from __future__ import annotations

from typing import Final

from tarry.base.hosts import counted_host, host_of
from tarry.base.limits import TOPICS_AUTO_CREATED_PER_MINUTE_MAX
from tarry.broker.request import RequestContext

MINUTE_MS: Final = 60_000

# Number of hosts that are remembered; the host whose minute began longest ago is dropped first.
HOSTS_MAX: Final = 1_000


class AutoCreations:
    """Counter of the topics that each host creates in a minute; a host's minute begins with a
    topic.
    """

    def __init__(self) -> None:
        # Beginning of each host's minute in ms, and number of topics in it; the oldest minute comes
        # first.
        self._minutes: dict[str, tuple[int, int]] = {}

    def admit(self, context: RequestContext, names: list[str]) -> list[str]:
        """Return the topics that may be created now; the log names how many others are refused."""
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
