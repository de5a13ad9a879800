"""Support of scheduled records by a broker; Apache Kafka has none.

ApiVersions does not list Tarry's own APIs, and a broker without them would close the connection.
So a client checks whether topics have the setting `delay.enable`.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import COORDINATOR_LOAD_IN_PROGRESS, ERRORS, NOT_ENOUGH_REPLICAS
from tarry.client.core.admin.calls import RESOURCE_TOPIC, DescribeConfigs
from tarry.client.errors import BrokerError, SchedulingUnsupported
from tarry.link.errand import Steps
from tarry.link.errors import ClientError

SETTING: Final = "delay.enable"


class ScheduleSupport:
    """Knowledge whether the brokers of one client support scheduled records."""

    def __init__(self) -> None:
        self._is_known = False

    def check(self, topic: str) -> Steps[None]:
        """Read the settings of a topic once; raise SchedulingUnsupported if they lack
        `delay.enable`, or the error of the topic."""
        if self._is_known:
            return
        call = DescribeConfigs(RESOURCE_TOPIC, topic)
        yield [call]
        if call.error is not None:
            raise call.error
        entries = call.result
        if isinstance(entries, ClientError):
            raise entries
        if all(entry.name != SETTING for entry in entries):
            raise SchedulingUnsupported(
                f"the broker has no scheduled records: topic {topic!r} has no setting {SETTING}"
            )
        self._is_known = True


def may_pass_soon(error: ClientError) -> bool:
    """Return true if a retry may succeed after this error."""
    if not isinstance(error, BrokerError):
        return error.is_retriable
    known = ERRORS.get(error.code)
    is_busy = error.code in (COORDINATOR_LOAD_IN_PROGRESS, NOT_ENOUGH_REPLICAS)
    return is_busy or (known is not None and known.refreshes)
