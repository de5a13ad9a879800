"""Settings of groups of the newer kinds, which Tarry keeps before it has such groups.

Apache Kafka describes them for any name, with its defaults where nobody has set one.  Programs
that look at a group before they act on it expect that.  The bounds are those that Kafka's brokers
have unless somebody changes them.  The notation of the table is that of `base/setting`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tarry.base.errors import InvalidSetting
from tarry.base.setting import WITHOUT_EFFECT, Setting, read_table, shown, value_text
from tarry.base.spelling import Spelling

_TABLE: Final = """
consumer.assignment.interval.ms    int     1000        0..15000 \
behind=group.consumer.assignment.interval.ms
    For groups of the new consumer protocol, which is not there yet.
consumer.heartbeat.interval.ms     int     5000        5000..15000 \
behind=group.consumer.heartbeat.interval.ms
    For groups of the new consumer protocol, which is not there yet.
consumer.session.timeout.ms        int     45000       45000..60000 \
behind=group.consumer.session.timeout.ms
    For groups of the new consumer protocol, which is not there yet.
errors.deadletterqueue.copy.record.enable boolean false
    For share groups, which are not there yet.
errors.deadletterqueue.topic.name  string  ""
    For share groups, which are not there yet.
share.assignment.interval.ms       int     1000        0..15000 \
behind=group.share.assignment.interval.ms
    For share groups, which are not there yet.
share.auto.offset.reset            string  latest
    For share groups, which are not there yet.
share.delivery.count.limit         int     5           2..10 behind=group.share.delivery.count.limit
    For share groups, which are not there yet.
share.heartbeat.interval.ms        int     5000        5000..15000 \
behind=group.share.heartbeat.interval.ms
    For share groups, which are not there yet.
share.isolation.level              string  read_uncommitted read_committed|read_uncommitted
    For share groups, which are not there yet.
share.partition.max.record.locks   int     2000        100..4000 \
behind=group.share.partition.max.record.locks
    For share groups, which are not there yet.
share.record.lock.duration.ms      int     30000       15000..60000 \
behind=group.share.record.lock.duration.ms
    For share groups, which are not there yet.
share.renew.acknowledge.enable     boolean true
    For share groups, which are not there yet.
share.session.timeout.ms           int     45000       45000..60000 \
behind=group.share.session.timeout.ms
    For share groups, which are not there yet.
streams.assignment.interval.ms     int     1000        0..15000 \
behind=group.streams.assignment.interval.ms
    For streams groups, which are not there yet.
streams.assignor.name              string  sticky      sticky behind=group.streams.assignors
    For streams groups, which are not there yet.
streams.heartbeat.interval.ms      int     5000        5000..15000 \
behind=group.streams.heartbeat.interval.ms
    For streams groups, which are not there yet.
streams.initial.rebalance.delay.ms int     3000        0.. \
behind=group.streams.initial.rebalance.delay.ms
    For streams groups, which are not there yet.
streams.num.standby.replicas       int     0           0..2 \
behind=group.streams.num.standby.replicas
    For streams groups, which are not there yet.
streams.rack.aware.assignment.tags list    "" behind=group.streams.rack.aware.assignment.tags
    For streams groups, which are not there yet.
streams.session.timeout.ms         int     45000       45000..60000 \
behind=group.streams.session.timeout.ms
    For streams groups, which are not there yet.
"""

GROUP_SETTINGS: Final[dict[str, Setting]] = {
    row.key: row for row in read_table(_TABLE, WITHOUT_EFFECT)
}

_SPELLING: Final = Spelling(GROUP_SETTINGS)

# Form of a duration that Kafka accepts, which is that of Java's Duration.parse.
_DURATION: Final = re.compile(
    r"by_duration:(?i:P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+([.,][0-9]{0,9})?S)?)?)",
    re.ASCII,
)
_RESET: Final = "share.auto.offset.reset"
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_TAGS: Final = "streams.rack.aware.assignment.tags"


def checked_group_configs(configs: Mapping[str, str]) -> dict[str, str]:
    """Check a group's settings and return them as they are stored; raise `InvalidSetting` if one is
    invalid.
    """
    return {key: _checked(key, configs[key]) for key in sorted(configs)}


def _checked(key: str, text: str) -> str:
    row = GROUP_SETTINGS.get(key)
    if row is None:
        near = _SPELLING.near(key)
        hint = f"; did you mean {near}?" if near else ""
        raise InvalidSetting(f"there is no setting {shown(key)} of a group{hint}")
    kept = value_text(row.parse(text)) or ""
    fault = _fault(key, text.strip())
    if fault:
        raise InvalidSetting(f"{key}={shown(text)}: {fault}")
    return kept


def _fault(key: str, text: str) -> str:
    if key == _RESET and text not in ("earliest", "latest") and _DURATION.fullmatch(text) is None:
        return "it must be earliest, latest or by_duration:DURATION, as by_duration:PT1H"
    if key == _DEAD_LETTERS and text.startswith("__"):
        return "a topic of the cluster's own is no dead-letter queue"
    if key == _TAGS and text:
        tags = [tag.strip() for tag in text.split(",")]
        if "" in tags or len(dict.fromkeys(tags)) < len(tags):
            return "a tag is empty, or named twice"
    return ""
