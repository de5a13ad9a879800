"""The sink's steps in a simulated world: crashes, twins, sleeps, late requests, forgotten ids."""

import msgspec
import pytest
from tests.support.spark.sink_world import EXPIRATION_MS, SinkWorld

from tarry.client.core.publisher.send import ACCEPTED, UNCLEAR, SendOutcome
from tarry.spark.writing import effects
from tarry.spark.writing.effects import LookedBack, Steps, ask
from tarry.spark.writing.plan import Plan
from tarry.spark.writing.steps import SinkSteps

SEEDS = 2_000
SEEDS_OF_A_TEST = 200
# Each planted mistake is found within so many seeds.
PLANTED_SEEDS = 200


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_OF_A_TEST))
def test_every_row_is_in_the_logs_once(first):
    for seed in range(first, first + SEEDS_OF_A_TEST):
        flaws = SinkWorld(seed).run()

        assert flaws == [], f"seed {seed}: {flaws[:3]}"


def test_the_worlds_meet_what_they_are_about():
    met = "\n".join(line for seed in range(150) for line in SinkWorld(seed).run_and_tell())

    for what in (
        "amended",
        "late request",
        "comes late",
        "dies",
        "sleeps",
        "another id",
        "does not see it",
    ):
        assert what in met, what


def is_found(make_world):
    return any(make_world(seed).run() for seed in range(PLANTED_SEEDS))


def with_steps(steps_class):
    return lambda seed: SinkWorld(seed, lambda: steps_class("q", EXPIRATION_MS))


def test_a_plan_that_is_not_durable_is_found():
    assert is_found(lambda seed: SinkWorld(seed, flushes=False))


class MarksFirst(SinkSteps):
    def finish(self, plan: Plan, is_fresh: bool) -> Steps[None]:
        yield from ask(effects.MarkDone(plan))
        yield from self.publish(plan, is_fresh)
        yield from ask(effects.RemoveFiles([file.name for file in plan.files]))


def test_a_mark_before_the_publish_is_found():
    assert is_found(with_steps(MarksFirst))


class FilesFirst(SinkSteps):
    def finish(self, plan: Plan, is_fresh: bool) -> Steps[None]:
        yield from self.publish(plan, is_fresh)
        yield from ask(effects.RemoveFiles([file.name for file in plan.files]))
        yield from ask(effects.MarkDone(plan))


def test_files_that_go_before_the_mark_are_found():
    assert is_found(with_steps(FilesFirst))


class DropsAllOutputs(SinkSteps):
    """What tasks wrote goes, though the plan names it."""

    def _freeze(self, batch_id, outputs):
        plan, is_fresh = yield from super()._freeze(batch_id, outputs)
        yield from ask(effects.RemoveFiles([one.file.name for one in outputs if one.file]))
        return plan, is_fresh


def test_files_that_are_dropped_though_the_plan_names_them_are_found():
    assert is_found(with_steps(DropsAllOutputs))


class OwnPlanCounts(SinkSteps):
    def _freeze(self, batch_id, outputs):
        newest = yield from ask(effects.ReadNewest())
        before = newest.plan if newest is not None else None
        plan = yield from self._make_plan(batch_id, outputs, before)
        yield from ask(effects.CreatePlan(plan))
        return plan, True


def test_a_plan_that_does_not_give_way_to_the_one_that_is_there_is_found():
    assert is_found(with_steps(OwnPlanCounts))


class TrustsTasks(SinkSteps):
    def _check_files(self, plan):
        yield from ()


def test_a_plan_that_names_a_file_nobody_sees_is_found():
    assert is_found(with_steps(TrustsTasks))


class TakesUnclearForSent(SinkSteps):
    def _take(self, plan, outcomes, left):
        taken = {
            place: SendOutcome(ACCEPTED) if outcome.kind == UNCLEAR else outcome
            for place, outcome in outcomes.items()
        }
        return super()._take(plan, taken, left)


def test_an_unclear_outcome_that_is_taken_for_success_is_found():
    assert is_found(with_steps(TakesUnclearForSent))


class NeverLooksBack(SinkSteps):
    def _look_back(self, plan, left, before):
        now_ms = yield from ask(effects.Now())
        return now_ms, before, left


def test_sending_again_without_looking_back_is_found():
    assert is_found(with_steps(NeverLooksBack))


class SequencesAnew(SinkWorld):
    """Each attempt is sent under the next sequences."""

    def _send(self, effect):
        self.attempts = getattr(self, "attempts", 0) + 1
        changes = {"producer_id": 1000 + self.attempts, "first_sequence": 0}
        shares = [msgspec.structs.replace(share, **changes) for share in effect.plan.shares]
        effect.plan = msgspec.structs.replace(effect.plan, shares=tuple(shares))
        return super()._send(effect)


class NotesEndsLate(SinkWorld):
    """The end of a log is what it is when somebody looks back, not when the plan was made."""

    def _look_back(self, effect):
        found = super()._look_back(effect)
        return {
            place: LookedBack(looked.seen._replace(batches=()), 0, looked.log_end_offset)
            for place, looked in found.items()
        }


class KnowsNoLateness(SinkWorld):
    """A driver that slept sends on without looking."""

    def _send(self, effect):
        effect.not_after_ms = self.now_ms
        return super()._send(effect)


@pytest.mark.parametrize("world", [SequencesAnew, NotesEndsLate, KnowsNoLateness])
def test_a_planted_mistake_is_found(world):
    assert is_found(world)
