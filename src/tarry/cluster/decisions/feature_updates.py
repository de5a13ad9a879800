"""Update of feature levels by an administrator: all levels of a request change, or none."""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.base import errors
from tarry.base.setting import shown
from tarry.cluster.state.levels import LevelRefused, Release, decide_level
from tarry.cluster.state.records import FeatureLevelChanged, MetadataRecord
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.change import Change

# Kafka's types of an update.
UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
UPGRADE_TYPES: Final = (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)


class LevelWanted(NamedTuple):
    """Level that a feature is to have, and whether it may be lowered for that."""

    name: str
    level: int
    upgrade_type: int


class FeatureUpdate(Change):
    """Update of several feature levels together; `error_code` and `message` describe a refusal."""

    def __init__(self, wanted: list[LevelWanted], release: Release) -> None:
        super().__init__()
        self._wanted = wanted
        self._release = release
        self.error_code = errors.NONE
        self.message: str | None = None

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        self.error_code, self.message = errors.NONE, None
        records: list[MetadataRecord] = []
        for one in self._wanted:
            try:
                records += self._decide_one(view, one)
            except LevelRefused as refusal:
                self.fail(
                    errors.INVALID_UPDATE_VERSION,
                    f"Invalid update version {one.level} for feature {shown(one.name)}. {refusal}",
                )
                return []
        return records

    def _decide_one(self, view: ClusterState, one: LevelWanted) -> list[FeatureLevelChanged]:
        if one.upgrade_type not in UPGRADE_TYPES:
            raise LevelRefused("The controller does not support the given upgrade type.")
        if one.level < 0:
            raise LevelRefused("A feature version cannot be less than 0.")
        current = view.feature_levels.get(one.name, 0)
        is_upgrade = one.upgrade_type == UPGRADE
        if one.level < current and is_upgrade:
            raise LevelRefused(
                "Can't downgrade the version of this feature without setting the upgrade type to "
                "either safe or unsafe downgrade."
            )
        if one.level > current and not is_upgrade:
            raise LevelRefused("Can't downgrade to a newer version.")
        return decide_level(view, one.name, one.level, self._release)

    def fail(self, error_code: int, message: str) -> None:
        """Refuse the whole request."""
        self.error_code, self.message = error_code, message
