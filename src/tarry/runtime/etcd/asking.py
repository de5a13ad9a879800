"""Questions of a command to etcd: one after the other, each waits for its answer."""

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

# Longest wait for one answer; the call is then cancelled, and repeated if it changes nothing.
ANSWER_MS_MAX: Final = 5_000
# Time for which a question is repeated.
QUESTION_MS_MAX: Final = 15_000
RETRY_MS: Final = 250

A = TypeVar("A", bound=EtcdAnswer)


class QuestionFailed(TarryError):
    """Failure of etcd to answer, or to make a change; the sentence says what to do."""


class AskedEtcd:
    """Door `Etcd` for a command; `wait` waits for events, at most the given number of ms."""

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
        # List of the members, for a sentence.
        self.text = text

    def status(self) -> StatusRead:
        """Return the state of the member that answers; `QuestionFailed` if none does."""
        return self._ask(self._etcd.begin_status, StatusRead)

    def read(self, prefix: bytes) -> RowsRead:
        """Return all rows below a prefix; `QuestionFailed` if they cannot be had."""
        return self._ask(lambda: self._etcd.begin_read(prefix), RowsRead)

    def transact(self, compares: list[Compare], operations: list[Operation]) -> bool:
        """Return True if the transaction is known to be done; `QuestionFailed` if it never will be.

        False: a compare failed, or an answer was lost.  The caller must read the rows again.
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
                # The cancel ends the call as an event.
                self._etcd.cancel(call_id)
            for event in self._wait(max(left_ms, 0)):
                if isinstance(event, EtcdEvent) and event.answer.call_id == call_id:
                    return event.answer
