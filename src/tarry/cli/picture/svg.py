"""The little of SVG that the pictures need: elements, numbers and shapes, always well-formed."""

from __future__ import annotations

from math import cos, radians, sin
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr


class Point(NamedTuple):
    x: float
    y: float


class Sector(NamedTuple):
    """Part of a ring; angles in degrees, clockwise from the top."""

    centre: Point
    inner: float
    outer: float
    start: float
    end: float

    @property
    def middle(self) -> Point:
        """The point in the middle of the sector."""
        return on_circle(self.centre, (self.inner + self.outer) / 2, (self.start + self.end) / 2)


def element(name: str, content: str = "", **attributes: str | float) -> str:
    """Write one element; `content` is SVG already.  `class_` is written `class`, `_` in names
    `-`.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(number(value))}"
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(words: str, at: Point, class_: str, anchor: str = "start") -> str:
    """Write a line of text; `anchor` says which part of it stands at the point."""
    return element("text", escape(words), x=at.x, y=at.y, class_=class_, text_anchor=anchor)


def hint(words: str) -> str:
    """Write what a browser shows under the mouse and a screen reader says of the group around
    it.
    """
    return element("title", escape(words))


def number(value: str | float) -> str:
    """Two digits after the point at most, so that the bytes are the same on every machine."""
    if isinstance(value, str):
        return value
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def on_circle(centre: Point, radius: float, degrees: float) -> Point:
    """Return the point of a circle at an angle, clockwise from the top."""
    angle = radians(degrees)
    return Point(centre.x + radius * sin(angle), centre.y - radius * cos(angle))


def sector_path(sector: Sector, margin: float = 0.0) -> str:
    """Write the outline of a sector; its straight sides keep half of `margin` from its
    neighbours.
    """
    corners = []
    for radius in (sector.outer, sector.inner):
        # The same distance at every radius is another angle at every radius.
        off = margin / radius * 28.648
        corners.append(on_circle(sector.centre, radius, sector.start + off))
        corners.append(on_circle(sector.centre, radius, sector.end - off))
    a, b, c, d = ((number(point.x), number(point.y)) for point in corners)
    outer, inner = number(sector.outer), number(sector.inner)
    return (
        f"M{a[0]} {a[1]}A{outer} {outer} 0 0 1 {b[0]} {b[1]}"
        f"L{d[0]} {d[1]}A{inner} {inner} 0 0 0 {c[0]} {c[1]}Z"
    )


def arc_path(sector: Sector, margin: float = 0.0) -> str:
    """Write the inner edge of a sector."""
    off = margin / sector.inner * 28.648
    start = on_circle(sector.centre, sector.inner, sector.start + off)
    end = on_circle(sector.centre, sector.inner, sector.end - off)
    radius = number(sector.inner)
    return (
        f"M{number(start.x)} {number(start.y)}"
        f"A{radius} {radius} 0 0 1 {number(end.x)} {number(end.y)}"
    )
