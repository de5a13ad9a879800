"""The whole picture: a panel for each step, the queue of buckets below it, and what marks mean.

One file for light and dark: it follows the reader's colour scheme and stands on a card of its own
colour, so that it can be read on any page.  The same steps give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tarry.cli.picture.rings import OUTER_RADIUS, Rings, falls_drawn, told
from tarry.cli.picture.steps import Step, title_of
from tarry.cli.picture.svg import Point, element, hint, number, text
from tarry.timer.view import BucketView

MARGIN: Final = 16.0
COLUMNS_MAX: Final = 2
PANEL_WIDTH: Final = 372.0
HEADING_HEIGHT: Final = 62.0
WHEEL_HEIGHT: Final = 2 * OUTER_RADIUS + 40
CHIP_COLUMNS: Final = 4
CHIP_ROWS_MAX: Final = 2
CHIP_WIDTH: Final = 88.0
CHIP_HEIGHT: Final = 36.0
LEGEND_LINE: Final = 20.0

# Without months and years, which are not all equally long.
UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))

# Class → (property, light, dark).  Text has at least 4.5 : 1 against what it stands on.
PALETTE: Final = (
    ("card", "fill", "#ffffff", "#0d1117"),
    ("card", "stroke", "#d0d7de", "#3d444d"),
    ("ink", "fill", "#1f2328", "#f0f6fc"),
    ("time", "fill", "#1f2328", "#f0f6fc"),
    ("count", "fill", "#0a3069", "#d6e9ff"),
    ("place", "fill", "#0a3069", "#d6e9ff"),
    ("muted", "fill", "#59636e", "#9198a1"),
    ("small", "fill", "#59636e", "#9198a1"),
    ("slot", "fill", "#59636e", "#9198a1"),
    ("bucket", "fill", "#eef1f4", "#1b222b"),
    ("held", "fill", "#cfe5fd", "#143760"),
    ("held", "stroke", "#0969da", "#4493f8"),
    ("entry", "fill", "#0550ae", "#a5d3ff"),
    ("hub", "fill", "#ffffff", "#0d1117"),
    ("hub", "stroke", "#d0d7de", "#3d444d"),
    ("icon-ring", "stroke", "#b1bac4", "#59636e"),
    ("now", "stroke", "#1f2328", "#f0f6fc"),
    ("ghost", "stroke", "#bc4c00", "#f0883e"),
    ("fall", "stroke", "#bc4c00", "#f0883e"),
    ("head", "fill", "#bc4c00", "#f0883e"),
)
SHAPES: Final = (
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;font-size:12px}",
    ".ink{font-size:15px;font-weight:600}.time{font-weight:600}",
    ".count{font-size:11px;font-weight:600}.small,.slot,.place{font-size:10px}",
    ".held{stroke-width:1}.now{fill:none;stroke-width:3.5;stroke-linecap:butt}",
    ".icon{stroke-width:2.5}.icon-ring{fill:none;stroke-width:1}",
    ".ghost{fill:none;stroke-width:1.2;stroke-dasharray:3 3}.fall{fill:none;stroke-width:2}",
)


def draw(steps: Sequence[Step]) -> str:
    """Draw the picture as the text of an SVG file."""
    columns = min(COLUMNS_MAX, len(steps))
    rows = -(-len(steps) // columns)
    levels = max((step.view.levels for step in steps), key=len)
    chip_rows = max(_chip_rows(step) for step in steps)
    panel_height = HEADING_HEIGHT + WHEEL_HEIGHT + 24 + chip_rows * (CHIP_HEIGHT + 6) + 12
    legend_top = MARGIN + 20 + rows * panel_height
    legend, legend_height = _legend(steps, Point(MARGIN + 8, legend_top), columns)
    width = columns * PANEL_WIDTH + 2 * MARGIN
    height = legend_top + legend_height + MARGIN

    body = [
        element("title", _escaped(title_of(steps)), id="tarry-wheel-title"),
        element("desc", _escaped(_described(steps)), id="tarry-wheel-desc"),
        element("style", style()),
        element("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=8, class_="card"),
    ]
    for place, step in enumerate(steps):
        left = MARGIN + place % columns * PANEL_WIDTH
        top = MARGIN + place // columns * panel_height
        rings = Rings(
            Point(left + PANEL_WIDTH / 2, top + HEADING_HEIGHT + WHEEL_HEIGHT / 2),
            len(levels),
            step.view.wheel_size,
        )
        body.append(element("g", "\n" + "\n".join(_panel(step, Point(left, top), rings)) + "\n"))
    body.append(legend)
    return (
        element(
            "svg",
            "\n" + "\n".join(body) + "\n",
            xmlns="http://www.w3.org/2000/svg",
            class_="tarry-wheel",
            role="img",
            aria_labelledby="tarry-wheel-title tarry-wheel-desc",
            viewBox=f"0 0 {number(width)} {number(height)}",
            width=width,
            height=height,
        )
        + "\n"
    )


def style() -> str:
    """Colours and shapes; every rule names the picture, so that a page around it keeps its own."""
    light = "".join(f".{name}{{{key}:{value}}}" for name, key, value, _ in PALETTE)
    dark = "".join(f".{name}{{{key}:{value}}}" for name, key, _, value in PALETTE)
    rules = "".join(SHAPES) + light
    return f"\n{_scoped(rules)}\n@media(prefers-color-scheme:dark){{{_scoped(dark)}}}\n"


def _scoped(rules: str) -> str:
    scoped = []
    for rule in rules.split("}")[:-1]:
        selectors, _, body = rule.partition("{")
        names = ",".join(f".tarry-wheel {name}" for name in selectors.split(","))
        scoped.append(f"{names}{{{body}}}")
    return "".join(scoped)


def _panel(step: Step, corner: Point, rings: Rings) -> list[str]:
    """Draw a step: heading, what happened, the wheel, the queue."""
    middle = corner.x + PANEL_WIDTH / 2
    lines = [text(step.heading, Point(middle, corner.y + 22), "ink", "middle")]
    for place, sentence in enumerate(step.sentences()):
        at = Point(middle, corner.y + 42 + 16 * place)
        lines.append(text(sentence, at, "muted", "middle"))
    lines.append(rings.draw(step))
    top = corner.y + HEADING_HEIGHT + WHEEL_HEIGHT + 14
    lines += _queue(step.view.queue, Point(corner.x + 4, top))
    return lines


def _chip_rows(step: Step) -> int:
    return max(1, min(CHIP_ROWS_MAX, -(-len(step.view.queue) // CHIP_COLUMNS)))


def _queue(queue: Sequence[BucketView], corner: Point) -> list[str]:
    """Draw the queue of buckets, the next one first."""
    if not queue:
        return [text("the queue of buckets is empty", corner, "muted")]
    room = CHIP_COLUMNS * CHIP_ROWS_MAX
    shown = list(queue[:room]) if len(queue) <= room else list(queue[: room - 1])
    lines = [text("queue of buckets, the next one first", corner, "muted")]
    for place, bucket in enumerate(shown):
        lines.append(_chip(bucket, _chip_corner(corner, place)))
    if len(shown) < len(queue):
        at = _chip_corner(corner, len(shown))
        words = f"and {len(queue) - len(shown)} more"
        lines.append(text(words, Point(at.x + CHIP_WIDTH / 2, at.y + 22), "muted", "middle"))
    return lines


def _chip_corner(corner: Point, place: int) -> Point:
    row, column = divmod(place, CHIP_COLUMNS)
    return Point(corner.x + column * (CHIP_WIDTH + 4), corner.y + 8 + row * (CHIP_HEIGHT + 6))


def _chip(bucket: BucketView, corner: Point) -> str:
    """Draw a bucket in the queue: when it is due, and which one it is."""
    kind = "bucket held" if bucket.entries else "bucket"
    middle = corner.x + CHIP_WIDTH / 2
    due = f"{bucket.expiration_ms} ms"
    return element(
        "g",
        hint(told(bucket))
        + element(
            "rect",
            x=corner.x,
            y=corner.y,
            width=CHIP_WIDTH,
            height=CHIP_HEIGHT,
            rx=4,
            class_=kind,
        )
        + element(
            "text",
            due,
            x=middle,
            y=corner.y + 15,
            class_="count",
            text_anchor="middle",
            style=f"font-size:{number(min(11.0, (CHIP_WIDTH - 8) / (0.66 * len(due))))}px",
        )
        + text(
            f"level {bucket.level}, slot {bucket.slot}",
            Point(middle, corner.y + 29),
            "place",
            "middle",
        ),
    )


def _legend(steps: Sequence[Step], corner: Point, columns: int) -> tuple[str, float]:
    """Draw what rings and marks mean; returns it with the height that it takes."""
    levels = max((step.view.levels for step in steps), key=len)
    lines = []
    for level in levels:
        at = Point(corner.x, corner.y + level.number * LEGEND_LINE)
        size = len(level.buckets)
        shape = f"{size} buckets of {span(level.tick_ms)}, {span(level.tick_ms * size)} in all"
        lines.append(_ring_icon(at, level.number, len(levels)))
        lines.append(text(f"level {level.number}: {shape}", Point(at.x + 26, at.y + 4), "muted"))
    if columns > 1:
        beside = Point(corner.x + PANEL_WIDTH, corner.y)
    else:
        beside = Point(corner.x, corner.y + len(levels) * LEGEND_LINE + 6)
    marks = _marks(beside, has_falls=any(falls_drawn(step) for step in steps))
    rows = max(len(levels), len(marks)) if columns > 1 else len(levels) + len(marks) + 0.3
    return element("g", "\n" + "\n".join(lines + marks) + "\n"), rows * LEGEND_LINE - 8


def span(time_ms: int) -> str:
    """Write a length of time in the largest unit that tells it exactly."""
    for unit, unit_ms in UNITS:
        if time_ms % unit_ms == 0 and time_ms >= unit_ms:
            return f"{time_ms // unit_ms} {unit}"
    return f"{time_ms} ms"


def _ring_icon(at: Point, number_: int, count: int) -> str:
    """Rings as small as a letter, with the one that is meant in ink."""
    circles = []
    for level in range(count):
        radius = 8 * (level + 1) / count
        class_ = "now icon" if level == number_ else "icon-ring"
        circles.append(element("circle", cx=at.x + 9, cy=at.y, r=radius, class_=class_))
    return "".join(circles)


def _marks(corner: Point, *, has_falls: bool) -> list[str]:
    left = corner.x
    drawn = []

    def mark(words: str, shape: str) -> None:
        drawn.append(shape + text(words, Point(left + 26, row() + 4), "muted"))

    def row() -> float:
        return corner.y + len(drawn) * LEGEND_LINE

    def box(class_: str) -> str:
        return element("rect", x=left, y=row() - 7, width=18, height=14, rx=2, class_=class_)

    dot = element("circle", cx=left + 9, cy=row(), r=2.6, class_="entry")
    mark("a bucket with its entries, as dots or as a number", box("bucket held") + dot)
    mark(
        "where the time of a level stands",
        element("path", d=f"M{number(left)} {number(row())}h18", class_="now"),
    )
    if has_falls:
        mark("where entries were before this step", box("ghost"))
    return drawn


def _described(steps: Sequence[Step]) -> str:
    """Describe the picture in words, for readers who do not see it."""
    view = steps[0].view
    told_steps = [f"{step.heading}: {', '.join(step.sentences())}." for step in steps]
    shape = f"A wheel with a tick of {view.tick_ms} ms and {view.wheel_size} buckets a level."
    return " ".join([shape, *told_steps])


def _escaped(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
