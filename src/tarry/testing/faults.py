"""Faults of a broker by API: error codes, slow answers, connections that end.

A fault lies in the table of routes, around the handler of its API, so it affects every client.  A
request that fails with a code is not carried out.  The first fault that fits a request happens.
Faults do not affect the clients of a fixture's own helpers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tarry.base.doors import FileRegion
from tarry.base.errors import ERRORS, NONE, UNSUPPORTED_VERSION
from tarry.base.spelling import Spelling
from tarry.broker.broker import Broker
from tarry.broker.part import WaitingPart
from tarry.broker.request import RequestContext
from tarry.protocol import api_keys
from tarry.protocol.api_keys import APIS
from tarry.protocol.headers import decode_response_header
from tarry.protocol.message import Message
from tarry.protocol.pieced import PiecedResponse
from tarry.protocol.registry import MESSAGES
from tarry.purgatory.operation import PayloadOperation
from tarry.testing.answers import ApiRefusal, ErrorAnswers, IsChosen
from tarry.testing.settings import HELPER_ID
from tarry.wire.reader import Reader

Handle = Callable[[RequestContext, Any], Message | None]

# APIs that only read: their handler makes the answer, and the code is written over it.
READS: Final = frozenset(
    [
        api_keys.API_VERSIONS,
        api_keys.CONSUMER_GROUP_DESCRIBE,
        api_keys.DESCRIBE_CLUSTER,
        api_keys.DESCRIBE_CONFIGS,
        api_keys.DESCRIBE_GROUPS,
        api_keys.DESCRIBE_LOG_DIRS,
        api_keys.DESCRIBE_PRODUCERS,
        api_keys.DESCRIBE_TOPIC_PARTITIONS,
        api_keys.FIND_COORDINATOR,
        api_keys.LIST_CONFIG_RESOURCES,
        api_keys.LIST_GROUPS,
        api_keys.LIST_OFFSETS,
        api_keys.METADATA,
        api_keys.OFFSET_FETCH,
        api_keys.OFFSET_FOR_LEADER_EPOCH,
    ]
)

# Watch key of late answers, which nothing completes before their time.
LATE: Final = "late"

CUT: Final = "the test has cut this connection"


class ApiFault:
    """Fault that happens to the next requests of an API; `count` says how often it has."""

    def __init__(self, api_key: int, times: int | None) -> None:
        self.api_key = api_key
        self.times = times
        self.count = 0

    @property
    def is_over(self) -> bool:
        """True if the fault has happened as often as it was asked for."""
        return self.times is not None and self.count >= self.times

    def fits(self, context: RequestContext, request: Message) -> bool:
        """Return whether the fault can happen to this request.  For subclasses."""
        return True

    def handle(self, handle: Handle, context: RequestContext, request: Message) -> Message | None:
        """Do what the fault does in place of the handler.  For subclasses."""
        raise NotImplementedError

    def __repr__(self) -> str:
        times = "" if self.times is None else f" of {self.times}"
        return f"<{type(self).__name__} of {APIS[self.api_key].name}, happened {self.count}{times}>"


class ApiFailure(ApiFault):
    """Fault with an error code."""

    def __init__(
        self,
        answers: ErrorAnswers,
        times: int | None,
        code: int,
        is_chosen: IsChosen | None,
        place: str | None,
    ) -> None:
        super().__init__(answers.api_key, times)
        self.code = code
        self._answers = answers
        self._is_chosen = is_chosen
        self._place = place

    def _refusal(self, version: int) -> ApiRefusal | None:
        by_topic = self._is_chosen is not None
        place = self._answers.place(version, self._place, by_topic=by_topic)
        return None if place is None else ApiRefusal(version, place, self.code, self._is_chosen)

    def fits(self, context: RequestContext, request: Message) -> bool:
        return self._refusal(context.api_version) is not None

    def handle(self, handle: Handle, context: RequestContext, request: Message) -> Message | None:
        refusal = self._refusal(context.api_version)
        assert refusal is not None
        answers = self._answers
        if self.api_key in READS:
            return _handle_for(handle, OverwrittenAnswer(context, self, answers, refusal), request)
        if self.api_key == api_keys.PRODUCE and getattr(request, "acks", 1) == 0:
            # A producer with acks=0 gets no answer: its connection is closed instead, as in Kafka.
            self.count += 1
            context.answers.let_go(context.connection, CUT)
            return None
        if refusal.is_chosen is None:
            self.count += 1
            return answers.refuse(request, refusal)
        refused = answers.split(request, refusal)
        if refused is None:
            return handle(context, request)
        self.count += 1
        if answers.is_empty(request, refusal):
            return refused
        return _handle_for(handle, JoinedAnswer(context, answers, refused, refusal), request)


class SlowAnswer(ApiFault):
    """Answers that leave later than they were made."""

    def __init__(self, api_key: int, times: int | None, delay_ms: int, late: WaitingPart) -> None:
        super().__init__(api_key, times)
        self._delay_ms = delay_ms
        self._late = late

    def handle(self, handle: Handle, context: RequestContext, request: Message) -> Message | None:
        self.count += 1
        return _handle_for(handle, LateAnswer(context, self._delay_ms, self._late), request)


class CutConnection(ApiFault):
    """Connections that end with a request: before it is carried out, or in place of its answer."""

    def __init__(self, api_key: int, times: int | None, *, is_carried_out: bool) -> None:
        super().__init__(api_key, times)
        self._is_carried_out = is_carried_out

    def handle(self, handle: Handle, context: RequestContext, request: Message) -> Message | None:
        self.count += 1
        if self._is_carried_out:
            return _handle_for(handle, LostAnswer(context), request)
        context.answers.let_go(context.connection, CUT)
        return None


class Faults:
    """Faults of one broker, in the order in which they were asked for."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._faults: list[ApiFault] = []
        self._late = broker.parts.add(WaitingPart(broker.timer, "late answers"))
        for route in broker.routes.values():
            route.handle = _FaultyHandler(self, route.api_key, route.handle).handle

    def add(self, fault: ApiFault) -> None:
        """Let the fault happen from now on."""
        self._faults.append(fault)

    def clear(self) -> None:
        """Let no fault happen any more."""
        self._faults.clear()

    def find(self, api_key: int, context: RequestContext, request: Message) -> ApiFault | None:
        """Return the fault that happens to this request."""
        self._faults = [fault for fault in self._faults if not fault.is_over]
        for fault in self._faults:
            if fault.api_key == api_key and fault.fits(context, request):
                return fault
        return None

    def slow_answer(self, api: str, seconds: float, times: int | None) -> SlowAnswer:
        """Make a fault of answers that leave late."""
        return SlowAnswer(api_key_of(api), times, round(seconds * 1000), self._late)

    def cut_all(self) -> None:
        """End every connection."""
        answers = self._broker.answers
        for connection in list(answers.connections.values()):
            answers.let_go(connection, CUT)

    def failure(
        self, api: str, code: int | str, times: int | None, topic: str | None, place: str | None
    ) -> ApiFailure:
        """Make a failure; ValueError for an API, a code or a place that does not exist."""
        answers = ErrorAnswers(api_key_of(api))
        if not answers.places:
            raise ValueError(f"answers of {api} hold no error code: delay or cut them")
        names = [str(one) for one in answers.places]
        if place is not None and place not in names:
            raise ValueError(f"{api} has no code at {place!r}; it has {', '.join(names)}")
        if topic is None:
            return ApiFailure(answers, times, code_of(code), None, place)
        by_topic = [str(one) for one in answers.places if answers.topic_depth(one) >= 0]
        if not by_topic or (place is not None and place not in by_topic):
            raise ValueError(f"{api} has no code by topic at {place or 'any place'}")
        topics = self._broker.topics

        def is_chosen(name: str | None, topic_id: bytes) -> bool:
            if name:
                return name == topic
            hosted = topics.with_id(topic_id)
            return hosted is not None and hosted.name == topic

        return ApiFailure(answers, times, code_of(code), is_chosen, place)


class _FaultyHandler:
    """Handler of an API, with the faults around it."""

    def __init__(self, faults: Faults, api_key: int, handle: Handle) -> None:
        self._faults = faults
        self._api_key = api_key
        self._handle = handle

    def handle(self, context: RequestContext, request: Message) -> Message | None:
        fault = None
        if context.client_id != HELPER_ID:
            fault = self._faults.find(self._api_key, context, request)
        if fault is None:
            return self._handle(context, request)
        return fault.handle(self._handle, context, request)


# --- Contexts that change the answer on its way


class ChangedAnswer(RequestContext):
    """Context of a request whose answer a fault changes, now or later."""

    def __init__(self, context: RequestContext) -> None:
        super().__init__(
            context.answers,
            context.connection,
            context.api_key,
            context.api_version,
            context.correlation_id,
        )
        self.client_id = context.client_id
        self.asked = context

    def respond_in_pieces(self, response: PiecedResponse) -> None:
        """Decode an answer that was encoded in steps, and respond with its message."""
        chunks = response.finish()
        reader = Reader(b"".join(one for one in chunks if not isinstance(one, FileRegion)), 4)
        decode_response_header(reader, self.api_key, self.api_version)
        self.respond(MESSAGES[self.api_key].decode_response(reader, self.api_version))

    def respond_nothing(self) -> None:
        self.asked.respond_nothing()


class OverwrittenAnswer(ChangedAnswer):
    """Answer of the handler, with a code written over it."""

    def __init__(
        self, context: RequestContext, fault: ApiFault, answers: ErrorAnswers, refusal: ApiRefusal
    ) -> None:
        super().__init__(context)
        self._fault = fault
        self._error_answers = answers
        self._refusal = refusal

    def respond(self, response: Message) -> None:
        # A request without a topic that fails does not count.
        if not self._fault.is_over and self._error_answers.overwrite(response, self._refusal):
            self._fault.count += 1
            if self.api_key == api_keys.API_VERSIONS and self._refusal.code == UNSUPPORTED_VERSION:
                # A client that knows none of our versions reads an answer of version 0 (KIP-511).
                self.asked.api_version = 0
        self.asked.respond(response)


class JoinedAnswer(ChangedAnswer):
    """Answer of the handler for some topics, with the refusal of others."""

    def __init__(
        self, context: RequestContext, answers: ErrorAnswers, refused: Message, refusal: ApiRefusal
    ) -> None:
        super().__init__(context)
        self._error_answers = answers
        self._refused = refused
        self._refusal = refusal

    def respond(self, response: Message) -> None:
        self._error_answers.join(response, self._refused, self._refusal)
        self.asked.respond(response)


class LateAnswer(ChangedAnswer):
    """Answer that leaves some time after it was made."""

    def __init__(self, context: RequestContext, delay_ms: int, late: WaitingPart) -> None:
        super().__init__(context)
        self._delay_ms = delay_ms
        self._late = late

    def respond(self, response: Message) -> None:
        late = LateResponse(self.now_ms + self._delay_ms, (self.asked, response))
        self.asked.operation = late
        self._late.watch(late, [LATE])


class LateResponse(PayloadOperation[tuple[RequestContext, Message]]):
    """Answer that waits for its time, and ends with its connection."""

    def complete_with(self, payload: tuple[RequestContext, Message]) -> None:
        context, response = payload
        context.respond(response)


class LostAnswer(ChangedAnswer):
    """Answer in whose place the connection ends."""

    def respond(self, response: Message) -> None:
        self.asked.answers.let_go(self.asked.connection, CUT)

    def respond_nothing(self) -> None:
        self.asked.answers.let_go(self.asked.connection, CUT)


def _handle_for(handle: Handle, context: ChangedAnswer, request: Message) -> Message | None:
    """Handle a request and send its answer through `context`; return None, as it is sent then."""
    response = handle(context, request)
    # The connection knows only the first context, and gives up its operation when it closes.
    if context.operation is not None:
        context.asked.operation = context.operation
    if response is not None:
        context.respond(response)
    return None


# --- Names


def api_key_of(api: str) -> int:
    """Return the key of an API by Kafka's name; ValueError with a similar name if it is unknown."""
    for key, known in APIS.items():
        if known.name == api:
            return key
    near = Spelling([known.name for known in APIS.values()]).near(api)
    hint = f"did you mean {near}?" if near else "names are Kafka's, such as Produce or Fetch"
    raise ValueError(f"there is no API {api!r}; {hint}")


def code_of(code: int | str) -> int:
    """Return an error code by its number or by Kafka's name."""
    known = [one for one in ERRORS.values() if one.code != NONE]
    for one in known:
        if code in (one.code, one.name):
            return one.code
    near = Spelling([one.name for one in known]).near(str(code))
    hint = f"did you mean {near}?" if near else "write a number or a name of Kafka's"
    raise ValueError(f"there is no error code {code!r}; {hint}")
