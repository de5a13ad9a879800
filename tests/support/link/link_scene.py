"""LinkScene: links without a client, and the brokers at their other ends by hand.

A test sends exchanges, lets time pass, and answers requests in the order that it wants.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

from tarry.base.doors import connected_to, disconnected, received
from tarry.link.errand import Call, Errands
from tarry.link.errors import ClientError, timed_out
from tarry.link.events import Address, Close, Connect, LinkEvent, Output, Resolve, Resolved, Send
from tarry.link.exchange import VERSION_UNLIMITED, Exchange
from tarry.link.link import Link
from tarry.link.links import Links, LinkSettings
from tarry.link.tasks import Tasks
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_response
from tarry.protocol.headers import decode_request_header
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tarry.protocol.messages.heartbeat import (
    HeartbeatRequest,
    HeartbeatResponse,
    decode_heartbeat_response,
)
from tarry.protocol.registry import MESSAGES
from tarry.wire.reader import Reader

SETTINGS = LinkSettings(
    client_id="asker",
    request_timeout_ms=1_000,
    connection_setup_timeout_ms=2_000,
    reconnect_backoff_ms=50,
    reconnect_backoff_ms_max=1_000,
    retry_backoff_ms=100,
    retry_backoff_ms_max=1_000,
    connection_idle_ms_max=60_000,
)

ADDRESSES = {1: Address("10.0.0.1", 9092), 2: Address("10.0.0.2", 9092)}


class Request:
    """A request as the broker at the other end got it."""

    def __init__(self, connection_id: int, frame: bytes) -> None:
        reader = Reader(frame)
        header = decode_request_header(reader)
        self.connection_id = connection_id
        self.api_key = int(header.api_key)
        self.version = int(header.api_version)
        self.correlation_id = int(header.correlation_id)
        self.client_id = header.client_id
        self.message: Any = MESSAGES[header.api_key].decode_request(reader, header.api_version)

    def answer(self, message: Message, *, version: int = -1, correlation_id: int = -1) -> bytes:
        chunks = encode_response(
            self.api_key,
            self.version if version < 0 else version,
            self.correlation_id if correlation_id < 0 else correlation_id,
            message,
        )
        return b"".join(bytes(chunk) for chunk in chunks)


class Beat(Exchange[HeartbeatResponse]):
    """An exchange that remembers how it ended."""

    def __init__(self, name: str = "", timeout_ms: int = 1_000) -> None:
        super().__init__(api_keys.HEARTBEAT, decode_heartbeat_response, timeout_ms)
        self.name = name
        self.generation_id = 1
        self.newest = VERSION_UNLIMITED
        self.ends: list[int | str | ClientError] = []

    def version_max(self) -> int:
        return self.newest

    def build(self, version: int) -> Message:
        return HeartbeatRequest("group", self.generation_id, self.name)

    def on_response(self, response: HeartbeatResponse, now_ms: int) -> None:
        self.ends.append(int(response.error_code))

    def on_sent(self, now_ms: int) -> None:
        self.ends.append("sent")

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self.ends.append(error)

    @property
    def error(self) -> ClientError:
        (end,) = self.ends
        assert isinstance(end, ClientError)
        return end


class LinkScene:
    """Links to the brokers 1 and 2, and their errands; calls go to the broker they name."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.tasks = Tasks(self.now_ms)
        self.links = Links(SETTINGS, self.tasks, Random(7))
        self.links.set_brokers(ADDRESSES, "", self.now_ms)
        self.errands = Errands(self.links, self)
        # The brokers' answer to ApiVersions; None: nothing.
        self.ranges: dict[int, tuple[int, int]] | None = {
            key: (api.version_min, api.version_max) for key, api in api_keys.APIS.items()
        }
        # Why connections to an address are refused; "" for no answer at all.
        self.refusals: dict[Address, str] = {}
        # The addresses of a name that has others than itself.
        self.addresses: dict[Address, list[Address]] = {}
        self.connects: list[tuple[int, Address]] = []
        self.closes: list[int] = []
        # Requests that have no answer yet, but for ApiVersions.
        self.requests: list[Request] = []
        self.failures_told = 0
        self._outputs: deque[Output] = deque()

    def link(self, broker_id: int = 1) -> Link:
        link = self.links.for_broker(broker_id)
        assert link is not None
        return link

    def send(self, *exchanges: Beat) -> None:
        for exchange in exchanges:
            self.link().send(exchange, self.now_ms)
        self.perform()

    def reply(self, request: Request, code: int = 0, *, throttle_ms: int = 0) -> None:
        self.tell(request.connection_id, request.answer(HeartbeatResponse(throttle_ms, code)))

    def tell(self, connection_id: int, data: bytes) -> None:
        """Have bytes of the broker arrive."""
        self.handle(received(connection_id, data))

    def handle(self, event: LinkEvent) -> None:
        self.links.handle(event, self.now_ms)
        self.perform()

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass, in steps from one thing that is due to the next."""
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            due_ms = self.tasks.next_due_ms()
            self.now_ms = end_ms if due_ms is None else min(max(due_ms, self.now_ms + 1), end_ms)
            self.tasks.advance(self.now_ms)
            self.errands.work(self.now_ms)
            self.perform()

    def perform(self) -> None:
        """Do what the links ask for, until they ask for nothing."""
        self._outputs.extend(self.links.take_outputs())
        while self._outputs:
            output = self._outputs.popleft()
            if isinstance(output, Resolve):
                found = self.addresses.get(output.address, [output.address])
                self.handle(Resolved(output.connection_id, found))
            elif isinstance(output, Connect):
                self._connect(output)
            elif isinstance(output, Send):
                self._receive(Request(output.connection_id, output.data[4:]))
            else:
                assert isinstance(output, Close)
                self.closes.append(output.connection_id)

    def _connect(self, output: Connect) -> None:
        self.connects.append((self.now_ms, output.address))
        refusal = self.refusals.get(output.address)
        if refusal is None:
            self.handle(connected_to(output.connection_id, str(output.address)))
        elif refusal:
            self.handle(disconnected(output.connection_id, refusal))

    def _receive(self, request: Request) -> None:
        if request.api_key != api_keys.API_VERSIONS:
            self.requests.append(request)
        elif self.ranges is not None:
            answer = ApiVersionsResponse(
                0, [ApiVersion(key, *versions) for key, versions in self.ranges.items()]
            )
            self.tell(request.connection_id, request.answer(answer))
        else:
            self.requests.append(request)

    # --- The router of the errands

    def link_for(self, call: Call[Any, Any], now_ms: int) -> Link | None:
        return self.links.for_broker(call.target)

    def on_failure(self, now_ms: int) -> None:
        self.failures_told += 1

    def late_error(self, call: Call[Any, Any], waited_ms: int) -> ClientError:
        return timed_out("nothing was heard", waited_ms, call.last_error)
