"""History of one run, as its clients saw it: the material of the checkers.

Everything carries the turns of the broker between which it happened: `delivered_turn` (the turn
that first saw the request) and `answered_turn` (the turn that gave the answer).  X came before Y
for sure exactly when X was answered in an earlier turn than Y was delivered; only then may a
checker compare them.
"""

from __future__ import annotations

from typing import Final

from tarry.simulation.exchange import ObservedExchange

# A partition of one incarnation of a topic.
Place = tuple[bytes, int]

UNKNOWN: Final = 0
ACKNOWLEDGED: Final = 1
REFUSED: Final = 2
# Acknowledged without an offset: the batch waits until it is due.
PARKED: Final = 3


class SentRecord:
    """Record that a producer made; its value is unique in the run."""

    __slots__ = ("timestamp", "value")

    def __init__(self, value: bytes, timestamp: int) -> None:
        self.value = value
        self.timestamp = timestamp


class SentBatch:
    """Batch that a producer made and sent, once or several times."""

    def __init__(self, producer: str, place: Place, number: int, records: list[SentRecord]) -> None:
        self.producer = producer
        self.place = place
        # Number in the producer's own order of batches for this partition.
        self.number = number
        self.records = records
        self.is_idempotent = False
        # False if a retry may overtake or repeat the batch, so that its place in the order is open.
        self.is_ordered = False
        self.sends = 0
        self.outcome = UNKNOWN
        self.base_offset = -1
        self.exchange: ObservedExchange | None = None
        # Due time by the broker's calendar; -1 if it is due at once, or by a setting of its topic.
        self.due_ms = -1
        # True if the batch may be parked.
        self.may_wait = False
        # The latest time that the broker's calendar had shown when the batch was acknowledged, and
        # the turn before the batch was first sent.
        self.acknowledged_ms = -1
        self.made_turn = -1


class ReadRecord:
    """Record that a reader read."""

    __slots__ = ("epoch", "offset", "timestamp", "value")

    def __init__(self, offset: int, timestamp: int, value: bytes, epoch: int) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.value = value
        self.epoch = epoch


class Watermarks:
    """Offsets that one answer named for a partition; -1: it named none."""

    def __init__(self, place: Place, exchange: ObservedExchange) -> None:
        self.place = place
        self.exchange = exchange
        self.log_start_offset = -1
        self.high_watermark = -1


class TopicSeen:
    """Topic in an answer to Metadata."""

    def __init__(self, name: str, topic_id: bytes, epochs: list[tuple[int, int]]) -> None:
        self.name = name
        self.topic_id = topic_id
        # (partition, leader epoch)
        self.epochs = epochs


class MetadataSeen:
    """Answer to Metadata for all topics."""

    def __init__(self, exchange: ObservedExchange, life: int, topics: list[TopicSeen]) -> None:
        self.exchange = exchange
        self.life = life
        self.topics = topics


class TopicChangeSeen:
    """Creation or deletion of a topic.  `exchange` None: it got no clear answer."""

    def __init__(self, name: str, topic_id: bytes, *, is_creation: bool, sent_turn: int) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_creation = is_creation
        self.sent_turn = sent_turn
        self.exchange: ObservedExchange | None = None


class EpochEnd:
    """Answer to OffsetForLeaderEpoch."""

    def __init__(
        self, place: Place, exchange: ObservedExchange, asked: int, epoch: int, end_offset: int
    ) -> None:
        self.place = place
        self.exchange = exchange
        self.asked = asked
        self.epoch = epoch
        self.end_offset = end_offset
        # True if no later append, and no loss, can have moved this end.
        self.is_certain = False
        # True if the epoch may still lead, and have no record yet.
        self.is_newest = False


# Timestamp that asks ListOffsets for the newest record (KIP-734).
MAX_TIMESTAMP: Final = -3


class TimeLookup:
    """Answer to ListOffsets for a time, or the largest one, in the quiet phase."""

    def __init__(self, place: Place, asked: int, timestamp: int, offset: int) -> None:
        self.place = place
        self.asked = asked
        self.timestamp = timestamp
        self.offset = offset


class RecordsDeletion:
    """Request to delete the records of a partition below an offset; -1: all there are."""

    def __init__(self, place: Place, offset: int) -> None:
        self.place = place
        self.offset = offset
        # Log start in the answer; -1 if there was no answer, or an error.
        self.low_watermark = -1


class Growth:
    """Growth of a topic to at least so many partitions."""

    def __init__(self, topic_id: bytes, partitions: int, exchange: ObservedExchange) -> None:
        self.topic_id = topic_id
        self.partitions = partitions
        self.exchange = exchange


class FinalPartition:
    """Content of a partition at the end of the run, read once from its start to its end."""

    def __init__(self, place: Place, log_start_offset: int, end_offset: int) -> None:
        self.place = place
        self.log_start_offset = log_start_offset
        self.end_offset = end_offset


class ReadRun:
    """Records that one reader got of a partition since it chose an offset."""

    def __init__(self, offset: int) -> None:
        # End of the records that the reader got, which are all since its begin but for the gaps.
        self.end_offset = offset
        # First offset and end of each gap.
        self.gaps: list[tuple[int, int]] = []


class RunHistory:
    """History of one run, as its clients saw it."""

    def __init__(self) -> None:
        self.batches: list[SentBatch] = []
        self.reads: dict[Place, dict[int, ReadRecord]] = {}
        self.watermarks: list[Watermarks] = []
        self.metadata: list[MetadataSeen] = []
        self.topic_changes: list[TopicChangeSeen] = []
        self.deletions: list[RecordsDeletion] = []
        self.growths: list[Growth] = []
        # Topics from which records are deleted only on request.
        self.kept_topics: dict[bytes, None] = {}
        self.epoch_ends: list[EpochEnd] = []
        self.time_lookups: list[TimeLookup] = []
        self.producer_ids: list[tuple[int, int, str]] = []
        self.finals: dict[Place, FinalPartition] = {}
        # Runs of records, by the reader's name and the partition.
        self.handed_out: dict[tuple[str, Place], list[ReadRun]] = {}
        # Lives of the broker that did not end cleanly, in order.
        self.unclean_lives: list[int] = []
        # Violations that a client noticed at once.
        self.violations: list[str] = []
        # By partition, the offset below which all records are acknowledged to some client.
        self.acknowledged_ends: dict[Place, int] = {}
        # The latest time that the broker's calendar has shown in a turn.
        self.calendar_max_ms = -1
        self._batch_bytes: dict[tuple[Place, int], bytes] = {}

    def violate(self, sentence: str) -> None:
        self.violations.append(sentence)

    def acknowledge(
        self, batch: SentBatch, base_offset: int, exchange: ObservedExchange | None
    ) -> None:
        batch.outcome = ACKNOWLEDGED
        batch.base_offset = base_offset
        batch.exchange = exchange
        end = base_offset + len(batch.records)
        if end > self.acknowledged_ends.get(batch.place, 0):
            self.acknowledged_ends[batch.place] = end

    def park(self, batch: SentBatch, exchange: ObservedExchange) -> None:
        """Note that a batch was acknowledged and waits until it is due."""
        batch.outcome = PARKED
        batch.exchange = exchange
        batch.acknowledged_ms = self.calendar_max_ms

    def is_known_batch(self, place: Place, base_offset: int, data: bytes) -> bool:
        """Return true if the same bytes were read before; otherwise remember them.

        Other bytes at the same offset are a violation, whatever they contain.
        """
        key = (place, base_offset)
        known = self._batch_bytes.get(key)
        if known is None:
            self._batch_bytes[key] = data
            return False
        if known != data:
            self.violate(
                f"offset {base_offset} of {place_name(place)} has changed its content: "
                f"{len(known)} bytes, later {len(data)} other ones"
            )
        return True

    def begin_reading(self, reader: str, place: Place, offset: int) -> None:
        """Note that the reader chose to read on from this offset."""
        self.handed_out.setdefault((reader, place), []).append(ReadRun(offset))

    def hand_out(self, reader: str, place: Place, offset: int, end_offset: int) -> None:
        """Note that the reader got the records from one offset up to another."""
        runs = self.handed_out.setdefault((reader, place), [])
        if not runs:
            # A reader that chose no offset begins at 0.
            runs.append(ReadRun(0))
        run = runs[-1]
        if offset != run.end_offset:
            run.gaps.append((run.end_offset, offset))
        run.end_offset = end_offset

    def read(self, place: Place, record: ReadRecord) -> None:
        self.reads.setdefault(place, {})[record.offset] = record


def place_name(place: Place) -> str:
    """Name a partition in a sentence."""
    return f"topic {place[0].hex()[:8]} partition {place[1]}"


def is_before(earlier: ObservedExchange, later: ObservedExchange) -> bool:
    """Return true if the one was answered before the broker saw the other."""
    return 0 <= earlier.answered_turn < later.delivered_turn
