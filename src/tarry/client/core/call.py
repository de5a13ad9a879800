"""Call: something asked of the cluster once, repeated until it is answered or its time is up.

A call knows whom to ask (anyone, the controller, one broker) and what an answer means; `Calls`
sends it, waits between attempts, and finds another broker when one is gone.
"""

from __future__ import annotations

from typing import Any, Final

from tarry.client.core.connections import Connections
from tarry.client.core.metadata import Metadata
from tarry.client.core.refresh import Refresh
from tarry.link.errors import BrokerUnreachable, ClientError, timed_out
from tarry.link.exchange import VERSION_UNLIMITED, Decoder, Exchange
from tarry.link.link import Link
from tarry.link.tasks import Task
from tarry.protocol import api_keys
from tarry.protocol.message import Message

ANYONE: Final = -1
CONTROLLER: Final = -2


class Call:
    """To be subclassed.  `result` is what `interpret` returned, `error` why there is none."""

    # False: a failure ends it, whether it may pass or not; whoever asked decides.
    repeats = True

    def __init__(self, api_key: int, decode: Decoder[Any], target: int = ANYONE) -> None:
        self.api_key = api_key
        self.decode = decode
        self.target = target
        self.is_done = False
        self.result: Any = None
        self.error: ClientError | None = None
        self.began_ms = 0
        self.deadline_ms = 0
        self.attempts = 0
        self.last_error: ClientError | None = None

    def version_max(self) -> int:
        return VERSION_UNLIMITED

    def build(self, version: int, timeout_ms: int) -> Message:
        """The request; the broker itself may take `timeout_ms` where the API has such a field."""
        raise NotImplementedError

    def interpret(self, response: Any, version: int) -> Any:
        """The result.  Raises ClientError; a retriable one is tried again."""
        raise NotImplementedError


class Calls:
    """The calls under way of one core."""

    def __init__(self, connections: Connections, metadata: Metadata, refresh: Refresh) -> None:
        self.connections = connections
        self.metadata = metadata
        self.refresh = refresh
        self._under_way: dict[_Attempts, None] = {}

    @property
    def are_under_way(self) -> bool:
        return bool(self._under_way)

    def begin(self, call: Call, timeout_ms: int, now_ms: int) -> None:
        call.began_ms = now_ms
        call.deadline_ms = now_ms + timeout_ms
        attempts = _Attempts(self, call)
        self._under_way[attempts] = None
        attempts.begin(now_ms)

    def end(self, attempts: _Attempts) -> None:
        self._under_way.pop(attempts, None)

    def connection_for(self, call: Call, now_ms: int) -> Link | None:
        """Whom to ask; None while it is not known, and then metadata is asked for."""
        target = self.metadata.controller_id if call.target == CONTROLLER else call.target
        if target == ANYONE and call.target == ANYONE:
            return self.connections.for_anyone(now_ms)
        connection = self.connections.for_broker(target)
        if connection is None or (call.target == CONTROLLER and call.attempts > 1):
            self.refresh.want(now_ms)
        return connection

    def fail_all(self, error: ClientError) -> None:
        for attempts in list(self._under_way):
            attempts.finish(None, error)


class _Attempts:
    """One call with its deadline, its pauses and the exchange that is under way."""

    def __init__(self, owner: Calls, call: Call) -> None:
        self.owner = owner
        self.call = call
        self._deadline = Task(self._give_up)
        self._retry = Task(self._try)

    def begin(self, now_ms: int) -> None:
        self.owner.connections.tasks.schedule(self._deadline, self.call.deadline_ms)
        self._try(now_ms)

    def _try(self, now_ms: int) -> None:
        call = self.call
        call.attempts += 1
        connection = self.owner.connection_for(call, now_ms)
        if connection is None:
            if call.repeats:
                self._pause(now_ms)
            else:
                self.finish(None, BrokerUnreachable(f"no broker {call.target} is known"))
            return
        left_ms = call.deadline_ms - now_ms
        timeout_ms = min(self.owner.connections.settings.request_timeout_ms, left_ms)
        connection.send(_CallExchange(self, timeout_ms), now_ms)

    def _pause(self, now_ms: int) -> None:
        pause_ms = self.owner.connections.retry_pause_ms(self.call.attempts)
        self.owner.connections.tasks.schedule(self._retry, now_ms + pause_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        if self.call.is_done:
            return
        self.call.last_error = error
        if not (error.is_retriable and self.call.repeats):
            self.finish(None, error)
        elif now_ms < self.call.deadline_ms:
            self.owner.refresh.want(now_ms)
            self._pause(now_ms)
        else:
            self._give_up(now_ms)

    def on_response(self, response: Any, version: int, now_ms: int) -> None:
        if self.call.is_done:
            return
        try:
            result = self.call.interpret(response, version)
        except ClientError as error:
            self.on_failure(error, now_ms)
        else:
            self.finish(result, None)

    def _give_up(self, now_ms: int) -> None:
        owner = self.owner
        reason = self.call.last_error or owner.refresh.last_error or owner.connections.last_failure
        waited_ms = now_ms - self.call.began_ms
        what = f"{api_keys.APIS[self.call.api_key].name} was not answered"
        self.finish(None, timed_out(what + self._stranger(), waited_ms, reason))

    def _stranger(self) -> str:
        """Why nobody was asked, if a broker was to be asked that the cluster does not have."""
        target, brokers = self.call.target, self.owner.metadata.brokers
        if target < 0 or not brokers or target in brokers:
            return ""
        known = ", ".join(f"{broker_id}" for broker_id in sorted(brokers))
        return f" (there is no broker {target}; the cluster has {known})"

    def finish(self, result: Any, error: ClientError | None) -> None:
        call = self.call
        if call.is_done:
            return
        call.is_done = True
        call.result = result
        call.error = error
        tasks = self.owner.connections.tasks
        tasks.cancel(self._deadline)
        tasks.cancel(self._retry)
        self.owner.end(self)


class _CallExchange(Exchange[Any]):
    """One attempt at a call."""

    def __init__(self, attempts: _Attempts, timeout_ms: int) -> None:
        super().__init__(attempts.call.api_key, attempts.call.decode, timeout_ms)
        self.attempts = attempts

    def version_max(self) -> int:
        return self.attempts.call.version_max()

    def build(self, version: int) -> Message:
        return self.attempts.call.build(version, self.timeout_ms)

    def on_response(self, response: Any, now_ms: int) -> None:
        self.attempts.on_response(response, self.version, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self.attempts.on_failure(error, now_ms)
