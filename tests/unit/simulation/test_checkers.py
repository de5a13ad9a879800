"""Each checker finds the anomaly that it is there for, and stays silent about what is legal."""

from __future__ import annotations

from tarry.simulation.checkers import check_history
from tarry.simulation.checkers.changes import check_deletions
from tarry.simulation.checkers.liveness import LivenessChecker
from tarry.simulation.clients.history import (
    EpochEnd,
    FinalPartition,
    Growth,
    MetadataSeen,
    ReadRecord,
    RecordsDeletion,
    RunHistory,
    SentBatch,
    SentRecord,
    TimeLookup,
    TopicChangeSeen,
    TopicSeen,
    Watermarks,
)
from tarry.simulation.exchange import ObservedExchange

TOPIC = bytes(15) + b"\x01"
PLACE = (TOPIC, 0)


def exchange(delivered_turn: int, answered_turn: int) -> ObservedExchange:
    made = ObservedExchange(1, 12, 1)
    made.delivered_turn = delivered_turn
    made.answered_turn = answered_turn
    return made


def batch_of(history: RunHistory, *values: bytes, number: int = 0) -> SentBatch:
    batch = SentBatch("p", PLACE, number, [SentRecord(value, 100) for value in values])
    batch.is_idempotent = True
    batch.is_ordered = True
    history.batches.append(batch)
    return batch


def log_of(history: RunHistory, *values: bytes, log_start_offset: int = 0) -> None:
    """What the partition holds when all is quiet, and was read."""
    final = FinalPartition(PLACE, log_start_offset, log_start_offset + len(values))
    history.finals[PLACE] = final
    for delta, value in enumerate(values):
        offset = log_start_offset + delta
        history.read(PLACE, ReadRecord(offset, 100 + offset, value, 0))


def watermarks(history: RunHistory, high_watermark: int, turns: tuple[int, int]) -> None:
    seen = Watermarks(PLACE, exchange(*turns))
    seen.high_watermark = high_watermark
    history.watermarks.append(seen)


def metadata(history: RunHistory, epoch: int, life: int, turn: int) -> None:
    topics = [TopicSeen("t", TOPIC, [(0, epoch)])]
    history.metadata.append(MetadataSeen(exchange(turn, turn), life, topics))


def test_a_run_that_went_well_has_nothing_wrong() -> None:
    history = RunHistory()
    history.acknowledge(batch_of(history, b"a", b"b"), 0, exchange(1, 2))
    history.acknowledge(batch_of(history, b"c", number=1), 2, exchange(3, 4))
    log_of(history, b"a", b"b", b"c")
    watermarks(history, 2, (3, 3))
    watermarks(history, 3, (5, 5))

    assert check_history(history) == []


def test_a_reader_that_is_handed_out_a_gap_is_found() -> None:
    history = RunHistory()
    history.hand_out("r", PLACE, 0, 2)
    history.hand_out("r", PLACE, 3, 4)

    assert check_history(history)[0].startswith("r was handed out offset 3 of")


def test_a_reader_that_chooses_another_offset_leaves_no_gap() -> None:
    history = RunHistory()
    history.hand_out("r", PLACE, 0, 2)
    history.begin_reading("r", PLACE, 7)
    history.hand_out("r", PLACE, 7, 9)
    history.hand_out("r", PLACE, 9, 10)
    history.hand_out("other", PLACE, 0, 1)

    assert check_history(history) == []


def test_an_acknowledged_record_that_is_gone_is_found() -> None:
    history = RunHistory()
    history.acknowledge(batch_of(history, b"a"), 0, exchange(1, 2))
    log_of(history)

    assert "was acknowledged at offset 0" in check_history(history)[0]


def test_an_acknowledged_record_below_the_log_start_is_not_missed() -> None:
    history = RunHistory()
    history.acknowledge(batch_of(history, b"a"), 0, exchange(1, 2))
    batch_of(history, b"b", number=1)
    log_of(history, b"b", log_start_offset=1)

    assert check_history(history) == []


def test_an_acknowledged_record_at_another_offset_is_found() -> None:
    history = RunHistory()
    batch_of(history, b"x", number=1)
    history.acknowledge(batch_of(history, b"a"), 0, exchange(1, 2))
    log_of(history, b"x", b"a")

    assert "which holds b'x'" in check_history(history)[0]


def test_a_record_that_a_crash_took_back_is_found() -> None:
    history = RunHistory()
    batch_of(history, b"a", b"b")
    log_of(history, b"a")
    history.read(PLACE, ReadRecord(1, 100, b"b", 0))

    assert "was read and is gone" in check_history(history)[0]


def test_a_record_that_nobody_sent_is_found() -> None:
    history = RunHistory()
    log_of(history, b"a")

    assert "nobody sent" in check_history(history)[0]


def test_an_offset_that_changes_its_content_is_found() -> None:
    history = RunHistory()

    first = history.is_known_batch(PLACE, 0, b"one")
    second = history.is_known_batch(PLACE, 0, b"two")

    assert not first
    assert second
    assert "has changed its content" in check_history(history)[0]


def test_a_duplicate_of_an_idempotent_producer_is_found() -> None:
    history = RunHistory()
    batch_of(history, b"a")
    log_of(history, b"a", b"a")

    assert "is at offsets 0 and 1" in check_history(history)[0]


def test_a_duplicate_of_a_plain_producer_is_legal() -> None:
    history = RunHistory()
    batch_of(history, b"a").is_idempotent = False
    log_of(history, b"a", b"a")

    assert check_history(history) == []


def test_batches_of_one_producer_out_of_their_order_are_found() -> None:
    history = RunHistory()
    history.acknowledge(batch_of(history, b"a", number=0), 1, exchange(1, 2))
    history.acknowledge(batch_of(history, b"b", number=1), 0, exchange(1, 2))
    log_of(history, b"b", b"a")

    assert "sent batch 0 before 1" in check_history(history)[0]


def test_a_high_watermark_that_goes_back_is_found() -> None:
    history = RunHistory()
    watermarks(history, 5, (1, 1))
    watermarks(history, 4, (2, 2))

    assert "went back from 5 to 4" in check_history(history)[0]


def test_answers_of_questions_that_overlap_may_come_in_any_order() -> None:
    history = RunHistory()
    watermarks(history, 5, (2, 3))
    watermarks(history, 4, (1, 4))

    assert check_history(history) == []


def test_a_high_watermark_below_what_was_acknowledged_before_is_found() -> None:
    history = RunHistory()
    history.acknowledge(batch_of(history, b"a", b"b"), 0, exchange(1, 2))
    log_of(history, b"a", b"b")
    watermarks(history, 1, (3, 3))

    assert "after an acknowledgement" in check_history(history)[0]


def test_a_leader_epoch_that_stays_over_an_unclean_stop_is_found() -> None:
    history = RunHistory()
    history.unclean_lives.append(1)
    metadata(history, 3, life=1, turn=1)
    metadata(history, 3, life=2, turn=2)

    assert "before and after an unclean stop" in check_history(history)[0]


def test_a_leader_epoch_may_stay_over_a_clean_stop() -> None:
    history = RunHistory()
    metadata(history, 3, life=1, turn=1)
    metadata(history, 3, life=2, turn=2)

    assert check_history(history) == []


def test_a_leader_epoch_that_goes_back_is_found() -> None:
    history = RunHistory()
    metadata(history, 3, life=1, turn=1)
    metadata(history, 2, life=2, turn=2)

    assert "went back from 3 to 2" in check_history(history)[0]


def test_an_epoch_that_ends_before_one_of_its_records_is_found() -> None:
    history = RunHistory()
    batch_of(history, b"a", b"b")
    log_of(history, b"a", b"b")
    end = EpochEnd(PLACE, exchange(1, 1), asked=0, epoch=0, end_offset=1)
    end.is_certain = True
    history.epoch_ends.append(end)

    assert "is said to end at 1" in check_history(history)[0]


def test_an_epoch_in_which_nothing_was_written_has_no_end() -> None:
    history = RunHistory()
    batch_of(history, b"a", b"b")
    log_of(history, b"a", b"b")
    end = EpochEnd(PLACE, exchange(1, 1), asked=3, epoch=3, end_offset=2)
    end.is_certain = True
    history.epoch_ends.append(end)

    found = check_history(history)
    end.is_newest = True

    assert "nothing was written in it" in found[0]
    assert check_history(history) == []


def test_a_time_that_leads_to_the_wrong_record_is_found() -> None:
    history = RunHistory()
    batch_of(history, b"a", b"b")
    log_of(history, b"a", b"b")
    history.time_lookups.append(TimeLookup(PLACE, asked=100, timestamp=101, offset=1))

    assert "gave offset 1, and it is 0" in check_history(history)[0]


def test_a_topic_that_was_created_and_is_missing_is_found() -> None:
    history = RunHistory()
    change = TopicChangeSeen("t", TOPIC, is_creation=True, sent_turn=1)
    change.exchange = exchange(1, 1)
    history.topic_changes.append(change)
    history.metadata.append(MetadataSeen(exchange(2, 2), 1, []))

    assert "is not in the metadata" in check_history(history)[0]


def test_a_topic_that_was_deleted_and_is_there_is_found() -> None:
    history = RunHistory()
    change = TopicChangeSeen("t", TOPIC, is_creation=False, sent_turn=1)
    change.exchange = exchange(1, 1)
    history.topic_changes.append(change)
    metadata(history, 0, life=1, turn=2)

    assert "was deleted and is still" in check_history(history)[0]


def test_a_producer_id_given_twice_is_found() -> None:
    history = RunHistory()
    history.producer_ids += [(7, 0, "p"), (7, 0, "q")]

    assert "producer id 7 was given to p and to q" in check_history(history)[0]


def deletion(history: RunHistory, offset: int, low_watermark: int = -1) -> None:
    made = RecordsDeletion(PLACE, offset)
    made.low_watermark = low_watermark
    history.deletions.append(made)


def test_deleted_records_that_are_there_again_are_found() -> None:
    history = RunHistory()
    deletion(history, 3, 3)
    log_of(history, log_start_offset=2)

    assert "were deleted and are there from 2 on" in check_history(history)[0]


def test_a_deletion_that_was_told_done_below_what_was_asked_is_found() -> None:
    history = RunHistory()
    deletion(history, 3, 2)

    assert "it begins at 2" in check_history(history)[0]


def test_records_that_nobody_asked_to_delete_are_found_where_nothing_else_deletes() -> None:
    history = RunHistory()
    deletion(history, 3)
    log_of(history, log_start_offset=4)
    unread = check_deletions(history)
    history.kept_topics[TOPIC] = None
    unread += check_deletions(history)
    history.reads[(TOPIC, 0)] = {3: ReadRecord(3, 0, b"x", 0)}

    assert unread == []
    assert "nobody asked for more than offset 3" in "".join(check_deletions(history))


def test_a_deletion_of_all_that_got_no_answer_may_have_deleted_anything() -> None:
    history = RunHistory()
    deletion(history, -1)
    log_of(history, log_start_offset=9)
    history.kept_topics[TOPIC] = None

    assert check_history(history) == []


def test_a_growth_that_is_taken_back_is_found() -> None:
    history = RunHistory()
    history.growths.append(Growth(TOPIC, 2, exchange(1, 2)))
    metadata(history, 0, life=1, turn=2)
    silent = check_history(history)

    metadata(history, 0, life=1, turn=3)

    assert silent == []
    assert "has grown to 2 partitions and the metadata has 1" in check_history(history)[0]


class OneSocket:
    """As much of a connection as liveness looks at."""

    def __init__(self, head: ObservedExchange) -> None:
        self.connection_id = 1
        self.has_surplus_answer = False
        self._head = head

    def head(self) -> ObservedExchange:
        return self._head


def waiting_fetch() -> ObservedExchange:
    head = ObservedExchange(1, 12, 1)
    head.wait_ms = 10_000
    head.waits_for = [(TOPIC, 0, 5)]
    head.delivered_ms = 0
    return head


def test_a_request_that_waits_longer_than_it_may_is_found() -> None:
    history = RunHistory()
    checker = LivenessChecker(history)
    sockets = [OneSocket(waiting_fetch())]

    checker.after_turn(sockets, 0)
    checker.after_turn(sockets, 20_000)

    assert "has waited 20000 ms" in history.violations[0]


def test_a_request_that_is_to_be_answered_by_the_tick_has_no_longer() -> None:
    history = RunHistory()
    checker = LivenessChecker(history)
    join = waiting_fetch()
    join.slack_ms = 1

    checker.after_turn([OneSocket(join)], 0)
    checker.after_turn([OneSocket(join)], 10_001)
    silent = list(history.violations)
    checker.after_turn([OneSocket(join)], 10_002)

    assert silent == []
    assert "may wait 10000 ms and has waited 10002 ms" in history.violations[0]


def test_a_request_that_a_stop_of_the_broker_begins_anew_is_counted_from_there() -> None:
    forgiven = RunHistory()
    join = waiting_fetch()
    join.is_stall_forgiven = True
    counted = RunHistory()

    for history, head in ((forgiven, join), (counted, waiting_fetch())):
        checker = LivenessChecker(history)
        checker.after_turn([OneSocket(head)], 0)
        checker.after_turn([OneSocket(head)], 9_000, 1)
        checker.after_turn([OneSocket(head)], 18_000, 1)

    assert forgiven.violations == []
    assert "has waited 18000 ms" in counted.violations[0]


def test_a_fetch_that_sleeps_on_acknowledged_records_is_found() -> None:
    history = RunHistory()
    history.acknowledged_ends[PLACE] = 6

    LivenessChecker(history).after_turn([OneSocket(waiting_fetch())], 0)

    assert "a lost wake-up" in history.violations[0]


def test_a_fetch_at_the_end_may_sleep() -> None:
    history = RunHistory()
    history.acknowledged_ends[PLACE] = 5

    LivenessChecker(history).after_turn([OneSocket(waiting_fetch())], 0)

    assert history.violations == []
