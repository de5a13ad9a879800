"""Long answers: made in steps over several turns, so that none of them makes a turn long.

A handler whose answer has many elements is a generator.  It adds an element, yields what that cost,
and continues when it gets its next turn.  Its connection is held meanwhile; other connections are
served.  An answer of a hundred elements is ready in the turn of its request; longer ones take
turns.

The memory of all long answers is bounded.  Beyond the bound only the oldest continues, and no
further large request for such an answer is decoded.  Answers that hold little have half of each
turn for themselves, so that they do not wait for the others.

A request of thousands of elements is handled in a turn after the one that has decoded it.  The
memory of requests that wait for that is bounded too, whatever they ask for.  Hot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from librt.strings import read_i16_be
from mypy_extensions import i64

from tarry.base.limits import (
    ELEMENTS_PER_TURN_MAX,
    LONG_ANSWER_BYTES_MAX,
    LONG_ANSWER_BYTES_PER_UNIT,
    LONG_ANSWER_FIRST_UNITS,
    LONG_ANSWER_FIRST_UNITS_PER_TURN,
    LONG_ANSWER_UNITS_PER_TURN,
    LONG_ANSWERS_BYTES_MAX,
)
from tarry.base.turn import Turn
from tarry.broker.answers import Answers
from tarry.broker.kafka_connection import KafkaConnection
from tarry.broker.part import Part
from tarry.broker.request import RequestContext
from tarry.broker.route import Route
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.produce import ProduceRequest
from tarry.protocol.pieced import PiecedResponse

# A request of more elements has used up its share of a turn when it is decoded.
LONG_REQUEST_ELEMENTS: Final = 2_000

# Units of work of one answer in a round over all answers.
ROUND_UNITS: Final = 50

# An answer that holds fewer bytes, its request included, is a small one.
SMALL_BYTES: Final = 64 * 1024

# Estimated memory of one element of a decoded request with its strings, in bytes.
ELEMENT_BYTES: Final = 200

# APIs whose large requests are decoded at once: their bytes are those of batches, partitions and
# assignments, and a group evicts clients that wait too long.  Those of thousands of elements wait
# for room once they are decoded.
ANSWERED_AT_ONCE: Final = (
    api_keys.PRODUCE,
    api_keys.FETCH,
    api_keys.JOIN_GROUP,
    api_keys.SYNC_GROUP,
)


class LongAnswer(PiecedResponse):
    """Answer to one request, which its handler builds in steps when `LongAnswers` calls it.

    `must_end`: the steps change something, so all of them are taken even if the peer has gone.
    """

    def __init__(self, context: RequestContext, *, must_end: bool = False) -> None:
        super().__init__(context.api_key, context.api_version, context.correlation_id)
        self.context = context
        self.must_end = must_end
        self.steps: Iterator[int] = iter(())
        self.request_bytes: i64 = context.elements * ELEMENT_BYTES

    def has_room(self, size: i64) -> bool:
        """Return whether so many bytes may be added.  Ask before adding an element that may be
        large.
        """
        return self.size + size <= LONG_ANSWER_BYTES_MAX

    def give_up(self) -> None:
        """Drop the steps: they refer to this answer, and the cycle would keep both in memory."""
        self.steps = iter(())

    def held_bytes(self) -> i64:
        """Return the estimated memory of the request and its answer, in bytes."""
        return self.size + self.request_bytes


class PostponedRequest:
    """Request of many elements that is decoded and not handled yet."""

    def __init__(self, route: Route[Any], context: RequestContext, request: Message) -> None:
        self.route = route
        self.context = context
        self.request = request
        self.size: i64 = context.elements * ELEMENT_BYTES

    def is_in_vain(self) -> bool:
        """Return true if the client is gone and will send the request again."""
        if not self.context.connection.is_closed:
            return False
        request = self.request
        return not (isinstance(request, ProduceRequest) and request.acks == 0)


class LongAnswers(Part):
    """Part that makes long answers, the oldest first, within what a turn has left for them."""

    def __init__(self, turn: Turn, answers: Answers) -> None:
        self.turn = turn
        self.answers = answers
        self._waiting: list[LongAnswer] = []
        self._small: list[LongAnswer] = []
        self._held_bytes: i64 = 0
        self._postponed: list[PostponedRequest] = []
        self._postponed_bytes: i64 = 0
        self._first_units: i64 = LONG_ANSWER_FIRST_UNITS_PER_TURN
        # True if the last turn had no share for waiting answers.
        self._has_rested = False
        # Units that the last turn spent on answers that had waited.
        self.units_spent: i64 = 0

    def has_work_left(self) -> bool:
        return len(self._waiting) > 0 or len(self._small) > 0 or len(self._postponed) > 0

    def stop(self) -> None:
        # Nothing new is handled from now on, so these requests would wait in vain.
        for each in self._postponed:
            connection = each.context.connection
            if not connection.is_closed:
                self.answers.let_go(connection, "the broker stops")
        self._postponed = []
        self._postponed_bytes = 0

    def puts_off(self, frame: bytes, position: i64) -> bool:
        """Return whether a large request must wait for another turn before it is decoded."""
        if self.turn.elements_decoded >= ELEMENTS_PER_TURN_MAX:
            return True
        if self._postponed_bytes >= LONG_ANSWERS_BYTES_MAX:
            return True
        if self._held_bytes + self._postponed_bytes < LONG_ANSWERS_BYTES_MAX:
            return False
        api_key: int = read_i16_be(frame, position)
        return api_key not in ANSWERED_AT_ONCE

    def begin(self, answer: LongAnswer, steps: Iterator[int]) -> Message | None:
        """Make an answer, at once if it and its request are short.

        If the steps end without having opened an answer, they have arranged that another part
        answers.  Always returns None, for a handler that answers later.
        """
        answer.steps = steps
        context = answer.context
        if context.elements <= LONG_REQUEST_ELEMENTS:
            units: i64 = max(min(self._first_units, LONG_ANSWER_FIRST_UNITS), 1)
            is_over, spent = self._go_on(answer, units)
            self._first_units -= spent
            if is_over:
                return None
        self._hold(answer)
        return None

    def postpone(self, route: Route[Any], context: RequestContext, request: Message) -> None:
        """Handle a long request in a turn after the one in which it was decoded."""
        postponed = PostponedRequest(route, context, request)
        context.connection.hold()
        self._postponed.append(postponed)
        self._postponed_bytes += postponed.size

    def _hold(self, answer: LongAnswer) -> None:
        answer.context.connection.hold()
        line = self._small if answer.held_bytes() < SMALL_BYTES else self._waiting
        line.append(answer)
        self._held_bytes += answer.held_bytes()

    def step(self) -> None:
        """Continue the waiting answers by turns, as the last thing that a turn does with
        requests.
        """
        was_long = self.turn.elements_decoded > ELEMENTS_PER_TURN_MAX
        self.turn.elements_decoded = 0
        self.turn.small_elements_decoded = 0
        self.units_spent = 0
        self._first_units = LONG_ANSWER_FIRST_UNITS_PER_TURN
        left: i64 = LONG_ANSWER_UNITS_PER_TURN
        if was_long and not self._has_rested:
            # Decoding was this turn's share.  If each turn decodes so much, answers continue in
            # every second one.
            self._has_rested = True
            return
        self._has_rested = False
        if self._postponed and self._held_bytes < LONG_ANSWERS_BYTES_MAX:
            # Handling the request takes a turn's share.  Waiting answers have half a share beside
            # it, however many such requests come.
            self._handle(self._postponed.pop(0))
            left //= 2
        share = left // 2
        left -= self._take_turns(self._small, share)
        # The last step may have cost more units than were left.
        left -= self._take_turns(self._waiting, max(left, share))
        left -= self._take_turns(self._small, left)
        self.units_spent = LONG_ANSWER_UNITS_PER_TURN - left

    def _take_turns(self, line: list[LongAnswer], units: i64) -> i64:
        """Continue the answers of a queue for so many units; return the units that were spent."""
        left = units
        while left > 0 and line:
            answer = line.pop(0)
            connection = answer.context.connection
            before: i64 = answer.held_bytes()
            is_over, spent = self._go_on(answer, min(left, ROUND_UNITS))
            left -= spent
            if is_over:
                self._held_bytes -= before
                self.let_go_on(connection)
                continue
            after: i64 = answer.held_bytes()
            self._held_bytes += after - before
            if after < SMALL_BYTES:
                line.append(answer)
            elif before >= SMALL_BYTES and self._held_bytes >= LONG_ANSWERS_BYTES_MAX:
                line.insert(0, answer)
            else:
                self._waiting.append(answer)
        return units - left

    def _go_on(self, answer: LongAnswer, units: i64) -> tuple[bool, i64]:
        """Take steps for so many units; return whether the answer is over, and the units spent."""
        context = answer.context
        steps = answer.steps
        spent: i64 = 0
        if context.connection.is_closed and not answer.must_end:
            answer.give_up()
            return True, spent
        while spent < units:
            before: i64 = answer.size
            cost = next(steps, None)
            if cost is None:
                if answer.size > 0:
                    context.respond_in_pieces(answer)
                return True, spent
            spent += cost + (answer.size - before) // LONG_ANSWER_BYTES_PER_UNIT
            if answer.size > LONG_ANSWER_BYTES_MAX:
                context.close_connection(
                    f"an answer to {api_keys.APIS[context.api_key].name} came to more than "
                    f"{LONG_ANSWER_BYTES_MAX} bytes; ask for less at once"
                )
            if not context.connection.is_closed:
                continue
            if not answer.must_end:
                answer.give_up()
                return True, spent
            # The connection is closed, but the steps left change something: drop only the bytes.
            answer.forget()
        return False, spent

    def _handle(self, postponed: PostponedRequest) -> None:
        self._postponed_bytes -= postponed.size
        if postponed.is_in_vain():
            return
        context = postponed.context
        connection = context.connection
        response = postponed.route.handle(context, postponed.request)
        if response is not None:
            context.respond(response)
        self.let_go_on(connection)

    def let_go_on(self, connection: KafkaConnection) -> None:
        """End a hold; another one may have begun meanwhile, such as that of the answer."""
        connection.end_hold()
        if connection.is_closed or connection.is_held():
            return
        self.answers.process_later(connection)
        self.answers.regulate_reading(connection)
