"""Produces into topics with `compression.type`: their batches are made anew before they count.
So are produces of compressed batches whose records must be looked at.

A request whose batches need more than this turn has left waits here, and with it its connection,
so that appends and answers keep their order; other connections are served.  The batches of one
request are made ready first and appended in one turn.  Only the first that waits holds unfolded
records, so memory does not grow with the number of clients.

A produce to many partitions is appended in shares, and may have to wait for flushes between them.
While such produces hold too many bytes of batches made anew, those that were not begun wait for
room, in their order, and hold up no other request.  Where high watermarks or flushes do not move,
that is for a bounded time: those that hold the room append what is left then.  One whose own time
is over is answered, and nothing of it is appended.

A request whose connection is gone is given up, for its client sends it again, unless nobody would:
with acks=0 it is appended.  Hot.
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
    """Produce request with the batches that their topics want made anew.

    `made` holds them by their place: index of the topic and index in it.  `is_in_shares`: it is
    appended in several turns, and `take` gives the batches out.  `place_count`: due times and ids
    of the records in those that are ready.
    """

    def __init__(
        self, context: RequestContext, request: ProduceRequest, *, is_in_shares: bool = False
    ) -> None:
        self.context = context
        self.is_in_shares = is_in_shares
        self.request = request
        self.made: dict[tuple[int, int], Recompression] = {}
        self.place_count = 0
        # Who appends the batches in shares, from then on.
        self._appends: ProduceInShares | None = None
        # Since when it waits for room, in attended time; -1 if it does not.
        # open: recompressions let it wait
        self.aside_ms = -1
        # When its batches were ready, in attended time.
        # open: recompressions make them
        self.made_ms = 0
        self._places: list[tuple[int, int]] = []
        self._waiting: list[tuple[ReplicatedLog, Window]] = []
        self._next: i64 = 0
        self._new_bytes: i64 = 0
        self._taken_bytes: i64 = 0

    @property
    def held_bytes(self) -> i64:
        """Bytes of the batches that were made anew and are not taken yet."""
        return self._new_bytes - self._taken_bytes

    def has_begun(self) -> bool:
        """Return whether a batch was looked at."""
        return len(self.made) > 0

    def take(self, place: tuple[int, int]) -> Recompression | None:
        """Give a batch out that is to be appended now; None if it was not to be made anew."""
        recompression = self.made.pop(place, None)
        if recompression is not None:
            self._taken_bytes += recompression.new_bytes
        return recompression

    def forget(self) -> None:
        """Forget all batches: they are appended, or given up."""
        self.made = {}
        self._places = []
        self._waiting = []
        self._taken_bytes = self._new_bytes

    def begin_shares(self, appends: ProduceInShares) -> None:
        """Have the batches appended in shares."""
        self._appends = appends

    def hurry(self) -> None:
        """Append the rest though many shares wait: it was held for long."""
        appends = self._appends
        if appends is not None:
            appends.hurry()

    def is_late(self, now_ms: int) -> bool:
        """Return whether its client does not wait for an answer any more."""
        if self.request.acks == 0 or self.aside_ms < 0:
            return False
        return now_ms >= self.aside_ms + max(self.request.timeout_ms, 0)

    def time_out(self) -> Message | None:
        """Append nothing; return the answer that says so, if there is one at once."""
        raise NotImplementedError

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
            now_wall_ms = context.answers.turn.now_wall_ms
            recompression = Recompression(partition, window, context.api_version, now_wall_ms)
            self.made[place] = recompression
        return recompression


class Recompressions(Part):
    """Recompressions that wait, in their order, and what this turn has left for them."""

    def __init__(self, turn: Turn, answers: Answers) -> None:
        self._turn = turn
        self._answers = answers
        self._effort = Effort()
        self._waiting: list[RecompressedProduce] = []
        # Produces in shares that are made anew and not all appended; and those that wait for room.
        self._holders: list[RecompressedProduce] = []
        self._aside: list[RecompressedProduce] = []

    def has_work_left(self) -> bool:
        return len(self._waiting) > 0 or (len(self._aside) > 0 and self._has_room())

    def try_finish_or_wait(self, produce: RecompressedProduce) -> bool:
        """Make it ready at once if that is little; else it waits, and its connection with it."""
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
        """Go on with the first that waits; the end of what a turn does with requests."""
        effort = self._effort
        if self._holders or self._aside:
            self._make_room()
        if not self._waiting:
            effort.units = STEP_UNITS
            self._turn.opened_batches = 0
            return
        # Small ones that came in this turn have had theirs: the first goes on all the same.
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
        # What this has opened was counted as effort: others' requests go on in the next turn.
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

    # -- room

    def _put_aside(self, produce: RecompressedProduce) -> None:
        if produce.aside_ms < 0:
            produce.aside_ms = self._turn.now_ms
        self._aside.append(produce)

    def _note_made(self, produce: RecompressedProduce) -> None:
        if produce.is_in_shares:
            produce.made_ms = self._turn.now_ms
            self._holders.append(produce)

    def _lacks_room(self, produce: RecompressedProduce) -> bool:
        """Return whether a produce in shares is to be begun while others hold too much."""
        return produce.is_in_shares and not produce.has_begun() and not self._has_room()

    def _has_room(self) -> bool:
        held: i64 = 0
        for produce in self._holders:
            held += produce.held_bytes
        return held < RECOMPRESSED_HELD_BYTES_MAX

    def _make_room(self) -> None:
        """Count those no more that hold nothing; with room those that wait for it have their turn
        before all that came later.
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
            # The first that waits may be made half.
            begun = 1 if self._waiting and self._waiting[0].has_begun() else 0
            self._waiting[begun:begun] = self._aside
            self._aside = []
