"""Produces into topics with `compression.type`: their batches are made anew before they count.
So are produces of more compressed batches whose records must be looked at than one turn opens.

A request whose batches need more than this turn has left waits here, and with it its connection,
so that appends and answers keep their order; other connections are served.  The batches of one
request are made ready first and appended in one turn.  Only the first that waits holds unfolded
records, so memory does not grow with the number of clients.

A request whose connection is gone is given up, for its client sends it again, unless nobody would:
with acks=0 it is appended.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from tarry.base.limits import RECOMPRESSED_REQUEST_BYTES_MAX
from tarry.base.turn import Turn
from tarry.broker.answers import Answers
from tarry.broker.part import Part
from tarry.broker.request import RequestContext
from tarry.log.compaction.effort import STEP_UNITS, Effort
from tarry.partition.recompression import Recompression
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol.message import Message
from tarry.protocol.messages.produce import ProduceRequest
from tarry.wire.reader import Window


@mypyc_attr(allow_interpreted_subclasses=True)
class RecompressedProduce:
    """Produce request with the batches that their topics want made anew.

    `made` holds them by their place: index of the topic and index in it.
    """

    def __init__(self, context: RequestContext, request: ProduceRequest) -> None:
        self.context = context
        self.request = request
        self.made: dict[tuple[int, int], Recompression] = {}
        self._places: list[tuple[int, int]] = []
        self._waiting: list[tuple[ReplicatedLog, Window]] = []
        self._next: i64 = 0
        self._new_bytes: i64 = 0

    def append(self) -> Message | None:
        """Append all batches, which are ready; return the answer, if there is one at once."""
        raise NotImplementedError

    def add(self, topic: int, index: int, partition: ReplicatedLog, window: Window) -> None:
        """Add a batch, which belongs to a topic with a codec of its own."""
        self._places.append((topic, index))
        self._waiting.append((partition, window))

    def try_finish(self, effort: Effort) -> bool:
        """Go on as far as the effort reaches; True when all may be appended."""
        while self._next < len(self._waiting):
            if effort.units <= 0:
                return False
            recompression = self._current()
            if not recompression.try_finish(effort):
                return False
            self._new_bytes += recompression.new_bytes
            if self._new_bytes > RECOMPRESSED_REQUEST_BYTES_MAX:
                recompression.refuse_too_large(
                    f"by compression.type the batches of one produce come to more than "
                    f"{RECOMPRESSED_REQUEST_BYTES_MAX} bytes; send fewer at once"
                )
            self._next += 1
        return True

    def is_within(self, units: i64) -> bool:
        """Return true if what is left surely costs no more than so much."""
        left = len(self._waiting) - self._next
        if left != 1:
            return left == 0
        cost = self._current().units_at_most
        return 0 <= cost <= units

    def is_in_vain(self) -> bool:
        """Return true if no peer waits for the produce any more and its client will send it
        again.
        """
        return self.context.connection.is_closed and self.request.acks != 0

    def _current(self) -> Recompression:
        place = self._places[self._next]
        recompression = self.made.get(place)
        if recompression is None:
            partition, window = self._waiting[self._next]
            context = self.context
            turn = context.answers.turn
            recompression = Recompression(partition, window, context.api_version, turn.now_wall_ms)
            self.made[place] = recompression
            if recompression.was_opened:
                turn.opened_batches += 1
        return recompression


class Recompressions(Part):
    """Recompressions that wait, in their order, and what this turn has left for them."""

    def __init__(self, turn: Turn, answers: Answers) -> None:
        self._turn = turn
        self._answers = answers
        self._effort = Effort()
        self._waiting: list[RecompressedProduce] = []

    def has_work_left(self) -> bool:
        return len(self._waiting) > 0

    def try_finish_or_wait(self, produce: RecompressedProduce) -> bool:
        """Make it ready at once if that is little; else it waits, and its connection with it."""
        effort = self._effort
        may_begin = not self._waiting or produce.is_within(effort.units)
        if may_begin and produce.try_finish(effort):
            return True
        produce.context.connection.hold()
        self._waiting.append(produce)
        return False

    def step(self) -> None:
        """Go on with the first that waits; the end of what a turn does with requests."""
        effort = self._effort
        if not self._waiting:
            effort.units = STEP_UNITS
            self._turn.opened_batches = 0
            return
        # Small ones that came in this turn have had theirs: the first goes on all the same.
        effort.units = max(effort.units, STEP_UNITS // 2)
        while self._waiting:
            produce = self._waiting[0]
            if not produce.is_in_vain():
                if not produce.try_finish(effort):
                    break
                self._append(produce)
            self._waiting.pop(0)
        effort.units = STEP_UNITS
        # What this has opened was counted as effort: others' requests go on in the next turn.
        self._turn.opened_batches = 0

    def _append(self, produce: RecompressedProduce) -> None:
        answers = self._answers
        context = produce.context
        connection = context.connection
        response = produce.append()
        if response is not None:
            context.respond(response)
        connection.end_hold()
        if not connection.is_closed:
            answers.process_later(connection)
            answers.regulate_reading(connection)
