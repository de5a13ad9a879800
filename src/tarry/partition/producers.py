"""Producer states of a partition, by which no record is appended twice.

The state of a producer id is the last five batches of its newest epoch: a client has at most five
requests under way, so any of them may be sent again.  The rules are Kafka's.  A known batch is a
duplicate and is answered with its first offset.  A batch that does not follow the last one is out
of order.  A new epoch begins at sequence 0.  An unknown id may begin anywhere, since its state may
have expired.

An append counts at once, so that the next batch of the same turn finds it.  `rollback` reverts it
if the log could not be written.  Times are monotonic: a calendar clock that jumps must not make
the broker forget an active producer.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64, mypyc_attr

from tarry.base.errors import (
    INVALID_PRODUCER_EPOCH,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
)
from tarry.base.limits import PRODUCER_IDS_PER_PARTITION_MAX
from tarry.partition.awaited_batches import AwaitedBatches
from tarry.records.batch import SEQUENCE_MAX, BatchHeader
from tarry.wire.crc32c import crc32c

# Requests that an idempotent client may have under way, each with one batch of a partition.
BATCHES_KEPT: Final = 5

OFFSET_MAX: Final = 2**63 - 1

# `seen_ms` of a producer that was recovered from the log and has not written since.
NOT_SEEN: Final = -1
# `writer` of a batch that was copied from a leader or read from the log.
NO_WRITER: Final = -1
# Coordinator epoch of a producer without transactions, as Kafka reports it.
NO_COORDINATOR_EPOCH: Final = -1

# Kafka's `.snapshot` file: version, CRC32C of the rest, count, rows.
_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_CRC: Final = 2
_SNAPSHOT_COUNT: Final = 6
_SNAPSHOT_ROWS: Final = 10
_SNAPSHOT_ROW_SIZE: Final = 46
_NO_TRANSACTION: Final = -1


class ProducedBatch:
    """Batch that a producer has appended; never changed."""

    def __init__(
        self, epoch: i64, last_sequence: i64, last_offset: i64, offset_delta: i64, timestamp: i64
    ) -> None:
        self.epoch = epoch
        self.base_sequence = (last_sequence - offset_delta) & SEQUENCE_MAX
        self.last_sequence = last_sequence
        self.base_offset = last_offset - offset_delta
        self.last_offset = last_offset
        self.timestamp = timestamp


class ProducerState:
    """State of one producer: its batches in order, at least one; the last may be unsettled."""

    def __init__(self, producer_id: i64) -> None:
        self.producer_id = producer_id
        self.batches: list[ProducedBatch] = []
        self.unsettled: i64 = 0
        self.seen_ms: i64 = NOT_SEEN
        # Connection that brought the producer's last batch.
        self.writer: i64 = NO_WRITER

    def settle(self) -> None:
        """Settle all batches, and keep the last five of the newest epoch."""
        self.unsettled = 0
        batches = self.batches
        epoch = batches[-1].epoch
        surplus: i64 = len(batches) - BATCHES_KEPT
        while surplus > 0 or batches[0].epoch != epoch:
            del batches[0]
            surplus -= 1


@mypyc_attr(acyclic=True)
class ProducerCheck:
    """Verdict on a batch; for a duplicate, with the offsets of the original.

    `append_time_ms` is the original's largest timestamp; with LogAppendTime, its append time.
    """

    def __init__(self, error_code: i64, message: str | None) -> None:
        self.error_code = error_code
        self.message = message
        self.is_duplicate = False
        self.base_offset: i64 = -1
        self.last_offset: i64 = -1
        self.append_time_ms: i64 = -1


# Verdict on a batch that may be appended; never changed.
ACCEPTED: Final = ProducerCheck(NONE, None)


class ProducerStates:
    """States of all producers of one log.  `expiration_ms` is `producer.id.expiration.ms`."""

    def __init__(self, expiration_ms: int) -> None:
        self._expiration_ms = expiration_ms
        self._states: dict[int, ProducerState] = {}
        # Producers with unsettled batches, by id.
        self._touched: dict[int, ProducerState] = {}
        self._awaited = AwaitedBatches()
        # True if the batches since the last `settle` were copied from a leader.
        self._is_copied = False

    def __len__(self) -> int:
        return len(self._states)

    def active(self) -> list[tuple[int, int, int, int]]:
        """List each producer's id, and the epoch, last sequence and largest timestamp of its last
        batch.
        """
        rows: list[tuple[int, int, int, int]] = []
        for state in self._states.values():
            last = state.batches[-1]
            rows.append(
                (
                    int(state.producer_id),
                    int(last.epoch),
                    int(last.last_sequence),
                    int(last.timestamp),
                )
            )
        return rows

    def active_below(self, end_offset: i64) -> list[tuple[int, int, int, int]]:
        """List the same of the last batch below an offset; who has none there is left out."""
        rows: list[tuple[int, int, int, int]] = []
        for state in self._states.values():
            for batch in reversed(state.batches):
                if batch.last_offset < end_offset:
                    rows.append(
                        (
                            int(state.producer_id),
                            int(batch.epoch),
                            int(batch.last_sequence),
                            int(batch.timestamp),
                        )
                    )
                    break
        return rows

    def batches_of(self, producer_id: i64) -> list[ProducedBatch]:
        """Return the known batches of a producer, oldest first; none if the producer is unknown."""
        state = self._states.get(producer_id)
        return [] if state is None else state.batches

    def check(self, header: BatchHeader) -> ProducerCheck:
        """Check whether a batch with a producer id may be appended; change nothing."""
        state = self._states.get(header.producer_id)
        if state is None:
            return self.check_unknown(header)
        batches = state.batches
        last = batches[-1]
        epoch = header.producer_epoch
        first_sequence = header.base_sequence
        if epoch == last.epoch:
            last_sequence = header.last_sequence
            index: i64 = len(batches) - 1
            index_min = index - BATCHES_KEPT
            while index >= 0 and index > index_min:
                known = batches[index]
                if known.epoch != epoch:
                    break
                if known.base_sequence == first_sequence and known.last_sequence == last_sequence:
                    return duplicate_of(known)
                index -= 1
            if first_sequence == (last.last_sequence + 1) & SEQUENCE_MAX:
                return ACCEPTED
            return ProducerCheck(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}: sequence {first_sequence} "
                f"after {last.last_sequence}",
            )
        if epoch < last.epoch:
            return ProducerCheck(
                INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id}: epoch {epoch} after {last.epoch}",
            )
        if first_sequence != 0:
            return ProducerCheck(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}: the new epoch {epoch} begins at sequence "
                f"{first_sequence}, not 0",
            )
        return ACCEPTED

    def check_unknown(self, header: BatchHeader) -> ProducerCheck:
        """Check a batch of an unknown producer: it may begin anywhere, unless the append of its
        first batch has just failed.
        """
        if not self._awaited.must_wait(header):
            return ACCEPTED
        return ProducerCheck(
            OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id}: sequence {header.base_sequence} before "
            f"{self._awaited.sequence(header)}, which could not be written",
        )

    def awaited_sequence(self, header: BatchHeader) -> i64:
        """Return the sequence that must come again first in this epoch; -1 if there is none."""
        return self._awaited.sequence(header)

    def refuse(self, header: BatchHeader) -> None:
        """Note that an accepted batch could not be appended: later ones of a new producer must wait
        for its retry.
        """
        if header.has_producer_id and header.producer_id not in self._states:
            self._awaited.note(header.producer_id, header.producer_epoch, header.base_sequence)

    def update(
        self, header: BatchHeader, base_offset: i64, now_ms: i64, writer: i64 = NO_WRITER
    ) -> None:
        """Take over an appended batch, unsettled until the log's tail is written."""
        if not header.has_producer_id:
            return
        state = self._add(header, base_offset)
        state.seen_ms = now_ms
        state.writer = writer
        state.unsettled += 1
        if state.unsettled == 1:
            self._touched[header.producer_id] = state
        if len(self._states) > PRODUCER_IDS_PER_PARTITION_MAX:
            self._make_room()

    def follow(self, header: BatchHeader, now_ms: i64) -> None:
        """Take over a batch that was copied from the leader, whatever its sequence, because the
        leader has accepted it.  It is unsettled until the log's tail is written.
        """
        if header.has_producer_id and not header.is_control:
            self.update(header, header.base_offset, now_ms)
            self._is_copied = True

    def truncate(self, end_offset: i64) -> bool:
        """Follow a cut of the log to `end_offset`; return False if the log must be read for that.

        Only the last batches of each producer are known.  If the cut takes one of them, an older
        one is missing that a client may send again.
        """
        is_untouched = True
        for state in self._states.values():
            is_untouched = is_untouched and state.batches[-1].last_offset < end_offset
        return is_untouched

    def recover(self, header: BatchHeader) -> None:
        """Take over a batch that was found in the log when it was opened.

        The time of the producer's last activity is unknown, since record timestamps may be of any
        age.  The time until the producer expires begins with the first `expire`.
        """
        if not header.has_producer_id or header.is_control:
            return
        self._add(header, header.base_offset).settle()
        if len(self._states) > PRODUCER_IDS_PER_PARTITION_MAX:
            self._make_room()

    def _add(self, header: BatchHeader, base_offset: i64) -> ProducerState:
        state = self._states.get(header.producer_id)
        if state is None:
            state = ProducerState(header.producer_id)
            self._states[header.producer_id] = state
            self._awaited.drop(header.producer_id)
        delta = header.last_offset_delta
        state.batches.append(
            ProducedBatch(
                header.producer_epoch,
                header.last_sequence,
                base_offset + delta,
                delta,
                header.max_timestamp,
            )
        )
        return state

    def settle(self) -> None:
        """Settle the batches since the last call: the log's tail is written."""
        for state in self._touched.values():
            state.settle()
        self._touched.clear()
        self._is_copied = False

    def rollback(self, end_offset: i64 = 0) -> None:
        """Forget unsettled batches at or past `end_offset`, because the tail was dropped."""
        for state in self._touched.values():
            batches = state.batches
            first = batches[0]
            while state.unsettled > 0 and batches[-1].base_offset >= end_offset:
                batches.pop()
                state.unsettled -= 1
            if batches:
                state.settle()
            else:
                del self._states[state.producer_id]
                if not self._is_copied:
                    # The follower fetches a copy again; no client sends it here.
                    self._awaited.note(state.producer_id, first.epoch, first.base_sequence)
        self._touched.clear()
        self._is_copied = False

    def last_offsets(self, end_offset: i64) -> dict[int, int]:
        """Return for each producer the last offset of its last batch below `end_offset`."""
        found: dict[int, int] = {}
        for producer_id, state in self._states.items():
            for batch in state.batches:
                if batch.last_offset < end_offset:
                    found[producer_id] = batch.last_offset
        return found

    def kept_ends(self, end_offset: i64) -> dict[int, int]:
        """Return where each batch below `end_offset` ends that is known, with its producer id."""
        found: dict[int, int] = {}
        for producer_id, state in self._states.items():
            for batch in state.batches:
                if batch.last_offset < end_offset:
                    found[int(batch.last_offset)] = producer_id
        return found

    def reset(self) -> None:
        """Forget everything."""
        self._states.clear()
        self._touched.clear()
        self._awaited.clear()

    def reconfigure(self, expiration_ms: int) -> None:
        """Take over the broker's setting after a change."""
        self._expiration_ms = expiration_ms

    def expire(self, now_ms: i64) -> int:
        """Forget producers that were inactive for `expiration_ms`; return how many."""
        self._awaited.expire(now_ms)
        due: list[i64] = []
        for state in self._states.values():
            if state.seen_ms == NOT_SEEN:
                state.seen_ms = now_ms
            elif state.unsettled == 0 and now_ms - state.seen_ms >= self._expiration_ms:
                due.append(state.producer_id)
        for producer_id in due:
            del self._states[producer_id]
        return len(due)

    def _make_room(self) -> None:
        """Forget an eighth of the limit, so that this happens rarely.

        A producer goes first if many newer producers wrote through its connection: a connection
        with many ids pushes out its own.  A follower and a start do not know connections.  There,
        and among equals, ids that have written once go first, then those inactive for longest.
        After a recovery no activity is known, and the offset of the last batch decides.
        """
        newest: list[tuple[int, int, int]] = []
        for state in self._states.values():
            if state.unsettled == 0:
                last_offset = int(state.batches[-1].last_offset)
                newest.append((-int(state.seen_ms), -last_offset, int(state.producer_id)))
        newest.sort()
        counts: dict[int, int] = {}
        order: list[tuple[int, int, int, int, int]] = []
        for seen, offset, producer_id in newest:
            state = self._states[producer_id]
            rank = 0
            if state.writer != NO_WRITER:
                rank = counts.get(int(state.writer), 0)
                counts[int(state.writer)] = rank + 1
            is_settled_in = 1 if len(state.batches) > 1 else 0
            order.append((-rank, is_settled_in, -seen, -offset, producer_id))
        order.sort()
        for _, _, _, _, producer_id in order[: PRODUCER_IDS_PER_PARTITION_MAX // 8]:
            del self._states[producer_id]

    def kept_batches(self) -> list[tuple[int, ProducedBatch]]:
        """List producer ids with their known batches, oldest first."""
        rows: list[tuple[int, ProducedBatch]] = []
        for state in self._states.values():
            for batch in state.batches:
                rows.append((int(state.producer_id), batch))
        return rows

    def encode_snapshot(self, end_offset: i64 = OFFSET_MAX) -> bytes:
        """Encode the state of the log below `end_offset`, in the form of Kafka's snapshot files.

        Kafka writes one row for each producer, its last batch.  This broker writes one row for each
        kept batch, oldest first.  Kafka's reader takes the last row of an id, so it gets what Kafka
        would have written; this broker knows all five after a restart.
        """
        rows = BytesWriter()
        count: i64 = 0
        for state in self._states.values():
            for batch in state.batches:
                if batch.last_offset < end_offset:
                    _write_row(rows, state.producer_id, batch)
                    count += 1
        body = BytesWriter()
        write_i32_be(body, i32(count))
        body.write(rows.getvalue())
        covered = body.getvalue()
        snapshot = BytesWriter()
        write_i16_be(snapshot, _SNAPSHOT_VERSION)
        snapshot.write(int(crc32c(covered)).to_bytes(4, "big"))
        snapshot.write(covered)
        return snapshot.getvalue()

    def load_snapshot(self, data: bytes) -> bool:
        """Replace all states by a snapshot; return False, with no states, if it is damaged."""
        self.reset()
        size: i64 = len(data)
        if size < _SNAPSHOT_ROWS or read_i16_be(data, 0) != _SNAPSHOT_VERSION:
            return False
        if (
            i64(crc32c(data[_SNAPSHOT_COUNT:]))
            != i64(read_i32_be(data, _SNAPSHOT_CRC)) & 0xFFFFFFFF
        ):
            return False
        count = i64(read_i32_be(data, _SNAPSHOT_COUNT))
        if size != _SNAPSHOT_ROWS + count * _SNAPSHOT_ROW_SIZE:
            return False
        position: i64 = _SNAPSHOT_ROWS
        while position < size:
            self._load_row(data, position)
            position += _SNAPSHOT_ROW_SIZE
        for state in self._states.values():
            state.settle()
        return True

    def _load_row(self, data: bytes, position: i64) -> None:
        producer_id = read_i64_be(data, position)
        last_sequence = i64(read_i32_be(data, position + 10))
        if last_sequence < 0:
            # Kafka's row of a producer that wrote only markers.
            return
        state = self._states.get(producer_id)
        if state is None:
            state = ProducerState(producer_id)
            self._states[producer_id] = state
        state.batches.append(
            ProducedBatch(
                i64(read_i16_be(data, position + 8)),
                last_sequence,
                read_i64_be(data, position + 14),
                i64(read_i32_be(data, position + 22)),
                read_i64_be(data, position + 26),
            )
        )


def _write_row(rows: BytesWriter, producer_id: i64, batch: ProducedBatch) -> None:
    write_i64_be(rows, producer_id)
    write_i16_be(rows, i16(batch.epoch))
    write_i32_be(rows, i32(batch.last_sequence))
    write_i64_be(rows, batch.last_offset)
    write_i32_be(rows, i32(batch.last_offset - batch.base_offset))
    write_i64_be(rows, batch.timestamp)
    write_i32_be(rows, NO_COORDINATOR_EPOCH)
    write_i64_be(rows, _NO_TRANSACTION)


def duplicate_of(known: ProducedBatch) -> ProducerCheck:
    """Return the verdict on a batch that was appended before, with its offsets."""
    check = ProducerCheck(NONE, None)
    check.is_duplicate = True
    check.base_offset = known.base_offset
    check.last_offset = known.last_offset
    check.append_time_ms = known.timestamp
    return check
