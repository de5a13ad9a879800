"""Feature levels: which kinds of rows and records every broker of a cluster can read.

A release writes what older ones cannot read only under a *feature level* that is in force.  A level
comes into force by an administrator or with the first use, and only while every registered broker
knows it.  A release that does not know a level in force is refused at its start.  So a cluster of
two releases goes on, and no broker meets a row that it needs and cannot read.

A new feature is one row in `FEATURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import tarry
from tarry.base.setting import shown
from tarry.cluster.state.records import FeatureLevelChanged
from tarry.cluster.state.state import ClusterState

GROUP_CONFIGS: Final = "tarry.group.configs"
SCHEDULED_RECORDS: Final = "tarry.scheduled.records"


class Feature(NamedTuple):
    """Feature that releases may lack.

    `kinds` are the kinds of rows that the feature brings.  `is_used` tells whether the metadata
    hold something of the feature, so that its level must not be lowered.
    """

    name: str
    level_max: int
    kinds: tuple[str, ...]
    is_used: Callable[[ClusterState], bool]


def may_delay(configs: Mapping[str, str]) -> bool:
    """Return whether records of a topic with these settings may wait until they are due.  Each
    replica of such a topic has a companion log, which older releases do not know.
    """
    # If `delay.enable` is false now, records that were parked before may still wait.
    return "delay.enable" in configs


def _has_delayed_topic(state: ClusterState) -> bool:
    return any(may_delay(topic.configs) for topic in state.topics.values())


FEATURES: Final = (
    Feature(GROUP_CONFIGS, 1, ("groups",), lambda state: bool(state.group_configs)),
    Feature(SCHEDULED_RECORDS, 1, (), _has_delayed_topic),
)

# Levels that this release knows, by feature.
LEVELS: Final[Mapping[str, int]] = {feature.name: feature.level_max for feature in FEATURES}


class Release(NamedTuple):
    """Release of Tarry as brokers register it: its name, and the highest level of each feature."""

    name: str = tarry.__version__
    levels: Mapping[str, int] = LEVELS

    @property
    def unknown_kinds(self) -> frozenset[str]:
        """Kinds of rows that came with features which this release does not know."""
        unknown = [feature for feature in FEATURES if feature.name not in self.levels]
        return frozenset(kind for feature in unknown for kind in feature.kinds)


THIS_RELEASE: Final = Release()


class LevelRefused(Exception):
    """A level cannot come into force, or be lowered; the sentence says why and what to do."""


def kinds_of(name: str) -> tuple[str, ...]:
    """Return the kinds of rows that a feature brings."""
    return next((feature.kinds for feature in FEATURES if feature.name == name), ())


def decide_use(view: ClusterState, name: str, release: Release) -> list[FeatureLevelChanged]:
    """Return the record that brings a feature's first level into force; none if a level is in
    force.

    `LevelRefused` if a registered broker does not know the feature.
    """
    if view.feature_levels.get(name, 0) > 0:
        return []
    return decide_level(view, name, 1, release)


def decide_level(
    view: ClusterState, name: str, level: int, release: Release
) -> list[FeatureLevelChanged]:
    """Return the record that brings a level into force; none if it is.  Raises `LevelRefused`."""
    current = view.feature_levels.get(name, 0)
    if level == current:
        return []
    if level > release.levels.get(name, 0):
        raise LevelRefused(_beyond(name, release))
    if level > current:
        _refuse_where_unknown(view, name, level)
    elif any(feature.name == name and feature.is_used(view) for feature in FEATURES):
        raise LevelRefused(
            f"the metadata hold what {name} has brought: remove that first, it would be lost"
        )
    return [FeatureLevelChanged(name=name, level=level)]


def _beyond(name: str, release: Release) -> str:
    known = release.levels.get(name)
    knows = f"does not know {shown(name)}" if known is None else f"knows {name} up to level {known}"
    return f"the broker that was asked runs {_release_text(release.name)}, which {knows}"


def _refuse_where_unknown(view: ClusterState, name: str, level: int) -> None:
    lacking = [
        f"broker {broker_id} ({_release_text(broker.release)})"
        for broker_id, broker in sorted(view.brokers.items())
        if broker.levels.get(name, 0) < level
    ]
    if lacking:
        does, them = ("does", "it") if len(lacking) == 1 else ("do", "them")
        raise LevelRefused(
            f"{name} at level {level} is not known to every registered broker: "
            f"{', '.join(lacking)} {does} not know it; upgrade {them}, or take {them} out of the "
            "cluster (tarry brokers remove)"
        )


def _release_text(name: str) -> str:
    return f"Tarry {name}" if name else "an unknown release"


def why_not_known(in_force: Iterable[tuple[str, int]], levels: Mapping[str, int]) -> str:
    """Return why a release that knows `levels` may not run with the levels in force; "" if it
    may.
    """
    for name, level in in_force:
        known = levels.get(name, 0)
        if level > known:
            reads = f"knows {name} up to level {known}" if known else f"does not know {name}"
            return (
                f"the metadata use {name} at level {level}, and this release of Tarry {reads}: "
                "start a newer release, or have one lower the level first (tarry cluster features "
                f"--downgrade {name}={known})"
            )
    return ""
