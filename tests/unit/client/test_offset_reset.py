"""auto.offset.reset: where a partition begins, so long ago too."""

from __future__ import annotations

import re

import pytest
from tests.support.client.consumer_scene import T0, consumer, poll, reading
from tests.support.client.group_member import GroupScene
from tests.support.client.scripted_cluster import WALL_MS, ScriptedCluster

from tarry.base.errors import InvalidSetting
from tarry.client.offset_reset import parse_offset_reset
from tarry.client.settings import ConsumerSettings

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("PT1H", HOUR_MS),
        ("P7D", 7 * 24 * HOUR_MS),
        ("P1DT2H30M", 26 * HOUR_MS + 1_800_000),
        ("PT0.25S", 250),
        ("PT90S", 90_000),
        ("pt5m", 300_000),
        ("PT0S", 0),
    ],
)
def test_a_duration_is_read_as_java_writes_it(text: str, duration_ms: int) -> None:
    assert parse_offset_reset(f"by_duration:{text}").duration_ms == duration_ms


@pytest.mark.parametrize(
    "text",
    ["by_duration", "by_duration:", "by_duration:1h", "by_duration:P", "by_duration:PT",
     "by_duration:P1DT", "by_duration:P1Y", "by_duration:PT-1H", "by_duration:PT1H2"],
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(InvalidSetting, match="such as by_duration:PT1H or by_duration:P7D"):
        ConsumerSettings({"auto.offset.reset": text})


def test_a_partition_begins_so_long_ago_by_the_calendar() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    now_ms = WALL_MS + cluster.now_ms
    log.add(b"old", timestamp=now_ms - 2 * HOUR_MS)
    log.add(b"young", timestamp=now_ms - HOUR_MS // 2)
    core = consumer(cluster, auto_offset_reset="by_duration:PT1H")

    core.assign([T0])

    assert poll(cluster) == [b"young"]


def test_a_partition_without_young_records_begins_at_its_end() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"old", timestamp=1_000)
    core = consumer(cluster, auto_offset_reset="by_duration:PT1H")
    core.assign([T0])
    cluster.run_for(1_000)

    log.add(b"later", timestamp=WALL_MS)

    assert poll(cluster) == [b"later"]


def test_an_offset_that_is_gone_is_reset_by_duration_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.start_offset = log.end_offset = 5
    log.add(b"old", timestamp=1_000)
    log.add(b"young", timestamp=WALL_MS)
    reading(cluster, offset=2, auto_offset_reset="by_duration:P1D")

    assert poll(cluster) == [b"young"]
    assert "auto.offset.reset=by_duration:P1D says, 3 records are gone" in caplog.text


@pytest.mark.parametrize("excludes", [True, False])
def test_a_pattern_finds_internal_topics_only_if_it_may(excludes: bool) -> None:
    scene = GroupScene(exclude_internal_topics=excludes)
    scene.cluster.topic("__consumer_offsets").is_internal = True

    scene.core.subscribe(re.compile("^(t|__.*)$"))
    scene.poll(1_000)

    found = ["t"] if excludes else ["__consumer_offsets", "t"]
    assert scene.core.topics.subscribed == found
