"""Identity: the producer id and epoch that make repeats harmless.

Asked for when the first batch wants to leave, and again with a higher epoch when a broker lost
count of a partition's sequences (KIP-360).  Partitions go over to a new epoch one by one, each
when nothing of the old one is under way any more.
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

# From this version on a request may carry the id and epoch that it wants to follow (KIP-360).
VERSION_WITH_EPOCH: Final = 3

# An epoch is 16 bits; after the last one comes a new producer id.
EPOCH_MAX: Final = 0x7FFF


class ProducerIdentity:
    """The newest id and epoch; -1 until the broker gave one."""

    def __init__(self, errands: Errands, timeout_ms: int) -> None:
        self.producer_id = -1
        self.producer_epoch = -1
        self.error: ClientError | None = None
        # Why the last question had no answer, when that may pass.
        self.last_error: ClientError | None = None
        self._errands = errands
        self._timeout_ms = timeout_ms
        self._call: InitProducerId | None = None

    @property
    def trouble(self) -> str:
        """Reason why no broker has given an id yet; empty if none is known."""
        reason = self.last_error if self._call is None else self._call.last_error or self.last_error
        return "" if reason is None else str(reason)

    @property
    def is_known(self) -> bool:
        return self.producer_id >= 0

    def want(self, now_ms: int) -> None:
        """Have the first id asked for, once."""
        if not self.is_known:
            self._ask(now_ms)

    def want_after(self, producer_id: int, producer_epoch: int, now_ms: int) -> None:
        """Have the epoch after this one asked for, unless a newer one is there already."""
        if (producer_id, producer_epoch) == (self.producer_id, self.producer_epoch):
            self._ask(now_ms)

    def _ask(self, now_ms: int) -> None:
        if self._call is not None or self.error is not None:
            return
        self._call = InitProducerId(self.producer_id, self.producer_epoch)
        self._errands.ask(self._call, self._timeout_ms, now_ms)

    def take_answer(self) -> None:
        """Look whether the answer is there; called each turn."""
        call = self._call
        if call is None or not call.is_done:
            return
        self._call = None
        if call.error is None:
            self.producer_id, self.producer_epoch = call.result
        elif not call.error.is_retriable:
            # Nothing can be sent any more.  What may pass is asked again by whoever wants to send.
            self.error = call.error
        else:
            self.last_error = call.last_error or call.error


class InitProducerId(Call[InitProducerIdResponse, tuple[int, int]]):
    """Call for an id and its epoch; -1 and -1 ask for an id that nobody has had."""

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
