"""The configuration of a log out of the rows of topic settings."""

from __future__ import annotations

import pytest

from tarry.base.setting import HONOURED, read_table
from tarry.base.settings import Settings
from tarry.base.topic_settings_table import HONOURED_TABLE, OURS_TABLE
from tarry.cluster.configs.topic_settings import log_config
from tarry.log.config import LogConfig

ROWS = {row.key: row for row in read_table(HONOURED_TABLE + OURS_TABLE, HONOURED)}

# Another value than the default for every key.
OTHER_VALUES = {
    "cleanup.policy": "compact",
    "compression.gzip.level": "7",
    "compression.lz4.level": "3",
    "compression.type": "zstd",
    "compression.zstd.level": "5",
    "delay.enable": "true",
    "delay.pending.max.bytes": "1000",
    "delay.replace": "key",
    "delay.source": "timestamp",
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.25",
    "unclean.leader.election.enable": "true",
    **dict.fromkeys(
        (
            row.key
            for row in ROWS.values()
            if row.type in ("int", "long") and not row.key.startswith("compression")
        ),
        "2000000",
    ),
}


class Largest:
    """A draw of the largest number."""

    def randrange(self, stop: int, /) -> int:
        return stop - 1

    def getrandbits(self, bits: int, /) -> int:
        return (1 << bits) - 1


def facts(config: LogConfig) -> dict[str, object]:
    names = [name for name in dir(config) if not name.startswith("_") and name != "take_over"]
    return {name: getattr(config, name) for name in names}


def test_every_honoured_key_has_another_value_here() -> None:
    assert sorted(OTHER_VALUES) == sorted(ROWS)


# Of the log's owner, not of the log; and what counts beside delay.enable alone.
ELSEWHERE = ("compression", "unclean", "delay.source")


@pytest.mark.parametrize("key", [key for key in ROWS if not key.startswith(ELSEWHERE)])
def test_each_key_changes_the_config(key: str) -> None:
    changed = log_config({key: OTHER_VALUES[key]}, Settings(), Largest())

    assert facts(changed) != facts(LogConfig())


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_the_level_that_counts_is_that_of_the_codec(codec: str) -> None:
    config = log_config({**OTHER_VALUES, "compression.type": codec}, Settings())

    assert config.compression_level == int(OTHER_VALUES[f"compression.{codec}.level"])
