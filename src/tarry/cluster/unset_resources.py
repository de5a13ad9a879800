"""Settings of resources that Tarry has nothing for: groups of newer kinds, client metrics.

Apache Kafka describes them for any name, with its defaults where nobody has set one.  Programs
that look at a group before they act on it expect that; here they cannot be changed.  The notation
of the tables is that of `base/setting`.
"""

from __future__ import annotations

from typing import Final

from tarry.base.setting import DEFAULT_ONLY, Setting, read_table

GROUP_TABLE: Final = """
consumer.heartbeat.interval.ms     int     5000
    For groups of the new consumer protocol, which is not there yet.
consumer.session.timeout.ms        int     45000
    For groups of the new consumer protocol, which is not there yet.
share.auto.offset.reset            string  latest
    For share groups, which are not there yet.
share.heartbeat.interval.ms        int     5000
    For share groups, which are not there yet.
share.isolation.level              string  read_uncommitted
    For share groups, which are not there yet.
share.record.lock.duration.ms      int     30000
    For share groups, which are not there yet.
share.session.timeout.ms           int     45000
    For share groups, which are not there yet.
streams.heartbeat.interval.ms      int     5000
    For streams groups, which are not there yet.
streams.num.standby.replicas       int     0
    For streams groups, which are not there yet.
streams.session.timeout.ms         int     45000
    For streams groups, which are not there yet.
"""

CLIENT_METRICS_TABLE: Final = """
interval.ms                        int     300000
    Client metrics are not collected.
match                              list    ""
    Client metrics are not collected.
metrics                            list    ""
    Client metrics are not collected.
"""

GROUP_SETTINGS: Final[tuple[Setting, ...]] = tuple(read_table(GROUP_TABLE, DEFAULT_ONLY))
CLIENT_METRICS_SETTINGS: Final[tuple[Setting, ...]] = tuple(
    read_table(CLIENT_METRICS_TABLE, DEFAULT_ONLY)
)
