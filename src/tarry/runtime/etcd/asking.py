"""Questions to etcd of a command: one after the other, each waits for its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from tarry.base.doors import Event
from tarry.base.errors import TarryError
from tarry.base.etcd import (
    CallFailed,
    Compare,
    Etcd,
    EtcdAnswer,
    EtcdEvent,
    Operation,
    RowsRead,
    StatusRead,
    TransactionEnded,
)

# A call that has no answer by then is given up, and begun anew if it changes nothing.
ANSWER_MS_MAX: Final = 5_000
# So long a question is asked again and again.
QUESTION_MS_MAX: Final = 15_000
RETRY_MS: Final = 250

A = TypeVar("A", bound=EtcdAnswer)


class QuestionFailed(TarryError):
    """Failure of etcd to answer, or to take a change; the sentence says what to do."""


class AskedEtcd:
    """The door `Etcd`, asked as by a command.  `wait` waits so many ms at most for events."""

    def __init__(
        self,
        etcd: Etcd,
        wait: Callable[[int], Sequence[Event]],
        now_ms: Callable[[], int],
        text: str,
    ) -> None:
        self._etcd = etcd
        self._wait = wait
        self._now_ms = now_ms
        # The members, for a sentence.
        self.text = text

    def status(self) -> StatusRead:
        """Return how the member that answers is; `QuestionFailed` if none does."""
        return self._ask(self._etcd.begin_status, StatusRead)

    def read(self, prefix: bytes) -> RowsRead:
        """Return all rows below a prefix; `QuestionFailed` if they cannot be had."""
        return self._ask(lambda: self._etcd.begin_read(prefix), RowsRead)

    def transact(self, compares: list[Compare], operations: list[Operation]) -> bool:
        """Return whether the transaction is known to be done; `QuestionFailed` if it never will be.

        False: something has changed, or an answer was lost.  Who asks reads anew.
        """
        answer = self._end_of(self._etcd.begin_transaction(compares, operations))
        if isinstance(answer, TransactionEnded):
            return answer.is_done
        assert isinstance(answer, CallFailed)
        if not answer.is_unknown:
            raise QuestionFailed(
                f"etcd did not take the change ({answer.reason}): see to etcd, then repeat the "
                "command, which goes on where this one ended"
            )
        return False

    def _ask(self, begin: Callable[[], int], kind: type[A]) -> A:
        end_ms = self._now_ms() + QUESTION_MS_MAX
        while True:
            answer = self._end_of(begin())
            if isinstance(answer, kind):
                return answer
            assert isinstance(answer, CallFailed)
            if self._now_ms() >= end_ms:
                raise QuestionFailed(
                    f"etcd at {self.text} does not answer ({answer.reason}): start it, or name "
                    "another address with --store"
                )
            self._pause()

    def _pause(self) -> None:
        end_ms = self._now_ms() + RETRY_MS
        while (left_ms := end_ms - self._now_ms()) > 0:
            self._wait(left_ms)

    def _end_of(self, call_id: int) -> EtcdAnswer:
        """Wait for the answer of a call, which fails if it takes too long."""
        end_ms = self._now_ms() + ANSWER_MS_MAX
        is_cancelled = False
        while True:
            left_ms = end_ms - self._now_ms()
            if left_ms <= 0 and not is_cancelled:
                is_cancelled = True
                # Ends it as an event.
                self._etcd.cancel(call_id)
            for event in self._wait(max(left_ms, 0)):
                if isinstance(event, EtcdEvent) and event.answer.call_id == call_id:
                    return event.answer
