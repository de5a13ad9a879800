"""Steps of a wheel: views of a real wheel, and where its entries went between.

The wheel is the product's; nothing here knows how it works.  A step is one `advance`, and what
moved is found by comparing the view before with the view after.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tarry.base.errors import InvalidSetting
from tarry.timer import TimerEntry, TimingWheel
from tarry.timer.view import BucketView, WheelView, look_at

# More steps make a poster; more rings, or more buckets, are too thin for a dot.
STEPS_MAX: Final = 12
LEVELS_DRAWN_MAX: Final = 8
SIZE_DRAWN_MAX: Final = 60
ENTRIES_MAX: Final = 10_000
# An hour: beyond it is another thing than a timer.
TICK_MS_MAX: Final = 3_600_000


@dataclass(frozen=True)
class EntryMove:
    """Entries that went from one bucket to another; None stands for outside of the wheel."""

    before: BucketView | None
    after: BucketView | None
    deadlines_ms: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.deadlines_ms)


@dataclass(frozen=True)
class Step:
    """The wheel after the entries were added, or after one `advance(now_ms)`."""

    now_ms: int
    view: WheelView
    moves: tuple[EntryMove, ...]
    is_first: bool

    @property
    def heading(self) -> str:
        return f"{'start at' if self.is_first else 'advance to'} {self.now_ms} ms"

    def sentences(self) -> list[str]:
        """Tell what happened, in one or two sentences for the heading of the picture."""
        if len(self.moves) == 1:
            return _sentences_of_one(self.moves[0], is_first=self.is_first)
        counts = {"added": 0, "fell": 0, "due": 0}
        for move in self.moves:
            counts[_kind(move)] += move.count
        parts = [f"{count} {word}" for word, count in counts.items() if count]
        happened = ", ".join(parts) or "nothing happened"
        return [f"{happened}; {len(self.view)} pending"]


def wheel_of(now_ms: int, tick_ms: int, size: int) -> TimingWheel:
    """Make a wheel that can be drawn."""
    if not 1 <= tick_ms <= TICK_MS_MAX:
        raise InvalidSetting(f"a tick of {tick_ms} ms; take 1 to {TICK_MS_MAX}")
    if not 2 <= size <= SIZE_DRAWN_MAX:
        raise InvalidSetting(
            f"a level of {size} buckets; a wheel has at least 2, a picture at most {SIZE_DRAWN_MAX}"
        )
    return TimingWheel(now_ms, tick_ms, size)


def steps_of(
    wheel: TimingWheel, now_ms: int, deadlines_ms: Sequence[int], times_ms: Iterable[int] | None
) -> list[Step]:
    """Add the entries and advance to each of the times; None: wherever a bucket is due."""
    entries = [TimerEntry(deadline_ms) for deadline_ms in deadlines_ms]
    handed_back = [entry for entry in entries if not wheel.add(entry)]
    view = look_at(wheel)
    steps = [Step(now_ms, view, _moves(None, view, handed_back), is_first=True)]
    for time_ms in _due_times(wheel) if times_ms is None else times_ms:
        if len(steps) == STEPS_MAX:
            raise InvalidSetting(
                f"that makes more than the {STEPS_MAX} steps that a picture has room for; "
                "name fewer times, with --advance"
            )
        before = view
        due = wheel.advance(time_ms)
        view = look_at(wheel)
        steps.append(Step(time_ms, view, _moves(before, view, due), is_first=False))
    if len(view.levels) > LEVELS_DRAWN_MAX:
        raise InvalidSetting(
            f"the wheel has {len(view.levels)} levels and a picture has room for "
            f"{LEVELS_DRAWN_MAX}; take a larger --size or --tick, or nearer deadlines"
        )
    return steps


def title_of(steps: Sequence[Step]) -> str:
    """Return the title of the picture."""
    view = steps[0].view
    shape = f"a wheel of {view.wheel_size} buckets of {view.tick_ms} ms"
    added = sum(move.count for move in steps[0].moves)
    if added == 1:
        return f"An entry due at {steps[0].moves[0].deadlines_ms[0]} ms in {shape}"
    return f"{added:,} entries in {shape}"


def _due_times(wheel: TimingWheel) -> Iterable[int]:
    while (due_ms := wheel.next_due_ms()) is not None:
        yield due_ms


def _moves(
    before: WheelView | None, after: WheelView, due: Sequence[TimerEntry]
) -> tuple[EntryMove, ...]:
    """Return what lies elsewhere now, grouped by where it came from and where it went."""
    was = _places(before)
    groups: dict[tuple[int, int, int, int], tuple[BucketView | None, BucketView | None]] = {}
    deadlines: dict[tuple[int, int, int, int], list[int]] = {}
    now = _places(after)
    for entry in [*now, *due]:
        source, target = was.get(entry), now.get(entry)
        key = (*_key(source), *_key(target))
        if _key(source) == _key(target) and target is not None:
            continue
        groups[key] = (source, target)
        deadlines.setdefault(key, []).append(entry.deadline_ms)
    return tuple(EntryMove(*groups[key], tuple(sorted(deadlines[key]))) for key in sorted(groups))


def _places(view: WheelView | None) -> dict[TimerEntry, BucketView]:
    if view is None:
        return {}
    return {
        entry: bucket
        for level in view.levels
        for bucket in level.buckets
        for entry in bucket.entries
    }


def _key(bucket: BucketView | None) -> tuple[int, int]:
    return (-1, -1) if bucket is None else (bucket.level, bucket.slot)


def _kind(move: EntryMove) -> str:
    if move.after is None:
        return "due"
    return "added" if move.before is None else "fell"


def _sentences_of_one(move: EntryMove, *, is_first: bool) -> list[str]:
    """Tell the whole story of one move, which has room for it."""
    is_one = move.count == 1
    what = f"the entry due at {move.deadlines_ms[0]} ms" if is_one else f"{move.count} entries"
    after = move.after
    if after is None and is_first:
        return [f"{what} {'was' if is_one else 'were'} due before being added"]
    if after is None:
        return [f"{what} {'is' if is_one else 'are'} handed out"]
    verb = "go" if move.before is None else "fall"
    if is_one:
        verb = {"go": "goes", "fall": "falls"}[verb]
    return [f"{what} {verb} to level {after.level}, slot {after.slot}", span_of(after)]


def span_of(bucket: BucketView) -> str:
    """Return the deadlines that a bucket is for."""
    if bucket.first_ms == bucket.last_ms:
        return f"for what is due at {bucket.last_ms} ms"
    return f"for what is due from {bucket.first_ms} to {bucket.last_ms} ms"
