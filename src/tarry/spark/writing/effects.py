"""Effects: what the steps of the sink ask of the world, one at a time.

    result = yield from ask(NoteEnds(places))

`publishing` carries them out with a directory and a cluster, a simulation with models of both.  An
effect is done as a whole or not at all, except for `SendRound`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from tarry.base.ids import TopicPartition
from tarry.client.core.publisher.look_back import SeenRange
from tarry.client.core.publisher.send import SendOutcome
from tarry.link.errors import ClientError
from tarry.spark.writing.plan import Noted, Plan, PlannedFile

R = TypeVar("R")


class Effect(Generic[R]):
    """Effect with a result of class `R`."""


# Any: the result is of the class that the effect has.
Steps = Generator[Effect[Any], Any, R]


def ask(effect: Effect[R]) -> Steps[R]:
    """Ask for one effect and return its result."""
    result: R = yield effect
    return result


class StoredPlan(NamedTuple):
    """Plan as the directory has it; `is_done` if all of it is in the log."""

    plan: Plan
    is_done: bool


class ReadPlan(Effect[StoredPlan | None]):
    """Read the plan of a micro-batch, the newest amendment of it."""

    def __init__(self, batch_id: int) -> None:
        self.batch_id = batch_id


class ReadNewest(Effect[StoredPlan | None]):
    """Read the plan of the newest micro-batch."""


class FindLacking(Effect[list[str]]):
    """Tell which of these files are not there with all their bytes, by the paths where they should
    be."""

    def __init__(self, files: list[PlannedFile]) -> None:
        self.files = files


class CreatePlan(Effect[bool]):
    """Make the plan durable, if there is none of this micro-batch and amendment; False: there is
    one."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan


class MarkDone(Effect[None]):
    """Make it durable that all batches of the plan are in the log."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan


class RemoveFiles(Effect[None]):
    """Remove files of tasks that nobody needs any more; those that are gone already are fine."""

    def __init__(self, names: list[str]) -> None:
        self.names = names


class Now(Effect[int]):
    """Tell the calendar time in milliseconds."""


class NewProducer(Effect[tuple[int, int]]):
    """Get a producer id that nobody has, and its epoch."""


class NoteEnds(Effect[Noted]):
    """Ask for the ends of logs, and the ids of topics and cluster, as they are now."""

    def __init__(self, places: list[TopicPartition]) -> None:
        self.places = places


class SentRound(NamedTuple):
    """Answer to `SendRound`: an outcome for each batch that was sent; `is_late` if it was too late
    to send anything, `are_files_gone` if batches cannot be read."""

    outcomes: Mapping[TopicPartition, SendOutcome]
    is_late: bool = False
    are_files_gone: bool = False


class SendRound(Effect[SentRound]):
    """Send the batch with this number of each partition, once, but nothing after `not_after_ms` of
    the calendar."""

    def __init__(
        self, plan: Plan, ordinals: Mapping[TopicPartition, int], not_after_ms: int
    ) -> None:
        self.plan = plan
        self.ordinals = ordinals
        self.not_after_ms = not_after_ms


class LookedBack(NamedTuple):
    """View of a log: batches of one producer from an offset or from the log's start on, whichever
    is later, up to the log's end; `cut_at` is where it was cut below that offset, None: it was not,
    as far as the leader can tell.  `leader_epoch` is that of the end, -1: not told.

    In a topic with scheduled records (`has_delay`) batches may wait beside that log:
    `last_sequence` is the last one of the producer in both, below their high watermarks; -1 if the
    leader knows none."""

    seen: SeenRange
    log_start_offset: int
    log_end_offset: int
    cut_at: int | None = None
    leader_epoch: int = -1
    has_delay: bool = False
    last_sequence: int = -1


class LookBack(Effect[Mapping[TopicPartition, LookedBack]]):
    """Read which batches of each share's producer lie from these offsets on, up to the end.

    `before` is what an earlier look found: a log that has had one leader since was appended to
    only, and is read from there on.
    """

    def __init__(
        self,
        plan: Plan,
        offsets: Mapping[TopicPartition, int],
        before: Mapping[TopicPartition, LookedBack],
    ) -> None:
        self.plan = plan
        self.offsets = offsets
        self.before = before


class PauseSending(Effect[None]):
    """Wait before the next attempt, longer after each of `failures` without progress; raises the
    reason, with what it means, when that lasts too long."""

    def __init__(self, failures: int, reason: ClientError | None) -> None:
        self.failures = failures
        self.reason = reason
