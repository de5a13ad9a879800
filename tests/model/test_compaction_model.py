"""Compaction against the last write of each key: any writes, any steps, any crash.

The scene checks after every step what readers get: each record as it was written, the last of every
key, nothing twice below the cleaned offset, the producers that the log must still know.
"""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support.compaction_scene import CompactionScene, KeyValue

KEYS = st.one_of(
    st.none(), st.integers(0, 5).map(lambda number: b"k%d" % number), st.just(b"k" * 50)
)
RECORDS = st.lists(
    st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=60))), min_size=1, max_size=5
)


class CompactionModel(RuleBasedStateMachine):
    """One compacted log."""

    scene: CompactionScene

    @initialize(
        seed=st.integers(0, 99),
        segment_bytes=st.integers(200, 2_000),
        entries=st.integers(1, 30),
        lag_ms=st.sampled_from([0, 0, 30, 800]),
    )
    def begin(self, seed: int, segment_bytes: int, entries: int, lag_ms: int) -> None:
        self.scene = CompactionScene(seed)
        self.scene.config.min_compaction_lag_ms = lag_ms
        self.scene.config.segment_bytes = segment_bytes
        self.scene.buffer_bytes = 160 * entries
        self.time_has_passed = False

    @rule(
        records=RECORDS,
        codec=st.integers(0, 4),
        producer_id=st.integers(-1, 3),
        age_ms=st.integers(0, 50),
    )
    def append(self, records: list[KeyValue], codec: int, producer_id: int, age_ms: int) -> None:
        self.scene.append(
            *records,
            codec=codec,
            producer_id=producer_id,
            timestamp=self.scene.now_wall_ms - age_ms,
        )

    @rule()
    def roll(self) -> None:
        self.scene.roll()

    @rule(units=st.integers(1, 3_000))
    def compact(self, units: int) -> None:
        self.scene.flush()
        self.scene.compact(units=units)

    @rule(passed_ms=st.integers(1, 1_500))
    def pass_time(self, passed_ms: int) -> None:
        self.scene.now_wall_ms += passed_ms
        self.time_has_passed = True

    @rule(is_power_lost=st.booleans())
    def crash(self, is_power_lost: bool) -> None:
        scene = self.scene
        scene.flush()
        if is_power_lost:
            scene.disk.crash()
        else:
            scene.disk.kill()
        scene.open()

    @invariant()
    def readers_get_what_was_written(self) -> None:
        if not hasattr(self, "scene"):
            return
        scene = self.scene
        scene.log.write()
        scene.producers.settle()
        scene.check_records()
        scene.check_last_values(tombstones_may_be_gone=self.time_has_passed)
        scene.check_is_compact()
        scene.check_young_records()
        scene.check_producers()


CompactionModel.TestCase.settings = settings(max_examples=100, stateful_step_count=30)
TestCompaction = CompactionModel.TestCase
