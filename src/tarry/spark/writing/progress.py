"""Progress: how many batches of a share are in the log, by what a look back shows."""

from __future__ import annotations

from tarry.records.batch import SEQUENCE_HALF, SEQUENCE_MAX
from tarry.spark.writing.effects import LookedBack
from tarry.spark.writing.plan import Plan, Share, SinkRefused


def ordinal_in_log(
    plan: Plan, share: Share, looked: LookedBack, known: int, is_rested: bool
) -> int:
    """Return how many batches of the share are in the log, `known` at least.

    Raises SinkRefused where the log does not tell: what is sent again then could be there twice,
    and what is not sent could be missing.
    """
    if looked.log_end_offset < share.end_offset:
        raise SinkRefused(
            f"{_what(plan, share)} was to be written from offset {share.end_offset} on, and the "
            f"log ends at {looked.log_end_offset} now: an unclean leader took over, and records "
            f"that were acknowledged are lost. {_TO_DO}"
        )
    records_known = sum(batch.count for batch in share.batches[:known])
    if looked.cut_at is not None:
        raise SinkRefused(
            f"{_what(plan, share)} was to be written from offset {share.end_offset} on, and the "
            f"log was cut at offset {looked.cut_at} and written anew from there on: an unclean "
            f"leader took over, and records that were acknowledged are lost. {_TO_DO}"
        )
    count = share.count
    seen_to, last_sequence = 0, -1
    if looked.last_sequence >= 0:
        # Those before it are in one of the two logs.
        end = ((looked.last_sequence - share.first_sequence) & SEQUENCE_MAX) + 1
        if end <= count:
            seen_to, last_sequence = end, looked.last_sequence
    begins_late = looked.log_start_offset > share.end_offset
    for batch in looked.seen.batches:
        first = (batch.base_sequence - share.first_sequence) & SEQUENCE_MAX
        end = ((batch.last_sequence - share.first_sequence) & SEQUENCE_MAX) + 1
        if first >= SEQUENCE_HALF and end <= count:
            # A compaction left only the end of a batch's sequences: they count from its last one.
            first = 0
        if first >= count or batch.producer_epoch != share.producer_epoch:
            continue
        is_open_before = begins_late or looked.seen.has_holes
        if first > max(seen_to, records_known) and not is_open_before:
            raise SinkRefused(
                f"{_what(plan, share)}: record {first} of it is in the log, and those before it "
                f"are not. The directory of the sink or the log was changed by hand. {_TO_DO}"
            )
        if end > seen_to:
            seen_to = end
            last_sequence = batch.last_sequence
    if seen_to <= records_known:
        _check_tells(plan, share, looked, known, is_rested)
        return known
    ordinal = share.ordinal_behind(last_sequence)
    if ordinal is None:
        raise SinkRefused(
            f"{_what(plan, share)}: the log has other batches under producer id "
            f"{share.producer_id}, which belongs to this query alone. {_TO_DO}"
        )
    if ordinal < len(share.batches):
        _check_tells(plan, share, looked, ordinal, is_rested, was_seen=True)
    return ordinal


def _check_tells(
    plan: Plan,
    share: Share,
    looked: LookedBack,
    ordinal: int,
    is_rested: bool,
    was_seen: bool = False,
) -> None:
    """Refuse to go on where batches may have been in the log that it does not have any more."""
    if ordinal >= len(share.batches):
        return
    if looked.log_start_offset > share.end_offset and not was_seen:
        raise SinkRefused(
            f"{_what(plan, share)} was to be written from offset {share.end_offset} on, and the "
            f"log begins at {looked.log_start_offset} now: whether it was written cannot be told "
            f"any more. {_TO_DO}"
        )
    if looked.has_delay and looked.last_sequence < 0 and is_rested:
        raise SinkRefused(
            f"{_what(plan, share)} has waited for long, and the topic delays records: brokers have "
            "forgotten the producer id, by which they would tell whether it waits already. "
            f"{_TO_DO}"
        )
    if looked.seen.has_holes and is_rested:
        raise SinkRefused(
            f"{_what(plan, share)} has waited for long, and the log was compacted meanwhile from "
            f"offset {share.end_offset} on: whether it was written cannot be told any more. "
            f"{_TO_DO}"
        )


_TO_DO = (
    "Look at the topic; then either begin the query with a checkpoint of its own, or write the "
    "rest of the micro-batch by hand and mark its plan as done (the page about exactly once with "
    "Spark says how)"
)


def _what(plan: Plan, share: Share) -> str:
    return f"micro-batch {plan.batch_id} for {share.topic} [{share.partition}]"
