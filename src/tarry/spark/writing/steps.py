"""Steps of the sink: from the files of a micro-batch's tasks to its records in the topics, once.

    freeze       a plan, durable, made if there is none and its files are seen; one that is there
                 counts
    publish      the plan's batches, in its order, under its id and sequences
    mark         the plan is done, durable; then the files go

Two drivers may be at it at the same time, and either may die or sleep between any two effects.  A
send whose outcome is not clear is never repeated before the log was read back: of a batch that is
there nothing more is sent, and one that is not there cannot be skipped, since a partition has one
batch under way at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tarry.base.ids import TopicPartition
from tarry.client.core.publisher.send import ACCEPTED, FORGOTTEN, REFUSED, SendOutcome
from tarry.link.errors import ClientError
from tarry.spark.writing.effects import (
    CreatePlan,
    FindLacking,
    LookBack,
    LookedBack,
    MarkDone,
    NewProducer,
    NoteEnds,
    Now,
    PauseSending,
    ReadNewest,
    ReadPlan,
    RemoveFiles,
    SendRound,
    Steps,
    ask,
)
from tarry.spark.writing.plan import (
    EXPIRATION_PARTS,
    Freezing,
    Plan,
    SinkInterrupted,
    SinkRefused,
    TaskOutput,
    amended,
    is_rested,
    make_plan,
    places_of,
)
from tarry.spark.writing.progress import ordinal_in_log


class SinkSteps:
    """Steps of one query's sink; `expiration_ms` is the cluster's `producer.id.expiration.ms`."""

    def __init__(self, query_id: str, expiration_ms: int) -> None:
        self.query_id = query_id
        self.expiration_ms = expiration_ms

    def commit(self, batch_id: int, outputs: tuple[TaskOutput, ...]) -> Steps[Plan]:
        """Bring a micro-batch to its end; return the plan that counted."""
        stored = yield from ask(ReadPlan(batch_id))
        if stored is None:
            plan, is_fresh = yield from self._freeze(batch_id, outputs)
        else:
            plan, is_fresh = stored.plan, False
        kept = {file.name for file in plan.files}
        dropped = [one.file.name for one in outputs if one.file and one.file.name not in kept]
        if dropped:
            yield from ask(RemoveFiles(dropped))
        if stored is not None and stored.is_done:
            yield from ask(RemoveFiles(sorted(kept)))
            return plan
        yield from self.finish(plan, is_fresh)
        return plan

    def finish(self, plan: Plan, is_fresh: bool) -> Steps[None]:
        """Publish, mark, remove: what is left to do for a plan."""
        yield from self.publish(plan, is_fresh)
        yield from ask(MarkDone(plan))
        yield from ask(RemoveFiles([file.name for file in plan.files]))

    # --- Freeze

    def _freeze(self, batch_id: int, outputs: tuple[TaskOutput, ...]) -> Steps[tuple[Plan, bool]]:
        """Return the plan that counts, and whether it is ours."""
        newest = yield from ask(ReadNewest())
        if newest is not None and not newest.is_done and newest.plan.batch_id < batch_id:
            yield from self.finish(newest.plan, False)
        before = newest.plan if newest is not None else None
        self._check_newest(batch_id, before)
        plan = yield from self._make_plan(batch_id, outputs, before)
        yield from self._check_files(plan)
        is_ours = yield from ask(CreatePlan(plan))
        # An old plan that was removed long ago would have let ours in.
        newest = yield from ask(ReadNewest())
        self._check_newest(batch_id, newest.plan if newest is not None else None)
        if is_ours:
            return plan, True
        stored = yield from ask(ReadPlan(batch_id))
        assert stored is not None
        return stored.plan, False

    def _check_files(self, plan: Plan) -> Steps[None]:
        """Freeze nothing that cannot be sent: a plan counts for ever, and names its files."""
        lacking = yield from ask(FindLacking(list(plan.files)))
        if lacking:
            # Whoever came late lacks what another driver has removed.
            newest = yield from ask(ReadNewest())
            self._check_newest(plan.batch_id, newest.plan if newest is not None else None)
            raise SinkInterrupted(
                f"micro-batch {plan.batch_id} was not frozen: a task wrote {lacking[0]}, and the "
                "driver does not see it there: do all workers share that directory with the "
                "driver? Mount it on each, and start the query again"
            )

    def _check_newest(self, batch_id: int, newest: Plan | None) -> None:
        if newest is not None and newest.batch_id > batch_id:
            raise SinkRefused(
                f"micro-batch {batch_id} comes late: the sink is at micro-batch {newest.batch_id} "
                "already. Another driver runs this query on the same checkpoint; end one of the two"
            )

    def _make_plan(
        self, batch_id: int, outputs: tuple[TaskOutput, ...], before: Plan | None
    ) -> Steps[Plan]:
        now_ms = yield from ask(Now())
        noted = yield from ask(NoteEnds(places_of(outputs)))
        goes_on = before
        if before is not None and (
            before.amendment > 0 or is_rested(before, now_ms, self.expiration_ms)
        ):
            goes_on = None
        if goes_on is None:
            producer = yield from ask(NewProducer())
        else:
            producer = goes_on.producer_id, goes_on.producer_epoch
        freezing = Freezing(batch_id, self.query_id, outputs, now_ms, producer, goes_on, before)
        return make_plan(freezing, noted)

    # --- Publish

    def publish(self, plan: Plan, is_fresh: bool) -> Steps[None]:
        """Send what is not in the log yet, until all is."""
        left = {share.place: 0 for share in plan.shares if share.batches}
        looked_ms = plan.noted_ms
        failures = 0
        looked: Mapping[TopicPartition, LookedBack] = {}
        if not is_fresh:
            looked_ms, looked, left = yield from self._look_back(plan, left, looked)
        while left:
            not_after_ms = looked_ms + self.expiration_ms // EXPIRATION_PARTS
            sent = yield from ask(SendRound(plan, left, not_after_ms))
            troubled = self._take(plan, sent.outcomes, left)
            if not troubled and not sent.is_late and not sent.are_files_gone:
                failures = 0
                continue
            stored = yield from ask(ReadPlan(plan.batch_id))
            if stored is None:
                raise SinkRefused(
                    f"the plan of micro-batch {plan.batch_id} is gone from the directory of the "
                    "sink while it was written: another driver runs this query on the same "
                    "checkpoint, or the directory was changed by hand"
                )
            if stored.is_done:
                # Another driver came to the end.
                return
            if sent.are_files_gone:
                raise SinkRefused(
                    f"micro-batch {plan.batch_id} is frozen and not written to its end, and files "
                    "that its plan names are missing or damaged in the directory of the sink: "
                    "bring them back, or begin the query with a checkpoint of its own"
                )
            if stored.plan.amendment > plan.amendment:
                yield from self.publish(stored.plan, False)
                return
            ordinals = dict(left)
            # From where the last one ended: a look at all of it may take so long that nothing may
            # be sent after it.
            looked_ms, looked, left = yield from self._look_back(plan, left, looked)
            forgotten = [
                place
                for place, outcome in troubled.items()
                if outcome.kind == FORGOTTEN and left.get(place) == ordinals[place]
            ]
            if forgotten:
                yield from self._amend(plan, {place: left[place] for place in forgotten})
                return
            if left == ordinals and troubled:
                failures += 1
                yield from ask(PauseSending(failures, _reason(troubled.values())))
            else:
                failures = 0

    def _take(
        self,
        plan: Plan,
        outcomes: Mapping[TopicPartition, SendOutcome],
        left: dict[TopicPartition, int],
    ) -> dict[TopicPartition, SendOutcome]:
        """Count what was accepted; return the other outcomes."""
        troubled: dict[TopicPartition, SendOutcome] = {}
        for place, outcome in outcomes.items():
            if outcome.kind == REFUSED:
                raise SinkRefused(
                    f"micro-batch {plan.batch_id} is frozen, and a broker does not take it: "
                    f"{outcome.error}. Change the topic so that it takes these records, and start "
                    "the query again"
                ) from outcome.error
            if outcome.kind != ACCEPTED:
                troubled[place] = outcome
                continue
            left[place] += 1
            if left[place] == len(plan.share_of(place).batches):
                del left[place]
        return troubled

    def _look_back(
        self,
        plan: Plan,
        left: dict[TopicPartition, int],
        before: Mapping[TopicPartition, LookedBack],
    ) -> Steps[tuple[int, Mapping[TopicPartition, LookedBack], dict[TopicPartition, int]]]:
        """Return when the log was read back, what was found, and what that leaves to be sent."""
        now_ms = yield from ask(Now())
        rested = is_rested(plan, now_ms, self.expiration_ms)
        offsets = {place: plan.share_of(place).end_offset for place in left}
        looked = yield from ask(LookBack(plan, offsets, before))
        found: dict[TopicPartition, int] = {}
        for place, known in left.items():
            share = plan.share_of(place)
            ordinal = ordinal_in_log(plan, share, looked[place], known, rested)
            if ordinal < len(share.batches):
                found[place] = ordinal
        return now_ms, looked, found

    def _amend(self, plan: Plan, sent: dict[TopicPartition, int]) -> Steps[None]:
        """Go on under a new producer id where leaders have forgotten the plan's.

        Nobody else can write there under the old id: leaders refuse it, except at sequence 0, which
        they would not have refused.
        """
        noted = yield from ask(NoteEnds(sorted(sent)))
        producer = yield from ask(NewProducer())
        yield from ask(CreatePlan(amended(plan, producer, sent, noted)))
        stored = yield from ask(ReadPlan(plan.batch_id))
        if stored is not None and not stored.is_done:
            yield from self.publish(stored.plan, False)


def _reason(outcomes: Iterable[SendOutcome]) -> ClientError | None:
    return next((one.error for one in outcomes if one.error is not None), None)
