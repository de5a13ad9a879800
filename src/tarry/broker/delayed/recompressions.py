"""Recompressions: batches of topics with `compression.type` are recompressed before the append.
Compressed batches whose records must be examined are opened here too.

A request whose batches need more work than this turn has left waits here, and its connection with
it, so that appends and answers keep their order; other connections are served.  The batches of one
request are prepared first and appended in one turn.  Only the first request that waits holds
decompressed records, so memory does not grow with the number of clients.

A produce to many partitions is appended in shares, and may have to wait for flushes between them.
While such produces hold too many bytes of recompressed batches, those that have not begun wait for
room, in their order, and hold up no other request.  The wait is bounded even if high watermarks or
flushes stand still: the produces that hold the room then append the rest.  A produce that times out
while it waits is answered, and none of its batches is appended.

If a connection is gone, its request is dropped, since its client sends it again.  With acks=0 no
client would, so such a request is appended.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from tarry.base.limits import (
    RECOMPRESSED_HELD_BYTES_MAX,
    RECOMPRESSED_HELD_MS_MAX,
    RECOMPRESSED_REQUEST_BYTES_MAX,
)
from tarry.base.turn import Turn
from tarry.broker.answers import Answers
from tarry.broker.delayed.produce import ProduceInShares
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
    """Produce request with the batches that have to be recompressed or opened.

    `made` has the prepared batches by place: index of the topic and index in it.  If
    `is_in_shares`, the batches are appended in several turns, and `take` returns them one by one.
    `place_count` is the number of due times and ids in the records of prepared batches.
    """

    def __init__(
        self, context: RequestContext, request: ProduceRequest, *, is_in_shares: bool = False
    ) -> None:
        self.context = context
        self.is_in_shares = is_in_shares
        self.request = request
        self.made: dict[tuple[int, int], Recompression] = {}
        self.place_count = 0
        # The operation that appends the batches in shares; None before it begins.
        self._appends: ProduceInShares | None = None
        # Attended time at which the produce began to wait for room; -1 if it did not have to wait.
        # open: recompressions let it wait
        self.aside_ms = -1
        # Attended time at which the batches were prepared.
        # open: recompressions make them
        self.made_ms = 0
        self._places: list[tuple[int, int]] = []
        self._waiting: list[tuple[ReplicatedLog, Window]] = []
        self._next: i64 = 0
        self._new_bytes: i64 = 0
        self._taken_bytes: i64 = 0

    @property
    def held_bytes(self) -> i64:
        """Bytes of recompressed batches that were not taken yet."""
        return self._new_bytes - self._taken_bytes

    def has_begun(self) -> bool:
        """Return whether the work on a batch has begun."""
        return len(self.made) > 0

    def take(self, place: tuple[int, int]) -> Recompression | None:
        """Return and remove a prepared batch, to be appended now; None if the batch needs no
        preparing.
        """
        recompression = self.made.pop(place, None)
        if recompression is not None:
            self._taken_bytes += recompression.new_bytes
        return recompression

    def forget(self) -> None:
        """Drop all batches, because they are appended or given up."""
        self.made = {}
        self._places = []
        self._waiting = []
        self._taken_bytes = self._new_bytes

    def begin_shares(self, appends: ProduceInShares) -> None:
        """Store the operation that appends the batches in shares."""
        self._appends = appends

    def hurry(self) -> None:
        """Append the rest without pauses, because the batches were held for long."""
        appends = self._appends
        if appends is not None:
            appends.hurry()

    def is_late(self, now_ms: int) -> bool:
        """Return whether the time-out of the client's request has passed."""
        if self.request.acks == 0 or self.aside_ms < 0:
            return False
        return now_ms >= self.aside_ms + max(self.request.timeout_ms, 0)

    def time_out(self) -> Message | None:
        """Answer that the request has timed out, without an append; return the answer if it is
        ready.
        """
        raise NotImplementedError

    def append(self) -> Message | None:
        """Append all batches, which are prepared; return the answer if there is one now."""
        raise NotImplementedError

    def add(self, topic: int, index: int, partition: ReplicatedLog, window: Window) -> None:
        """Add a batch that has to be prepared."""
        self._places.append((topic, index))
        self._waiting.append((partition, window))

    def try_finish(self, effort: Effort) -> bool:
        """Prepare batches as far as the effort reaches; return true when all may be appended."""
        while self._next < len(self._waiting):
            if effort.units <= 0:
                return False
            recompression = self._current()
            if not recompression.try_finish(effort):
                return False
            self._new_bytes += recompression.new_bytes
            self.place_count += recompression.place_count
            if self._new_bytes > RECOMPRESSED_REQUEST_BYTES_MAX:
                recompression.refuse_too_large(
                    f"made anew by compression.type or opened for their due times, the batches of "
                    f"one produce come to more than {RECOMPRESSED_REQUEST_BYTES_MAX} bytes; send "
                    "fewer at once"
                )
            self._next += 1
        return True

    def is_within(self, units: i64) -> bool:
        """Return true if the work that is left surely costs no more than `units`."""
        left = len(self._waiting) - self._next
        if left != 1:
            return left == 0
        cost = self._current().units_at_most
        return 0 <= cost <= units

    def is_in_vain(self) -> bool:
        """Return true if the client is gone and will send the produce again."""
        return self.context.connection.is_closed and self.request.acks != 0

    def _current(self) -> Recompression:
        place = self._places[self._next]
        recompression = self.made.get(place)
        if recompression is None:
            partition, window = self._waiting[self._next]
            context = self.context
            now_wall_ms = context.answers.turn.now_wall_ms
            recompression = Recompression(partition, window, context.api_version, now_wall_ms)
            self.made[place] = recompression
        return recompression


class Recompressions(Part):
    """Part that prepares the batches of produces in their order, within what a turn has left for
    them.
    """

    def __init__(self, turn: Turn, answers: Answers) -> None:
        self._turn = turn
        self._answers = answers
        self._effort = Effort()
        self._waiting: list[RecompressedProduce] = []
        # Produces in shares that hold prepared batches, and produces in shares that wait for room.
        self._holders: list[RecompressedProduce] = []
        self._aside: list[RecompressedProduce] = []

    def has_work_left(self) -> bool:
        return len(self._waiting) > 0 or (len(self._aside) > 0 and self._has_room())

    def try_finish_or_wait(self, produce: RecompressedProduce) -> bool:
        """Prepare a produce at once if that is little work; otherwise let it wait, with its
        connection.
        """
        effort = self._effort
        if self._lacks_room(produce):
            produce.context.connection.hold()
            self._put_aside(produce)
            return False
        may_begin = not self._waiting or produce.is_within(effort.units)
        if may_begin and produce.try_finish(effort):
            self._note_made(produce)
            return True
        produce.context.connection.hold()
        self._waiting.append(produce)
        return False

    def step(self) -> None:
        """Continue with the first that waits, as the last thing that a turn does with requests."""
        effort = self._effort
        if self._holders or self._aside:
            self._make_room()
        if not self._waiting:
            effort.units = STEP_UNITS
            self._turn.opened_batches = 0
            return
        # Even if small produces have used up this turn's effort, the first that waits gets half a
        # share.
        effort.units = max(effort.units, STEP_UNITS // 2)
        while self._waiting:
            produce = self._waiting[0]
            if not produce.is_in_vain():
                if self._lacks_room(produce):
                    self._put_aside(self._waiting.pop(0))
                    continue
                if not produce.try_finish(effort):
                    break
                self._append(produce)
            self._waiting.pop(0)
        effort.units = STEP_UNITS
        # Batches that were opened here counted as effort already; other requests go on in the next
        # turn.
        self._turn.opened_batches = 0

    def _append(self, produce: RecompressedProduce) -> None:
        self._note_made(produce)
        self._end(produce, produce.append())

    def _end(self, produce: RecompressedProduce, response: Message | None) -> None:
        answers = self._answers
        context = produce.context
        connection = context.connection
        if response is not None:
            context.respond(response)
        connection.end_hold()
        if not connection.is_closed:
            answers.process_later(connection)
            answers.regulate_reading(connection)

    # -- room for recompressed batches

    def _put_aside(self, produce: RecompressedProduce) -> None:
        if produce.aside_ms < 0:
            produce.aside_ms = self._turn.now_ms
        self._aside.append(produce)

    def _note_made(self, produce: RecompressedProduce) -> None:
        if produce.is_in_shares:
            produce.made_ms = self._turn.now_ms
            self._holders.append(produce)

    def _lacks_room(self, produce: RecompressedProduce) -> bool:
        """Return whether a produce in shares may not begin because others hold too many bytes."""
        return produce.is_in_shares and not produce.has_begun() and not self._has_room()

    def _has_room(self) -> bool:
        held: i64 = 0
        for produce in self._holders:
            held += produce.held_bytes
        return held < RECOMPRESSED_HELD_BYTES_MAX

    def _make_room(self) -> None:
        """Remove produces that hold no batches any more.  If there is room, those that wait for it
        continue before all that came later.
        """
        self._holders = [
            each for each in self._holders if each.held_bytes > 0 and not each.is_in_vain()
        ]
        self._aside = [each for each in self._aside if not each.is_in_vain()]
        now_ms = self._turn.now_ms
        late = [each for each in self._aside if each.is_late(now_ms)]
        if late:
            self._aside = [each for each in self._aside if not each.is_late(now_ms)]
            for each in late:
                self._end(each, each.time_out())
        for each in self._holders:
            if now_ms >= each.made_ms + RECOMPRESSED_HELD_MS_MAX:
                each.hurry()
        if self._aside and self._has_room():
            # The first that waits may be half prepared, and keeps its place.
            begun = 1 if self._waiting and self._waiting[0].has_begun() else 0
            self._waiting[begun:begun] = self._aside
            self._aside = []
