"""Records of the rows of settings and of feature levels.

Such a row has all settings of its broker or group.  So its record replaces the settings of the row
before, which need not be known.
"""

from __future__ import annotations

from typing import Final

from tarry.cluster.rows.rows import (
    AnyRow,
    ConfigsRow,
    FeatureRow,
    GroupConfigsRow,
    broker_id_of,
    group_id_of,
)
from tarry.cluster.state.records import (
    BrokerConfigChanged,
    FeatureLevelChanged,
    GroupConfigChanged,
    MetadataRecord,
)

# Order of kinds in which the removed rows of a revision become records: the level of a feature ends
# after the rows that need it.
SETTING_KINDS: Final = ("configs", "groups", "features")


def setting_record(kind: str, key: bytes, name: str, row: AnyRow | None) -> MetadataRecord:
    """Return the record of a row, or of its removal if `row` is None; `name` is the end of the
    key.
    """
    if kind == "features":
        level = row.level if isinstance(row, FeatureRow) else 0
        return FeatureLevelChanged(name=name, level=level)
    configs = dict(row.configs) if isinstance(row, ConfigsRow | GroupConfigsRow) else {}
    if kind == "groups":
        return GroupConfigChanged(group_id=group_id_of(name), configs=configs)
    return BrokerConfigChanged(broker_id=broker_id_of(key, name), configs=configs)
