"""Judge of scheduled records with ids: compares clients' requests and answers with the logs.

The logs hold the records that are committed at the end, each with the time at which it was first
seen in its leader's log, and with the leader's calendar then.  An answer names a record exactly: by
the s-offset of a pending entry, or by the offset of a released record.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from tarry.base.schedule_outcomes import ALREADY_RELEASED, CANCELLED, MOVED, NO_OUTCOME, UNKNOWN
from tarry.simulation.clients.history import Place, place_name
from tarry.simulation.schedule.ledger import UNSAID, AskedChange, ScheduleLedger, SentWish
from tarry.simulation.schedule.seen import UNSEEN_MS, SeenRecord

_SHOWN: Final = 20
# Due time of an entry that no known request explains.
_NEVER_MS: Final = 1 << 62


class Judge:
    """Judge of one partition: `parked` and `came` are the records of its two logs, in order.

    `once` are the values that are parked once, and released once at most, whatever is lost.
    """

    def __init__(
        self,
        place: Place,
        ledger: ScheduleLedger,
        parked: list[SeenRecord],
        came: list[SeenRecord],
        once: set[bytes],
    ) -> None:
        self._ledger = ledger
        self._once = once
        self._name = place_name(place)
        self._wishes = [wish for wish in ledger.wishes.values() if wish.place == place]
        self._changes = [each for each in ledger.changes if each.place == place]
        self._came_at = {each.offset: each for each in came}
        # Parked records by the s-offset of their entry.
        self._parked_at: dict[int, list[SeenRecord]] = {}
        self._waits: dict[bytes, list[SeenRecord]] = {}
        # For each id, the s-offsets of the records that named it, in the order of the log.
        self._named: dict[bytes, list[int]] = {}
        for each in parked:
            self._parked_at.setdefault(each.s_offset, []).append(each)
            self._waits.setdefault(each.value, []).append(each)
            wish = ledger.wishes.get(each.value)
            if wish is not None and wish.schedule_id:
                self._named.setdefault(wish.schedule_id, []).append(each.s_offset)
        # For each id, when records were sent with it that were not acknowledged.
        self._unsure: dict[bytes, list[int]] = {}
        for wish in self._wishes:
            if wish.schedule_id and not wish.is_promised:
                self._unsure.setdefault(wish.schedule_id, []).append(wish.sent_ms)
        self._comes: dict[bytes, list[SeenRecord]] = {}
        for each in came:
            self._comes.setdefault(each.value, []).append(each)

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each violation."""
        for asked in self._changes:
            if asked.outcome != MOVED:
                continue
            for moved in self._parked_at.get(asked.told_s_offset, []):
                if moved.value in self._once:
                    # A moved record counts as acknowledged, whatever its producer was told.
                    self._ledger.wishes[moved.value].is_promised = True
        for wish in self._wishes:
            for sentence in self._judge_record(wish):
                yield f"{self._name}: {wish.value[:_SHOWN]!r} with {wish.schedule_id!r} {sentence}"
        for sentence in self._judge_order():
            yield f"{self._name}: {sentence}"
        for asked in self._changes:
            for sentence in self._judge_answer(asked):
                yield f"{self._name}: {asked} {sentence}"

    def _entries(self, value: bytes) -> list[int]:
        """Return the s-offsets of the entries in which a record was parked, in their order."""
        return [each.s_offset for each in self._waits.get(value, [])]

    # --- Records.

    def _judge_record(self, wish: SentWish) -> Iterator[str]:
        comes = self._comes.get(wish.value, [])
        if wish.is_cancel:
            if comes:
                yield f"cancels, and came at {comes[0].offset}"
        elif comes:
            yield from self._judge_released(wish, comes)
        elif wish.is_promised and not self._is_excused(wish):
            waits = self._entries(wish.value)
            yield f"was acknowledged and never came; it had waited at {waits}"

    def _judge_released(self, wish: SentWish, comes: list[SeenRecord]) -> Iterator[str]:
        is_once = wish.value in self._once
        if len(comes) > 1 and is_once:
            yield f"came {len(comes)} times, at {[each.offset for each in comes]}"
        waits = self._entries(wish.value)
        for each in comes:
            if each.s_offset == UNSAID:
                if wish.schedule_id and is_once:
                    yield "came past the log of what waits"
                continue
            if each.s_offset not in waits:
                yield f"came from {each.s_offset}, and had waited at {waits}"
                continue
            if each.s_offset != waits[-1] and is_once:
                yield f"came from {each.s_offset}, and was moved to {waits[-1]} before"
            due_ms = self._due_ms(wish, each.s_offset)
            if due_ms > each.wall_ms:
                yield f"came at {each.wall_ms} by the calendar, due at {due_ms}"
            yield from self._judge_replaced(wish, each)

    def _judge_replaced(self, wish: SentWish, released: SeenRecord) -> Iterator[str]:
        """Check that no acknowledged record had taken the id of a record before its release.

        A record that was due by then may have been released already.  If a crash took that release,
        the record comes again, and the one with its id had replaced nothing.
        """
        due_ms = self._due_ms(wish, released.s_offset)
        named = self._named.get(wish.schedule_id, [])
        for s_offset in named[bisect_right(named, released.s_offset) :]:
            other = self._parked_at[s_offset][0]
            if other.seen_ms >= released.seen_ms:
                return
            if other.value == wish.value or due_ms <= other.wall_ms:
                continue
            if self._ledger.wishes[other.value].is_promised:
                yield (
                    f"came at {released.seen_ms}, though {other.value[:_SHOWN]!r} had cancelled or "
                    f"replaced it at {other.seen_ms}"
                )
                return

    def _judge_order(self) -> Iterator[str]:
        """Check that no record came before one that was due earlier and promised before.

        Records that were moved are left out: their due time is not known exactly.
        """
        before: list[tuple[SeenRecord, int]] = []
        for offset in sorted(self._came_at):
            record = self._came_at[offset]
            wish = self._ledger.wishes.get(record.value)
            waits = self._waits.get(record.value, [])
            if wish is None or record.value not in self._once:
                continue
            if not waits or record.s_offset != waits[0].s_offset:
                continue
            due_ms = self._due_ms(wish, record.s_offset)
            if self._must_be_in_order(wish, waits[0], due_ms):
                for other, other_due_ms in before:
                    if other_due_ms > due_ms and other.seen_ms > wish.promised_ms:
                        yield (
                            f"{other.value[:_SHOWN]!r}, due at {other_due_ms}, came at "
                            f"{other.seen_ms} before {record.value[:_SHOWN]!r}, due at {due_ms} "
                            f"and promised at {wish.promised_ms}"
                        )
                        break
            before.append((record, due_ms))

    def _must_be_in_order(self, wish: SentWish, waited: SeenRecord, due_ms: int) -> bool:
        """Return whether a record was promised, waited until `due_ms`, and may not come late.

        A record may come late if its change had no outcome, or if a record with its id was sent
        and not acknowledged.  It did not wait while that counted, and waits again if a crash or a
        failed write has taken that away.
        """
        if wish.promised_ms == UNSAID or due_ms <= waited.wall_ms:
            return False
        if wish.after_ms != UNSAID and waited.wall_ms == UNSEEN_MS:
            # A delay counts from the append.  If that was not seen, `due_ms` is far too early.
            return False
        if any(wish.sent_ms <= sent_ms for sent_ms in self._unsure.get(wish.schedule_id, [])):
            return False
        return not any(
            asked.outcome == NO_OUTCOME and _may_name(asked, wish, waited.s_offset)
            for asked in self._changes
        )

    def _is_excused(self, wish: SentWish) -> bool:
        """Return whether a record that never came was cancelled or replaced, or may have been."""
        waits = self._entries(wish.value)
        if not waits:
            return False
        named = self._named.get(wish.schedule_id, [])
        if named and named[-1] > waits[-1]:
            return True
        return any(
            asked.due_ms == UNSAID
            and (
                (asked.outcome == CANCELLED and asked.told_s_offset == waits[-1])
                or (asked.is_unclear and _may_name(asked, wish, waits[-1]))
            )
            for asked in self._changes
        )

    def _due_ms(self, wish: SentWish, s_offset: int) -> int:
        """Return the earliest time at which this entry of a record is due."""
        waited = self._parked_at[s_offset][0]
        due_ms = waited.wall_ms + wish.after_ms if wish.after_ms != UNSAID else wish.at_ms
        waits = self._entries(wish.value)
        if s_offset == waits[0]:
            return due_ms
        moves = [each for each in self._changes if each.due_ms != UNSAID]
        for asked in moves:
            if asked.outcome == MOVED and asked.told_s_offset == s_offset:
                return asked.due_ms
        earlier = [each for each in waits if each < s_offset]
        retried: list[int] = []
        if wish.value in self._once:
            earlier = [max(earlier)]
        else:
            # Without idempotence a retry is parked as well, and any of them may have been moved.
            retried = [due_ms]
        unclear = [
            asked.due_ms
            for asked in moves
            if asked.is_unclear and any(_may_name(asked, wish, each) for each in earlier)
        ]
        return min([*retried, *unclear], default=_NEVER_MS)

    # --- Answers.

    def _judge_answer(self, asked: AskedChange) -> Iterator[str]:
        if asked.outcome == UNKNOWN:
            yield from self._judge_unknown(asked)
        elif asked.outcome in (CANCELLED, MOVED, ALREADY_RELEASED):
            entry = self._parked_at.get(asked.told_s_offset, [])
            if not entry:
                yield f"is told of {asked.told_s_offset}, where nothing has waited"
            for record in entry:
                wish = self._ledger.wishes[record.value]
                if asked.schedule_id is not None and asked.schedule_id != wish.schedule_id:
                    yield f"is told of {record.value[:_SHOWN]!r}, which has {wish.schedule_id!r}"
                else:
                    yield from self._judge_told(asked, record)

    def _judge_told(self, asked: AskedChange, named: SeenRecord) -> Iterator[str]:
        comes = self._comes.get(named.value, [])
        if named.value not in self._once:
            comes = [each for each in comes if each.s_offset == named.s_offset]
        value = named.value[:_SHOWN]
        if asked.outcome == CANCELLED and comes:
            yield f"has cancelled {value!r}, which came at offset {comes[0].offset}"
        elif asked.outcome == ALREADY_RELEASED:
            if not comes or comes[0].seen_ms > asked.answered_ms:
                yield f"is told that {value!r} was released, and it had not come"
            elif asked.told_offset != UNSAID:
                at = self._came_at.get(asked.told_offset)
                if at is None or at.s_offset != named.s_offset:
                    yield f"is told that {value!r} is at {asked.told_offset}, where it is not"

    def _judge_unknown(self, asked: AskedChange) -> Iterator[str]:
        """Check that no record that had waited under this name came after the answer."""
        if asked.schedule_id is None:
            named = self._parked_at.get(asked.s_offset, [])
        else:
            offsets = self._named.get(asked.schedule_id, [])
            named = [self._parked_at[s_offset][0] for s_offset in offsets]
        for value in dict.fromkeys([each.value for each in named]):
            for each in self._comes.get(value, []):
                if each.s_offset == UNSAID or each.seen_ms <= asked.answered_ms:
                    continue
                if asked.schedule_id is None and asked.s_offset != each.s_offset:
                    continue
                waits = self._waits[value]
                is_moved = value in self._once and asked.schedule_id is not None
                since = waits[0] if is_moved else self._parked_at[each.s_offset][0]
                if since.seen_ms < asked.sent_ms:
                    yield (
                        f"is told that nothing waits, and {value[:_SHOWN]!r}, which waited since "
                        f"{since.seen_ms}, came at {each.seen_ms}"
                    )


def _may_name(asked: AskedChange, wish: SentWish, s_offset: int) -> bool:
    """Return whether a change may concern a record that waits in this entry."""
    if asked.schedule_id is None:
        return asked.s_offset == s_offset
    return asked.schedule_id == wish.schedule_id
