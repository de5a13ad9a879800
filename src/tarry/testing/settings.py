"""Settings of brokers for tests, and how a test writes settings and times."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

# Settings in which tests differ from servers: groups begin at once, sessions may be short, and
# records are not flushed since they are not kept after the test.
TEST_SETTINGS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "flush.policy": "os",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.num.partitions": "1",
}

# Client id of a fixture's own helpers: faults do not affect clients with this id.
HELPER_ID: Final = "tarry-testing"

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


def texts_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings as texts by Kafka's keys; `retention_ms` is `retention.ms`."""
    return {key.replace("_", "."): _text(value) for key, value in settings.items()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def duration_ms(duration: str | float) -> int:
    """Return the milliseconds of `"500ms"`, `"45s"`, `"1.5h"`, `"7d"`, or of a number of seconds.

    ValueError with what can be written for anything else, and for a time that is not positive.
    """
    seconds = math.nan
    if isinstance(duration, str):
        matched = _TIME.fullmatch(duration.strip())
        if matched is not None and matched[2] in _UNITS_S:
            seconds = float(matched[1]) * _UNITS_S[matched[2]]
    else:
        seconds = float(duration)
    if not 0 < seconds < math.inf:
        raise ValueError(
            f"{duration!r} is no time to move on by: write '500ms', '45s', '5m', '1h', '7d', or a "
            "positive number of seconds"
        )
    return round(seconds * 1000)
