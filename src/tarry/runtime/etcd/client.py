"""The door `Etcd`: calls over one link to a member of etcd; if it is lost, to the next member."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from google.protobuf.message import DecodeError

from tarry.base.etcd import (
    CallFailed,
    Compare,
    EtcdAnswer,
    EtcdEvent,
    LeaseGranted,
    LeaseRenewed,
    LeaseRevoked,
    Operation,
    Row,
    RowsRead,
    RowsTallied,
    StatusRead,
    TransactionEnded,
    WatchEnded,
)
from tarry.runtime.etcd import calls, etcd_pb2 as pb
from tarry.runtime.etcd.grpc_link import OK, CallEnded, CallMessage, LinkBroken
from tarry.runtime.etcd.socket_link import Endpoint, SocketLink
from tarry.runtime.etcd.watching import Watching
from tarry.runtime.look_ups import Found, SocketAddress, numeric_addresses
from tarry.runtime.reactor import Reactor

# With this header a member without a leader refuses a call instead of letting it wait.
_HEADERS: Final = [("hasleader", "true")]


class Credentials:
    """Name and password of a user of etcd, and the token that a member returned for them."""

    def __init__(self, user: str, password: str) -> None:
        self.request = pb.AuthenticateRequest(name=user, password=password).SerializeToString()
        self.token = ""


class _EtcdCall:
    """Call without an answer yet."""

    def __init__(self, call_id: int, path: str, request: bytes) -> None:
        self.call_id = call_id
        self.path = path
        self.request = request
        # Stream of the call; 0 until it is sent.
        self.stream_id = 0
        # Bytes received on the link at the time when the call was sent.
        self.received_bytes = 0
        self.message: bytes | None = None
        self.is_tally = False
        # For a read: the rows so far, and the revision that all pages have in common.
        self.prefix = b""
        self.rows: list[Row] = []
        self.rows_size = 0
        self.page_rows = calls.ROWS_PER_PAGE_FIRST
        self.revision = 0

    @property
    def changes_nothing(self) -> bool:
        """True for calls that only read."""
        return self.path in (calls.RANGE, calls.STATUS)


class EtcdClient:
    """Client of etcd on the reactor of one broker; implements the door `Etcd`.

    `endpoints` are tried in turn.  If there is no link, the next call makes one.  If that fails,
    the calls that wait for it fail, and the caller decides when to try again.
    """

    def __init__(
        self,
        reactor: Reactor,
        endpoints: Sequence[Endpoint],
        *,
        look_up: Callable[[str, int, Found], None],
        tls: ssl.SSLContext | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._reactor = reactor
        self._endpoints = endpoints
        self._look_up = look_up
        # Number of links begun, by which the result of an outdated look-up is recognized.
        self._links_begun = 0
        self._is_resolving = False
        self._tls = tls
        self._credentials = credentials
        self._next_endpoint = 0
        self._last_call_id = 0
        self._link: SocketLink | None = None
        # Stream of the request for a token; 0 if no token is needed, or if there is one.
        self._authenticating = 0
        self._token_message: bytes | None = None
        self._calls: dict[int, _EtcdCall] = {}
        self._calls_by_stream: dict[int, _EtcdCall] = {}
        self._watches: dict[int, Watching] = {}
        self._watches_by_stream: dict[int, Watching] = {}

    # --- The door.

    def begin_transaction(self, compares: list[Compare], operations: list[Operation]) -> int:
        return self._begin(calls.TRANSACTION, calls.encode_transaction(compares, operations))

    def begin_read(self, prefix: bytes) -> int:
        call = self._new_call(calls.RANGE, b"")
        call.request = calls.encode_page(prefix, prefix, 0, call.page_rows)
        call.prefix = prefix
        self._send(call)
        return call.call_id

    def begin_tally(self, prefix: bytes, from_revision: int, at_revision: int) -> int:
        request = calls.encode_tally(prefix, from_revision, at_revision)
        call = self._new_call(calls.RANGE, request)
        call.is_tally = True
        self._send(call)
        return call.call_id

    def begin_grant(self, ttl_ms: int) -> int:
        request = pb.LeaseGrantRequest(TTL=-(-ttl_ms // 1_000))
        return self._begin(calls.GRANT, request.SerializeToString())

    def begin_renew(self, lease_id: int) -> int:
        return self._begin(calls.RENEW, pb.LeaseKeepAliveRequest(ID=lease_id).SerializeToString())

    def begin_revoke(self, lease_id: int) -> int:
        return self._begin(calls.REVOKE, pb.LeaseRevokeRequest(ID=lease_id).SerializeToString())

    def begin_status(self) -> int:
        return self._begin(calls.STATUS, pb.StatusRequest().SerializeToString())

    def watch(self, prefix: bytes, from_revision: int) -> int:
        call = self._new_call(calls.WATCH, calls.encode_watch(prefix, from_revision))
        self._send(call)
        return call.call_id

    def ask_progress(self) -> None:
        link = self._link
        request = pb.WatchRequest(progress_request=pb.WatchProgressRequest()).SerializeToString()
        if link is not None:
            for stream_id in self._watches_by_stream:
                link.grpc.send(stream_id, request, is_last=False)
            link.flush()

    def cancel(self, call_id: int) -> None:
        call = self._calls.get(call_id)
        watching = self._watches.get(call_id)
        link = self._link
        if watching is not None:
            self._forget_watch(watching)
            self._tell(WatchEnded(call_id, "cancelled"))
            if link is not None:
                link.grpc.cancel(watching.stream_id)
                link.flush()
        elif call is not None:
            self._fail(call, "not answered in time")
            if link is None or not call.stream_id:
                return
            if link.received_bytes == call.received_bytes:
                link.close()
                self._on_lost(f"{link.endpoint.text}: silent")
            else:
                link.grpc.cancel(call.stream_id)
                link.flush()

    def close(self) -> None:
        """Close the link; calls that wait get no event."""
        self._is_resolving = False
        if self._link is not None:
            self._link.close()
            self._link = None

    # --- Calls.

    def _begin(self, path: str, request: bytes) -> int:
        call = self._new_call(path, request)
        self._send(call)
        return call.call_id

    def _new_call(self, path: str, request: bytes) -> _EtcdCall:
        self._last_call_id += 1
        call = _EtcdCall(self._last_call_id, path, request)
        self._calls[call.call_id] = call
        return call

    def _send(self, call: _EtcdCall) -> None:
        """Send a call on the link; without a link make one, which sends the call later."""
        if self._is_resolving:
            return
        if self._link is None or not self._link.grpc.is_open:
            self._connect()
        elif not self._authenticating:
            link = self._link
            self._send_on(link, call)
            link.flush()

    def _send_on(self, link: SocketLink, call: _EtcdCall) -> None:
        if not link.grpc.is_open:
            self._fail(call, f"{link.endpoint.text}: the member is going away", is_unknown=False)
            return
        headers = list(_HEADERS)
        if self._credentials is not None:
            headers.append(("token", self._credentials.token))
        try:
            call.stream_id = link.grpc.begin(call.path, headers)
        except LinkBroken as error:
            self._on_refused(link, call, f"{link.endpoint.text}: {error}")
            return
        call.received_bytes = link.received_bytes
        self._calls_by_stream[call.stream_id] = call
        is_watch = call.path == calls.WATCH
        link.grpc.send(call.stream_id, call.request, is_last=not is_watch)
        if is_watch:
            del self._calls[call.call_id], self._calls_by_stream[call.stream_id]
            watching = Watching(call.call_id, call.stream_id)
            self._watches[call.call_id] = watching
            self._watches_by_stream[call.stream_id] = watching

    def _on_refused(self, link: SocketLink, call: _EtcdCall, reason: str) -> None:
        """Fail a call that the member refuses; give up the link if no other call is on it."""
        if self._calls_by_stream or self._watches_by_stream:
            self._fail(call, reason, is_unknown=False)
        else:
            link.close()
            self._on_lost(reason)

    def _fail(self, call: _EtcdCall, reason: str, *, is_unknown: bool = True) -> None:
        """End a call without its answer."""
        del self._calls[call.call_id]
        self._calls_by_stream.pop(call.stream_id, None)
        if call.path == calls.WATCH:
            self._tell(WatchEnded(call.call_id, reason))
            return
        is_unknown = is_unknown and call.stream_id > 0 and not call.changes_nothing
        self._tell(CallFailed(call.call_id, reason, is_unknown))

    def _tell(self, answer: EtcdAnswer) -> None:
        self._reactor.post(EtcdEvent(answer))

    def _forget_watch(self, watching: Watching) -> None:
        del self._watches[watching.call_id], self._watches_by_stream[watching.stream_id]

    # --- The link.

    def _connect(self) -> None:
        """Begin a link to the next endpoint; the calls that wait are sent once it is connected."""
        if self._link is not None:
            # The member answers only the calls that are under way.
            self._link.close()
            self._on_lost(f"{self._link.endpoint.text}: the member is going away")
        endpoint = self._endpoints[self._next_endpoint % len(self._endpoints)]
        self._next_endpoint += 1
        self._links_begun += 1
        addresses = numeric_addresses(endpoint.host, endpoint.port)
        if addresses:
            self._connect_to(endpoint, addresses)
            return
        self._is_resolving = True
        found = partial(self._on_found, self._links_begun, endpoint)
        self._look_up(endpoint.host, endpoint.port, found)

    def _on_found(
        self, number: int, endpoint: Endpoint, addresses: list[SocketAddress], error: str
    ) -> None:
        """Continue the link whose name was looked up, unless it was given up."""
        if number != self._links_begun or not self._is_resolving:
            return
        self._is_resolving = False
        if addresses:
            self._connect_to(endpoint, addresses)
        else:
            self._on_lost(f"{endpoint.text}: {error or 'no address'}")

    def _connect_to(self, endpoint: Endpoint, addresses: list[SocketAddress]) -> None:
        try:
            address = (str(addresses[0][1][0]), endpoint.port)
            link = SocketLink(
                endpoint, address, self._reactor, self._tls, self._on_heard, self._on_lost
            )
        except OSError as error:
            self._on_lost(f"{endpoint.text}: {error.strerror or error}")
            return
        self._link = link
        if link.first_error:
            link.close()
            self._on_lost(f"{endpoint.text}: {link.first_error}")
            return
        if self._credentials is None:
            self._send_waiting(link)
            return
        self._token_message = None
        self._authenticating = link.grpc.begin(calls.AUTHENTICATE, [])
        link.grpc.send(self._authenticating, self._credentials.request, is_last=True)
        link.flush()

    def _send_waiting(self, link: SocketLink) -> None:
        for call in list(self._calls.values()):
            if not call.stream_id and self._link is link:
                self._send_on(link, call)
        link.flush()

    def _on_lost(self, reason: str) -> None:
        link, self._link = self._link, None
        self._authenticating = 0
        for call in list(self._calls.values()):
            self._fail(call, reason, is_unknown=link is not None and link.has_sent)
        for watching in list(self._watches.values()):
            self._forget_watch(watching)
            self._tell(WatchEnded(watching.call_id, reason))

    def _on_heard(self, found: list[CallMessage | CallEnded]) -> None:
        for each in found:
            link = self._link
            if link is None:
                return
            try:
                self._hear(link, each)
            except (DecodeError, LinkBroken) as error:
                what = str(error) if isinstance(error, LinkBroken) else "it cannot be decoded"
                link.close()
                self._on_lost(f"{link.endpoint.text}: an answer that is not etcd's: {what}")

    def _hear(self, link: SocketLink, heard: CallMessage | CallEnded) -> None:
        watching = self._watches_by_stream.get(heard.stream_id)
        call = self._calls_by_stream.get(heard.stream_id)
        if watching is not None:
            self._hear_watch(link, watching, heard)
        elif call is not None:
            if isinstance(heard, CallMessage):
                call.message = heard.data
            else:
                self._end(link, call, heard)
        elif heard.stream_id == self._authenticating:
            self._hear_token(link, heard)

    def _hear_token(self, link: SocketLink, heard: CallMessage | CallEnded) -> None:
        assert self._credentials is not None
        if isinstance(heard, CallMessage):
            self._token_message = heard.data
        elif heard.status == OK and self._token_message is not None:
            response = pb.AuthenticateResponse.FromString(self._token_message)
            self._credentials.token = response.token
            self._authenticating = 0
            self._send_waiting(link)
        else:
            link.close()
            self._on_lost(f"{link.endpoint.text}: {heard.text}")

    def _hear_watch(
        self, link: SocketLink, watching: Watching, heard: CallMessage | CallEnded
    ) -> None:
        if isinstance(heard, CallMessage):
            for answer in watching.read(heard.data):
                self._tell(answer)
            if watching.is_ended:
                self._forget_watch(watching)
                link.grpc.cancel(watching.stream_id)
        else:
            self._forget_watch(watching)
            self._tell(WatchEnded(watching.call_id, f"{link.endpoint.text}: {heard.text}"))

    def _end(self, link: SocketLink, call: _EtcdCall, ended: CallEnded) -> None:
        del self._calls_by_stream[call.stream_id]
        if ended.status == calls.NOT_FOUND and call.path == calls.REVOKE:
            del self._calls[call.call_id]
            self._tell(LeaseRevoked(call.call_id))
            return
        if ended.status != OK or call.message is None:
            text = ended.text or "the member ended the call without an answer"
            is_unknown = not calls.is_refusal(ended.status)
            self._fail(call, f"{link.endpoint.text}: {text}", is_unknown=is_unknown)
            if ended.status == calls.UNAUTHENTICATED and self._link is link:
                # A token expires; the next link asks for another one.
                link.close()
                self._on_lost(f"{link.endpoint.text}: {text}")
            return
        answer = self._answer(call, call.message)
        if answer is None:
            self._send_on(link, call)
            return
        del self._calls[call.call_id]
        self._tell(answer)

    def _answer(self, call: _EtcdCall, message: bytes) -> EtcdAnswer | None:
        """Return the answer in a call's message; None if another page must follow."""
        call_id = call.call_id
        match call.path:
            case calls.TRANSACTION:
                done = pb.TxnResponse.FromString(message)
                return TransactionEnded(call_id, done.succeeded, done.header.revision)
            case calls.RANGE:
                return self._answer_page(call, pb.RangeResponse.FromString(message), len(message))
            case calls.GRANT:
                granted = pb.LeaseGrantResponse.FromString(message)
                return LeaseGranted(call_id, granted.ID, granted.TTL * 1_000)
            case calls.RENEW:
                renewed = pb.LeaseKeepAliveResponse.FromString(message)
                return LeaseRenewed(call_id, renewed.TTL * 1_000)
            case calls.REVOKE:
                return LeaseRevoked(call_id)
            case _:
                status = pb.StatusResponse.FromString(message)
                header = status.header
                return StatusRead(
                    call_id,
                    status.version,
                    header.cluster_id,
                    header.revision,
                    list(status.errors),
                    status.db_size,
                    status.db_size_in_use,
                    status.db_size_quota,
                )

    def _answer_page(self, call: _EtcdCall, page: pb.RangeResponse, size: int) -> EtcdAnswer | None:
        if call.is_tally:
            changed = {pair.key: pair.mod_revision for pair in page.kvs}
            return RowsTallied(call.call_id, page.count, changed)
        call.rows_size += size
        if call.rows_size > calls.READ_BYTES_MAX:
            raise LinkBroken(f"more than {calls.READ_BYTES_MAX} bytes of rows below one prefix")
        last_key = call.rows[-1].key if call.rows else b""
        call.rows += [calls.row_of(pair) for pair in page.kvs]
        call.revision = call.revision or page.header.revision
        if not page.more:
            return RowsRead(call.call_id, call.rows, call.revision)
        if not page.kvs or page.kvs[-1].key <= last_key:
            raise LinkBroken("a page of rows that does not go on where the one before it ended")
        call.message = None
        call.page_rows = calls.rows_of_next_page(call.page_rows, size)
        begin = page.kvs[-1].key + b"\0"
        call.request = calls.encode_page(call.prefix, begin, call.revision, call.page_rows)
        return None
