"""Plans of micro-batches: their text, what they go on with, what they refuse."""

import msgspec
import pytest

from tarry.base.errors import CorruptData
from tarry.client.core.publisher.look_back import SeenBatch, SeenRange
from tarry.records.batch import SEQUENCE_MAX
from tarry.spark.writing.effects import LookedBack
from tarry.spark.writing.plan import (
    EXPIRATION_PARTS,
    Freezing,
    Noted,
    PlannedBatch,
    PlannedFile,
    Share,
    SinkRefused,
    TaskOutput,
    TaskPart,
    amended,
    decode_plan,
    encode_plan,
    is_rested,
    make_plan,
)
from tarry.spark.writing.progress import ordinal_in_log

HOUR_MS = 3_600_000


def output(name, **counts):
    """A task's file; `a0=[2, 3]` are two batches for partition 0 of topic a."""
    parts = tuple(
        TaskPart(place[0], int(place[1:]), tuple(PlannedBatch(0, 0, 9, one) for one in of_place))
        for place, of_place in counts.items()
    )
    return TaskOutput(PlannedFile(name, 9, 1), parts)


def plan_of(*outputs, before=None, goes_on=None, ends=None, topic_ids=None, cluster_id="c"):
    places = {(part.topic, part.partition): 0 for one in outputs for part in one.parts}
    ids = {topic: f"id-{topic}" for topic, _ in places}
    noted = Noted({**places, **(ends or {})}, topic_ids or ids, cluster_id)
    batch_id = 0 if before is None else before.batch_id + 1
    return make_plan(Freezing(batch_id, "q", outputs, 1_000, (7, 0), goes_on, before), noted)


def test_a_plan_reads_as_it_was_written():
    plan = plan_of(output("f", a0=[2, 3], b1=[1]))

    assert decode_plan(encode_plan(plan), "plan") == plan


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"version": 1}', b'{"version": 2}'])
def test_a_damaged_plan_is_told_by_its_name(text):
    with pytest.raises(CorruptData, match="plan-7"):
        decode_plan(text, "plan-7")


def test_batches_stand_in_the_order_of_the_tasks():
    plan = plan_of(output("f", a0=[2]), TaskOutput(), output("g", a0=[3], a1=[4]))

    assert [file.name for file in plan.files] == ["f", "g"]
    share = plan.share_of(("a", 0))
    assert [(batch.file, batch.count) for batch in share.batches] == [(0, 2), (1, 3)]
    assert [share.sequence_of(ordinal) for ordinal in range(3)] == [0, 2, 5]
    assert plan.record_count == 9


def test_sequences_run_on_over_plans_and_round_their_end():
    first = plan_of(output("f", a0=[5], a1=[2]))
    near = msgspec.structs.replace(first, sequences={"a": {0: SEQUENCE_MAX - 1, 1: 2}})

    plan = plan_of(output("g", a0=[4]), before=near, goes_on=near)

    share = plan.share_of(("a", 0))
    assert share.first_sequence == SEQUENCE_MAX - 1
    assert plan.sequences == {"a": {0: 2, 1: 2}}
    assert share.ordinal_behind(1) == 1


def test_a_new_id_begins_at_nothing():
    before = plan_of(output("f", a0=[5]))

    plan = plan_of(output("g", a0=[4]), before=before)

    assert plan.share_of(("a", 0)).first_sequence == 0
    assert plan.sequences == {"a": {0: 4}}


def test_another_cluster_or_topic_is_refused():
    before = plan_of(output("f", a0=[5]))

    with pytest.raises(SinkRefused, match=r"belongs to cluster c, and .* cluster d"):
        plan_of(output("g", a0=[4]), before=before, cluster_id="d")
    with pytest.raises(SinkRefused, match="'a' was deleted and made anew"):
        plan_of(output("g", a0=[4]), before=before, topic_ids={"a": "id-new"})


def test_topics_of_earlier_plans_are_remembered():
    before = plan_of(output("f", a0=[5]))
    between = plan_of(output("g", b0=[1]), before=before)

    with pytest.raises(SinkRefused, match="made anew"):
        plan_of(output("h", a0=[1]), before=between, topic_ids={"a": "id-new"})


def test_an_id_rests_after_a_tenth_of_its_expiration():
    plan = plan_of(output("f", a0=[5]))

    assert not is_rested(plan, plan.noted_ms + 2 * HOUR_MS, 24 * HOUR_MS)
    assert is_rested(plan, plan.noted_ms + 3 * HOUR_MS, 24 * HOUR_MS)
    # A clock that went back.
    assert is_rested(plan, plan.noted_ms - 1, 24 * HOUR_MS)
    # To the millisecond: at the bound an id is still known for several times as long.
    bound_ms = 24 * HOUR_MS // EXPIRATION_PARTS
    assert not is_rested(plan, plan.noted_ms, 24 * HOUR_MS)
    assert not is_rested(plan, plan.noted_ms + bound_ms, 24 * HOUR_MS)
    assert is_rested(plan, plan.noted_ms + bound_ms + 1, 24 * HOUR_MS)


def test_an_amended_share_has_what_is_left_under_a_new_id():
    plan = plan_of(output("f", a0=[2, 3], a1=[4]))

    changed = amended(plan, (8, 0), {("a", 0): 1}, Noted({("a", 0): 40}, {}, "c"))

    share = changed.share_of(("a", 0))
    assert (share.producer_id, share.first_sequence, share.end_offset) == (8, 0, 40)
    assert [batch.count for batch in share.batches] == [3]
    assert changed.share_of(("a", 1)) == plan.share_of(("a", 1))
    assert changed.amendment == 1


# --- What the log tells

SHARE = Share("a", 0, 7, 0, 100, 50, tuple(PlannedBatch(0, 0, 9, one) for one in (2, 3, 5)))
PLAN = plan_of(output("f", a0=[2, 3, 5]))


def looked(*batches, start=0, end=70, has_holes=False):
    """A view of the log; each batch is its first and last sequence."""
    seen = tuple(SeenBatch(50, 50, 0, first, last) for first, last in batches)
    return LookedBack(SeenRange(end, seen, has_holes), start, end)


def ordinal(view, known=0, is_late=False):
    return ordinal_in_log(PLAN, SHARE, view, known, is_late)


def test_the_log_tells_how_many_batches_it_has():
    assert ordinal(looked()) == 0
    assert ordinal(looked((100, 101))) == 1
    assert ordinal(looked((100, 101), (102, 104))) == 2
    assert ordinal(looked((100, 101), (102, 104), (105, 109))) == 3


def delayed(view, last_sequence):
    return view._replace(has_delay=True, last_sequence=last_sequence)


def test_batches_that_wait_beside_the_log_are_known_by_the_last_sequence():
    assert ordinal(delayed(looked(), -1)) == 0
    assert ordinal(delayed(looked(), 104)) == 2
    assert ordinal(delayed(looked(), 109)) == 3
    # Some of them wait, others do not.
    assert ordinal(delayed(looked((102, 104)), 109)) == 3
    assert ordinal(delayed(looked((105, 109)), 109)) == 3
    # An earlier plan of the producer.
    assert ordinal(delayed(looked(), 99)) == 0


def test_a_last_sequence_that_no_batch_of_the_plan_ends_with_is_refused():
    with pytest.raises(SinkRefused, match="other batches under producer id 7"):
        ordinal(delayed(looked(), 103))


def test_a_producer_that_may_be_forgotten_does_not_tell_what_waits():
    with pytest.raises(SinkRefused, match="brokers have forgotten the producer id"):
        ordinal(delayed(looked(), -1), is_late=True)
    assert ordinal(delayed(looked(), 101), is_late=True) == 1


def test_batches_of_other_plans_count_for_nothing():
    assert ordinal(looked((90, 99))) == 0
    assert ordinal(looked((100, 101), (110, 120))) == 1


def test_what_was_acknowledged_is_not_sent_again_because_a_view_is_old():
    assert ordinal(looked((100, 101)), known=2) == 2


def test_a_log_that_lost_its_end_is_refused():
    with pytest.raises(SinkRefused, match="from offset 50 on, and the log ends at 49"):
        ordinal(looked(end=49))


def test_a_log_that_was_cut_and_has_grown_past_the_plan_is_refused():
    with pytest.raises(SinkRefused, match="from offset 50 on, and the log was cut at offset 40"):
        ordinal(looked((100, 101))._replace(cut_at=40), known=2)


def test_a_log_that_begins_later_is_refused_unless_it_tells():
    with pytest.raises(SinkRefused, match="from offset 50 on, and the log begins at 60"):
        ordinal(looked(start=60))
    assert ordinal(looked((102, 104), start=60)) == 2
    assert ordinal(looked(start=60), known=3) == 3


def test_a_compacted_log_is_trusted_while_brokers_know_the_producer():
    assert ordinal(looked((102, 104), has_holes=True)) == 2
    with pytest.raises(SinkRefused, match="compacted meanwhile from offset 50 on"):
        ordinal(looked((102, 104), has_holes=True), is_late=True)
    assert ordinal(looked((105, 109), has_holes=True), is_late=True) == 3


def test_a_gap_in_the_log_is_refused():
    with pytest.raises(SinkRefused, match="record 2 of it is in the log, and those before"):
        ordinal(looked((102, 104)))


def test_a_batch_of_somebody_else_is_refused():
    with pytest.raises(SinkRefused, match="other batches under producer id 7"):
        ordinal(looked((100, 102)))
