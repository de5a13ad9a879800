"""Rings of one wheel: the lowest level inside, entries as dots, falls as arrows.

The further from the middle, the later.  All levels have equally many buckets, so slot n of every
level lies in the same direction: slot 0 begins at the top, and they count clockwise.
"""

from __future__ import annotations

from typing import Final

from tarry.cli.picture.steps import EntryMove, Step, span_of
from tarry.cli.picture.svg import (
    Point,
    Sector,
    arc_path,
    element,
    hint,
    number,
    on_circle,
    sector_path,
    text,
)
from tarry.timer.view import BucketView, LevelView

OUTER_RADIUS: Final = 150.0
HUB_RADIUS: Final = 42.0
RING_GAP: Final = 5.0
RING_WIDTH_MAX: Final = 36.0
BUCKET_GAP: Final = 2.0

DOT_RADIUS: Final = 2.6
DOT_STEP: Final = 6.8

# More arrows than these hide what they should show.
ARROWS_MAX: Final = 8
# Deadlines that the hint of a bucket tells one by one.
DEADLINES_TOLD_MAX: Final = 12


class Rings:
    """Rings of `level_count` levels of `size` buckets, and where they lie around a point."""

    def __init__(self, centre: Point, level_count: int, size: int) -> None:
        room = (OUTER_RADIUS - HUB_RADIUS) / level_count
        self.centre = centre
        self.size = size
        self.width = min(RING_WIDTH_MAX, room - RING_GAP)
        self.hub = OUTER_RADIUS - level_count * (self.width + RING_GAP)

    def sector(self, level: int, slot: int) -> Sector:
        inner = self.hub + RING_GAP + level * (self.width + RING_GAP)
        sweep = 360 / self.size
        return Sector(self.centre, inner, inner + self.width, slot * sweep, (slot + 1) * sweep)

    def draw(self, step: Step) -> str:
        """Draw the whole wheel after a step."""
        parts = [self._slot_numbers()]
        parts += [self._level(level) for level in step.view.levels]
        parts += [self._arrow(move) for move in falls_drawn(step)]
        parts.append(self._hub(step))
        return "\n".join(parts)

    def _slot_numbers(self) -> str:
        every = 1 if self.size <= 30 else 5
        parts = []
        for slot in range(0, self.size, every):
            at = on_circle(self.centre, OUTER_RADIUS + 10, (slot + 0.5) * 360 / self.size)
            parts.append(text(str(slot), Point(at.x, at.y + 3), "slot", "middle"))
        return "".join(parts)

    def _level(self, level: LevelView) -> str:
        """Draw a ring: its empty buckets as one path, the others each with their entries."""
        empty = []
        held = []
        for bucket in level.buckets:
            if bucket.entries:
                held.append(self._bucket(bucket))
            else:
                empty.append(sector_path(self.sector(level.number, bucket.slot), BUCKET_GAP))
        current = self.sector(level.number, level.current_slot)
        now = hint(f"level {level.number} stands at slot {level.current_slot}")
        return "\n".join(
            [
                element("path", d="".join(empty), class_="bucket") if empty else "",
                *held,
                element("path", now, d=arc_path(current, BUCKET_GAP), class_="now"),
            ]
        ).lstrip("\n")

    def _bucket(self, bucket: BucketView) -> str:
        sector = self.sector(bucket.level, bucket.slot)
        outline = element("path", d=sector_path(sector, BUCKET_GAP), class_="bucket held")
        return element("g", hint(told(bucket)) + outline + dots(sector, len(bucket.entries)))

    def _hub(self, step: Step) -> str:
        time = str(step.view.current_ms)
        # A time of years is a number of eleven digits, and the hub is as wide as it is.
        size = min(22.0, (self.hub - 6) * 2 / (0.72 * max(2, len(time))))
        at = self.centre
        return element(
            "g",
            hint(f"the wheel's time is {time} ms")
            + element("circle", cx=at.x, cy=at.y, r=self.hub - 4, class_="hub")
            + element(
                "text",
                time,
                x=at.x,
                y=at.y + size * 0.2,
                class_="time",
                text_anchor="middle",
                style=f"font-size:{number(size)}px",
            )
            + text("ms", Point(at.x, at.y + size * 0.2 + 13), "small", "middle"),
        )

    def _arrow(self, move: EntryMove) -> str:
        """Draw an arrow from where the entries lay to where they lie now, or into the hub if
        due.
        """
        assert move.before is not None
        source = self.sector(move.before.level, move.before.slot)
        start = source.middle
        if move.after is None:
            angle = (source.start + source.end) / 2
            end = on_circle(self.centre, self.hub - 4, angle)
            words = f"{move.count} due"
        else:
            end = self.sector(move.after.level, move.after.slot).middle
            words = f"{move.count} from level {move.before.level} to level {move.after.level}"
        ghost = element("path", d=sector_path(source, BUCKET_GAP), class_="ghost")
        return element("g", hint(words) + ghost + arrow(start, end, is_bent=move.after is not None))


def falls_drawn(step: Step) -> list[EntryMove]:
    """Return the moves that get an arrow."""
    falls = [move for move in step.moves if move.before is not None]
    return falls if len(falls) <= ARROWS_MAX else []


def told(bucket: BucketView) -> str:
    """Describe a bucket in words."""
    deadlines = sorted(entry.deadline_ms for entry in bucket.entries)
    listed = ", ".join(str(deadline_ms) for deadline_ms in deadlines[:DEADLINES_TOLD_MAX])
    more = len(deadlines) - DEADLINES_TOLD_MAX
    rest = f" and {more} more" if more > 0 else ""
    place = f"level {bucket.level}, slot {bucket.slot}"
    return f"{place}, {span_of(bucket)}: {listed}{rest} ms"


def dots(sector: Sector, count: int) -> str:
    """Draw so many dots inside a sector; a number where they have no room."""
    rows = rows_for(sector, count)
    if not rows:
        at = sector.middle
        return text(str(count), Point(at.x, at.y + 4), "count", "middle")
    width = sector.outer - sector.inner
    sweep = sector.end - sector.start
    circles = []
    for row, in_row in enumerate(rows):
        radius = sector.inner + width * (row + 1) / (len(rows) + 1)
        for place in range(in_row):
            angle = sector.start + sweep * (place + 1) / (in_row + 1)
            at = on_circle(sector.centre, radius, angle)
            circles.append(element("circle", cx=at.x, cy=at.y, r=DOT_RADIUS, class_="entry"))
    return "".join(circles)


def rows_for(sector: Sector, count: int) -> list[int]:
    """Return how many dots stand in each row, inner row first; nothing if they do not fit."""
    width = sector.outer - sector.inner
    for row_count in range(1, max(1, int(width / DOT_STEP)) + 1):
        room = []
        for row in range(row_count):
            radius = sector.inner + width * (row + 1) / (row_count + 1)
            length = radius * (sector.end - sector.start) / 57.296 - BUCKET_GAP
            room.append(max(1, int(length / DOT_STEP)))
        if sum(room) >= count:
            return _spread(room, count)
    return []


def _spread(room: list[int], count: int) -> list[int]:
    """Fill rows in proportion to their room, the outer ones, which are longer, first."""
    left, rows = count, []
    for place in range(len(room) - 1, -1, -1):
        share = -(-left * room[place] // sum(room[: place + 1]))
        rows.append(min(share, room[place], left))
        left -= rows[-1]
    return rows[::-1]


def arrow(start: Point, end: Point, *, is_bent: bool) -> str:
    """Draw a line with a head at its end; bent to the side so that it does not hide the middle."""
    dx, dy = end.x - start.x, end.y - start.y
    length = max(1.0, (dx * dx + dy * dy) ** 0.5)
    bend = min(24.0, length * 0.22) if is_bent else 0.0
    control = Point(
        (start.x + end.x) / 2 - dy / length * bend, (start.y + end.y) / 2 + dx / length * bend
    )
    # The head points where the curve arrives.
    hx, hy = end.x - control.x, end.y - control.y
    size = max(1.0, (hx * hx + hy * hy) ** 0.5)
    ux, uy = hx / size, hy / size
    # It ends a little before the dot that it points to.
    tip = Point(end.x - ux * 5, end.y - uy * 5)
    base = Point(tip.x - ux * 8, tip.y - uy * 8)
    head = [tip, Point(base.x - uy * 4, base.y + ux * 4), Point(base.x + uy * 4, base.y - ux * 4)]
    curve = (
        f"M{number(start.x)} {number(start.y)}"
        f"Q{number(control.x)} {number(control.y)} {number(base.x)} {number(base.y)}"
    )
    points = " ".join(f"{number(point.x)},{number(point.y)}" for point in head)
    return element("path", d=curve, class_="fall") + element(
        "polygon", points=points, class_="head"
    )
