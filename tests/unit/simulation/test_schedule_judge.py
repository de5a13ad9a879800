"""The judge of scheduled records with ids: what it lets pass, and what it sees."""

from __future__ import annotations

from random import Random

from tarry.base.schedule_outcomes import ALREADY_RELEASED, CANCELLED, MOVED, NO_OUTCOME, UNKNOWN
from tarry.simulation.schedule.judge import Judge
from tarry.simulation.schedule.ledger import UNSAID, AskedChange, ScheduleLedger, SentWish
from tarry.simulation.schedule.seen import UNSEEN_MS, SeenRecord

PLACE = (b"t" * 16, 0)


class Case:
    """Partition all of whose records have one id and are due at 100."""

    def __init__(self) -> None:
        self.ledger = ScheduleLedger(Random(1))
        self.parked: list[SeenRecord] = []
        self.came: list[SeenRecord] = []

    def park(self, value: bytes, s_offset: int, seen_ms: int, *, is_promised: bool = True) -> None:
        wish = self.ledger.wishes.setdefault(value, SentWish(PLACE, value, b"id", seen_ms))
        wish.at_ms = 100
        wish.is_promised = is_promised
        self.parked.append(SeenRecord(s_offset, value, seen_ms, seen_ms, s_offset))

    def come(self, value: bytes, s_offset: int, seen_ms: int) -> None:
        self.came.append(SeenRecord(len(self.came), value, seen_ms, seen_ms, s_offset))

    def ask(
        self,
        outcome: int,
        s_offset: int = UNSAID,
        offset: int = UNSAID,
        *,
        sent_ms: int = 30,
        due_ms: int = UNSAID,
    ) -> None:
        asked = AskedChange(PLACE, b"id", UNSAID, due_ms, sent_ms)
        asked.answered_ms = sent_ms + 5
        asked.outcome = outcome
        asked.told_s_offset = s_offset
        asked.told_offset = offset
        self.ledger.changes.append(asked)

    def judge(self) -> str:
        once = set(self.ledger.wishes)
        judge = Judge(PLACE, self.ledger, self.parked, self.came, once)
        return "\n".join(judge.sentences())


def test_what_is_due_and_comes_once_is_right() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.come(b"a", 2, 100)
    case.ask(ALREADY_RELEASED, 2, 0, sent_ms=101)

    assert case.judge() == ""


def test_what_was_promised_and_is_due_first_comes_first() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.park(b"b", 4, 20)
    for wish in case.ledger.wishes.values():
        wish.schedule_id = b""
    case.ledger.wishes[b"b"].at_ms = 99
    case.come(b"a", 2, 100)
    case.come(b"b", 4, 101)

    assert case.judge() == ""

    case.ledger.wishes[b"b"].promised_ms = 99

    assert "came at 100 before b'b', due at 99 and promised at 99" in case.judge()

    case.ledger.wishes[b"b"].promised_ms = 100

    assert case.judge() == ""


def case_out_of_order() -> Case:
    """`b` is due before `a` and comes behind it."""
    case = Case()
    case.park(b"a", 2, 10)
    case.park(b"b", 4, 20)
    case.ledger.wishes[b"a"].schedule_id = b"another"
    case.ledger.wishes[b"b"].at_ms = 99
    case.ledger.wishes[b"b"].promised_ms = 99
    case.come(b"a", 2, 100)
    case.come(b"b", 4, 101)
    return case


def test_a_record_comes_late_after_a_change_that_a_crash_may_have_lost() -> None:
    case = case_out_of_order()

    assert "came at 100 before b'b'" in case.judge()

    case.ledger.changes.append(AskedChange(PLACE, b"id", UNSAID, UNSAID, 99))

    assert case.judge() == ""


def test_a_record_comes_late_after_a_replacement_that_a_failed_write_may_have_lost() -> None:
    case = case_out_of_order()
    case.ledger.wishes[b"c"] = SentWish(PLACE, b"c", b"id", 30)

    assert case.judge() == ""

    del case.ledger.wishes[b"c"]

    assert "came at 100 before b'b'" in case.judge()

    case.ask(NO_OUTCOME)
    case.ledger.changes[0].is_refused = True

    assert case.judge() == ""


def test_a_record_with_a_delay_whose_append_was_not_seen_is_due_at_an_unknown_time() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.park(b"b", 4, 20)
    for wish in case.ledger.wishes.values():
        wish.schedule_id = b""
    case.ledger.wishes[b"b"].at_ms = UNSAID
    case.ledger.wishes[b"b"].after_ms = 79
    case.ledger.wishes[b"b"].promised_ms = 99
    case.come(b"a", 2, 100)
    case.come(b"b", 4, 101)

    assert "came at 100 before b'b', due at 99 and promised at 99" in case.judge()

    case.parked[1] = case.parked[1]._replace(wall_ms=UNSEEN_MS)

    assert case.judge() == ""

    # A record with a due time is due then, whenever it was appended.
    case.ledger.wishes[b"b"].after_ms = UNSAID
    case.ledger.wishes[b"b"].at_ms = 99

    assert "came at 100 before b'b', due at 99 and promised at 99" in case.judge()


def test_what_never_comes_needs_a_cancel() -> None:
    case = Case()
    case.park(b"a", 2, 10)

    assert "never came" in case.judge()

    case.ask(CANCELLED, 2)

    assert case.judge() == ""


def test_a_cancel_whose_answer_was_lost_may_have_been_made() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.ask(0)

    assert case.judge() == ""

    case.ledger.changes[0].is_refused = True

    assert "never came" in case.judge()


def test_nothing_comes_twice_or_early() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.come(b"a", 2, 99)
    case.come(b"a", 2, 100)

    assert "came 2 times" in case.judge()
    assert "came at 99 by the calendar, due at 100" in case.judge()


def test_what_was_cancelled_does_not_come() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.come(b"a", 2, 100)
    case.ask(CANCELLED, 2)

    assert "which came at offset 0" in case.judge()


def test_what_was_replaced_does_not_come_afterwards() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.park(b"b", 4, 20)
    case.come(b"b", 4, 100)

    assert case.judge() == ""

    case.come(b"a", 2, 101)

    assert "had cancelled or replaced it at 20" in case.judge()


def test_what_was_due_before_it_was_replaced_may_come_again_after_a_crash() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.park(b"b", 4, 100)
    case.come(b"a", 2, 101)
    case.come(b"b", 4, 102)

    assert case.judge() == ""


def test_a_record_that_was_not_acknowledged_replaces_nothing_for_sure() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.park(b"b", 4, 20, is_promised=False)
    case.come(b"a", 2, 101)

    assert case.judge() == ""


def test_unknown_holds_for_what_had_waited() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.come(b"a", 2, 100)
    case.ask(UNKNOWN)

    assert "is told that nothing waits" in case.judge()

    case.ledger.changes[0].answered_ms = 100

    assert case.judge() == ""


def test_what_is_told_to_be_released_has_come_by_then_where_that_is_told() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.come(b"a", 2, 100)
    case.ask(ALREADY_RELEASED, 2, 0, sent_ms=50)

    assert "it had not come" in case.judge()

    case.ledger.changes[0].answered_ms = 100
    case.ledger.changes[0].told_offset = 7

    assert "is at 7, where it is not" in case.judge()


def test_what_was_moved_comes_from_its_new_place_at_its_new_time() -> None:
    case = Case()
    case.park(b"a", 2, 10)
    case.park(b"a", 4, 31)
    case.ask(MOVED, 4, due_ms=200)
    case.come(b"a", 4, 200)

    assert case.judge() == ""

    case.came.clear()
    case.come(b"a", 2, 100)

    assert "was moved to 4 before" in case.judge()


def test_what_was_moved_comes_whatever_its_producer_was_told() -> None:
    case = Case()
    case.park(b"a", 2, 10, is_promised=False)
    case.park(b"a", 4, 31, is_promised=False)
    case.ask(MOVED, 4, due_ms=200)

    assert "never came" in case.judge()
