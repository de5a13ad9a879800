"""Identity: the producer id and epoch, with which a broker recognizes a repeated batch.

The id is requested when the first batch is ready.  A higher epoch is requested when a broker has
lost the sequences of a partition (KIP-360).  Each partition moves to the new epoch as soon as it
has no batch of the old epoch in flight.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import NONE
from tarry.client.core.routing import ANYONE
from tarry.client.errors import BrokerError
from tarry.link.errand import Call, Errands
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    decode_init_producer_id_response,
)

# First version in which a request has the id and epoch to follow (KIP-360).
VERSION_WITH_EPOCH: Final = 3

# An epoch has 16 bits; a new producer id follows the last epoch.
EPOCH_MAX: Final = 0x7FFF


class ProducerIdentity:
    """The newest id and epoch; -1 before the first answer."""

    def __init__(self, errands: Errands, timeout_ms: int) -> None:
        self.producer_id = -1
        self.producer_epoch = -1
        self.error: ClientError | None = None
        # Retriable error of the last request.
        self.last_error: ClientError | None = None
        self._errands = errands
        self._timeout_ms = timeout_ms
        self._call: InitProducerId | None = None

    @property
    def trouble(self) -> str:
        """Reason why there is no id yet; empty if no reason is known."""
        reason = self.last_error if self._call is None else self._call.last_error or self.last_error
        return "" if reason is None else str(reason)

    @property
    def is_known(self) -> bool:
        return self.producer_id >= 0

    def want(self, now_ms: int) -> None:
        """Request the first id, once."""
        if not self.is_known:
            self._ask(now_ms)

    def want_after(self, producer_id: int, producer_epoch: int, now_ms: int) -> None:
        """Request the epoch after this one, unless there is a newer one already."""
        if (producer_id, producer_epoch) == (self.producer_id, self.producer_epoch):
            self._ask(now_ms)

    def _ask(self, now_ms: int) -> None:
        if self._call is not None or self.error is not None:
            return
        self._call = InitProducerId(self.producer_id, self.producer_epoch)
        self._errands.ask(self._call, self._timeout_ms, now_ms)

    def take_answer(self) -> None:
        """Take the answer if it has arrived; called in each turn."""
        call = self._call
        if call is None or not call.is_done:
            return
        self._call = None
        if call.error is None:
            self.producer_id, self.producer_epoch = call.result
        elif not call.error.is_retriable:
            # A permanent error: no batch can be sent any more.
            self.error = call.error
        else:
            self.last_error = call.last_error or call.error


class InitProducerId(Call[InitProducerIdResponse, tuple[int, int]]):
    """Call for an id and its epoch; -1 and -1 request a new id."""

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        super().__init__(api_keys.INIT_PRODUCER_ID, decode_init_producer_id_response, ANYONE)
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch

    def build(self, version: int) -> Message:
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=self.timeout_ms
        )
        if version >= VERSION_WITH_EPOCH and self.producer_epoch < EPOCH_MAX:
            request.producer_id = self.producer_id
            request.producer_epoch = self.producer_epoch
        return request

    def interpret(self, response: InitProducerIdResponse) -> tuple[int, int]:
        if response.error_code != NONE:
            raise BrokerError(
                response.error_code,
                "the broker gives no producer id; enable.idempotence=false needs none",
            )
        return response.producer_id, response.producer_epoch
