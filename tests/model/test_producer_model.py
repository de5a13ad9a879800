"""ProducerStates against a model that keeps everything and looks through all of it."""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tarry.base import errors
from tarry.partition.awaited_batches import GIVEN_UP_MS
from tarry.partition.producers import ProducerStates
from tarry.records.batch import BatchHeader
from tarry.records.builder import BatchBuilder

MODULUS = 2**31
EXPIRATION_MS = 1000
NEVER = -1

BUILDER = BatchBuilder()
BUILDER.append(0, None, None)
TEMPLATE = BUILDER.build()


class Appended:
    """One batch of the model's log."""

    def __init__(self, header: BatchHeader, offset: int) -> None:
        self.producer_id = header.producer_id
        self.epoch = header.producer_epoch
        self.first = header.base_sequence
        self.count = header.last_offset_delta + 1
        self.offset = offset

    @property
    def last(self) -> int:
        return (self.first + self.count - 1) % MODULUS


def header_of(producer_id: int, epoch: int, first: int, count: int) -> BatchHeader:
    header = BatchHeader(TEMPLATE, 0)
    header.producer_id = producer_id
    header.producer_epoch = epoch
    header.base_sequence = first
    header.last_offset_delta = count - 1
    header.record_count = count
    return header


class ProducerMachine(RuleBasedStateMachine):
    """The model's log is a list; a restart, a rollback and an expiry cut it or hide from it."""

    def __init__(self) -> None:
        super().__init__()
        self.states = ProducerStates(EXPIRATION_MS)
        self.log: list[Appended] = []
        self.written = 0
        self.end_offset = 0
        self.now_ms = 0
        self.seen: dict[int, int] = {}
        # How much of the log a producer's expiry has hidden.
        self.hidden: dict[int, int] = {}
        # The first batch of a producer that is not known because it could not be written.
        self.awaited: dict[int, Appended] = {}
        # The time of the last look for expired producers before each of them failed.
        self.noted_ms: dict[int, int] = {}
        self.looked_ms = -1

    # --- The model

    def known(self, producer_id: int) -> list[Appended]:
        start = self.hidden.get(producer_id, 0)
        return [one for one in self.log[start:] if one.producer_id == producer_id]

    def expected(self, header: BatchHeader) -> tuple[int, int]:
        """(error code, offset of the original or -1)."""
        known = self.known(header.producer_id)
        if not known:
            awaited = self.awaited.get(header.producer_id)
            if awaited is None or awaited.epoch != header.producer_epoch:
                return errors.NONE, -1
            is_behind = 0 < (header.base_sequence - awaited.first) % 2**31 < 2**30
            return (errors.OUT_OF_ORDER_SEQUENCE_NUMBER if is_behind else errors.NONE), -1
        epoch = known[-1].epoch
        if header.producer_epoch < epoch:
            return errors.INVALID_PRODUCER_EPOCH, -1
        if header.producer_epoch > epoch:
            fits = header.base_sequence == 0
            return (errors.NONE if fits else errors.OUT_OF_ORDER_SEQUENCE_NUMBER), -1
        of_epoch: list[Appended] = []
        for one in reversed(known):
            if one.epoch != epoch:
                break
            of_epoch.append(one)
        for one in of_epoch[:5]:
            if (one.first, one.count) == (header.base_sequence, header.last_offset_delta + 1):
                return errors.NONE, one.offset
        if header.base_sequence == (known[-1].last + 1) % MODULUS:
            return errors.NONE, -1
        return errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1

    # --- What happens

    def produce(self, header: BatchHeader) -> None:
        error_code, original = self.expected(header)

        check = self.states.check(header)

        assert check.error_code == error_code
        assert check.is_duplicate == (original >= 0)
        if check.is_duplicate:
            assert check.base_offset == original
            assert check.last_offset == original + header.last_offset_delta
        elif check.error_code == errors.NONE:
            self.states.update(header, self.end_offset, self.now_ms)
            self.log.append(Appended(header, self.end_offset))
            self.seen[header.producer_id] = self.now_ms
            self.awaited.pop(header.producer_id, None)
            self.end_offset += header.last_offset_delta + 1

    @rule(
        producer_id=st.integers(0, 2),
        epoch=st.integers(0, 2),
        first=st.one_of(st.integers(0, 12), st.integers(MODULUS - 6, MODULUS - 1)),
        count=st.integers(1, 4),
    )
    def produce_anything(self, producer_id: int, epoch: int, first: int, count: int) -> None:
        self.produce(header_of(producer_id, epoch, first, count))

    @rule(producer_id=st.integers(0, 1), times=st.integers(1, 7), count=st.integers(1, 3))
    def produce_the_next(self, producer_id: int, times: int, count: int) -> None:
        for _ in range(times):
            known = self.known(producer_id)
            if known:
                last = known[-1]
                self.produce(header_of(producer_id, last.epoch, (last.last + 1) % MODULUS, count))

    @rule(producer_id=st.integers(0, 1))
    def produce_the_last_seven_again(self, producer_id: int) -> None:
        for one in self.known(producer_id)[-7:]:
            self.produce(header_of(producer_id, one.epoch, one.first, one.count))

    @precondition(lambda self: self.log)
    @rule(back=st.integers(1, 14))
    def produce_again(self, back: int) -> None:
        one = self.log[-min(back, len(self.log))]
        self.produce(header_of(one.producer_id, one.epoch, one.first, one.count))

    @rule(producer_id=st.integers(0, 2))
    def begin_a_new_epoch(self, producer_id: int) -> None:
        known = self.known(producer_id)
        if known:
            epoch = known[-1].epoch
            self.produce(header_of(producer_id, epoch + 1, 0, 1))
            # Sequences that the epoch before may have used as well.
            for one in known[-3:]:
                self.produce(header_of(producer_id, epoch + 1, one.first, one.count))

    @rule()
    def write(self) -> None:
        self.states.settle()
        self.written = len(self.log)

    @rule(kept=st.integers(0, 3))
    def fail_to_write(self, kept: int) -> None:
        """The first of the tail's batches may have reached an earlier segment."""
        self.written = min(self.written + kept, len(self.log))
        self.end_offset = (
            self.log[self.written].offset if self.written < len(self.log) else self.end_offset
        )
        self.states.rollback(self.end_offset)
        dropped = self.log[self.written :]
        del self.log[self.written :]
        for producer_id, start in self.hidden.items():
            self.hidden[producer_id] = min(start, len(self.log))
        for one in reversed(dropped):
            if not self.known(one.producer_id):
                self.awaited[one.producer_id] = one
                self.noted_ms[one.producer_id] = self.looked_ms

    @rule(step_ms=st.sampled_from([1, 300, 1000, GIVEN_UP_MS]))
    def expire(self, step_ms: int) -> None:
        self.now_ms += step_ms
        for producer_id in list(self.awaited):
            if self.looked_ms < 0:
                self.noted_ms[producer_id] = self.now_ms
            noted_ms = self.noted_ms[producer_id]
            if noted_ms < self.looked_ms and self.now_ms - noted_ms >= GIVEN_UP_MS:
                del self.awaited[producer_id]
        self.looked_ms = self.now_ms
        self.states.expire(self.now_ms)
        unwritten = {one.producer_id for one in self.log[self.written :]}
        for producer_id in range(3):
            if producer_id in unwritten or not self.known(producer_id):
                continue
            if self.seen[producer_id] == NEVER:
                self.seen[producer_id] = self.now_ms
            elif self.now_ms - self.seen[producer_id] >= EXPIRATION_MS:
                self.hidden[producer_id] = len(self.log)

    @rule(from_snapshot=st.integers(0, 40))
    def restart(self, from_snapshot: int) -> None:
        """A snapshot of some earlier end, then the log's batches from there on."""
        self.write()
        middle = min(from_snapshot, len(self.log))
        offset = self.log[middle].offset if middle < len(self.log) else self.end_offset
        restored = ProducerStates(EXPIRATION_MS)
        before = ProducerStates(EXPIRATION_MS)
        for one in self.log[:middle]:
            if self.log.index(one) >= self.hidden.get(one.producer_id, 0):
                header = header_of(one.producer_id, one.epoch, one.first, one.count)
                before.update(header, one.offset, 0)
                before.settle()
        assert restored.load_snapshot(before.encode_snapshot(offset))
        # A producer that had expired is known again if the log still holds it: that is safe.
        for producer_id, start in self.hidden.items():
            self.hidden[producer_id] = min(start, middle) if start > middle else start
        for one in self.log[middle:]:
            header = header_of(one.producer_id, one.epoch, one.first, one.count)
            header.base_offset = one.offset
            restored.recover(header)
        self.states = restored
        self.awaited.clear()
        self.seen = dict.fromkeys(range(3), NEVER)

    @invariant()
    def knows_as_many_producers(self) -> None:
        known = [producer_id for producer_id in range(3) if self.known(producer_id)]
        assert len(self.states) == len(known)

    @invariant()
    def a_settled_snapshot_changes_nothing(self) -> None:
        if self.written == len(self.log):
            data = self.states.encode_snapshot()
            copy = ProducerStates(EXPIRATION_MS)
            assert copy.load_snapshot(data)
            assert copy.encode_snapshot() == data


TestProducerMachine = ProducerMachine.TestCase
TestProducerMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
