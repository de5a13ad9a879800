"""Plots: what all plots of the reports have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from tarry.spark.reports.installed import load_altair
from tarry.spark.reports.page import Key, Plot

# Ticks of an axis of waits, where people think in other units than thousands.
WAIT_TICKS_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(1_000, 2_000, 5_000, 10_000, 30_000),
    *(60_000, 120_000, 300_000, 600_000, 1_800_000),
    *(3_600_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000, 259_200_000, 604_800_000),
)
# As many ticks can be read beside a plot.
TICKS_MAX: Final = 7

DAY_MS: Final = 86_400_000

# A label of a time that is so near to an end of its axis stands inside of it: half its width.
FLUSH_PX: Final = 45

WAIT_LABELS: Final = (
    "datum.value < 1000 ? datum.value + ' ms' : datum.value < 60000 ? datum.value / 1000 + ' s' : "
    "datum.value < 3600000 ? datum.value / 60000 + ' min' : datum.value < 86400000 ? "
    "datum.value / 3600000 + ' h' : datum.value / 86400000 + ' d'"
)

FONT: Final = "system-ui, sans-serif"

CONFIG: Final[dict[str, Any]] = {
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--soft)",
        "titleColor": "var(--soft)",
        "titleFontWeight": "normal",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "gridColor": "var(--grid)",
        "labelFontSize": 12,
        "labelOverlap": True,
        "titleFontSize": 12,
        "titlePadding": 8,
        "labelPadding": 6,
    },
    "text": {"color": "var(--ink)"},
}


def data_of(rows: Sequence[Mapping[str, object]]) -> Any:
    """Return rows as the data of a plot."""
    return load_altair().Data(values=list(rows))


def over_waits(channel: Any, name: str, waits_ms: Sequence[float], title: str = "Wait") -> Any:
    """Return the place of a wait of the data on a logarithmic scale that has room for all waits.

    `channel` is Altair's X or Y.
    """
    alt = load_altair()
    ticks = ticks_for(waits_ms)
    shown = ticks[:: -(-len(ticks) // TICKS_MAX)]
    return channel(
        f"{name}:Q",
        scale=alt.Scale(type="log", domain=[ticks[0], ticks[-1]], nice=False),
        axis=alt.Axis(title=title, values=shown, labelExpr=WAIT_LABELS),
    )


def ticks_for(waits_ms: Sequence[float]) -> list[int]:
    """Return the ticks from below the shortest wait to above the longest."""
    shortest, longest = min(waits_ms, default=1), max(waits_ms, default=1)
    first = max((each for each in WAIT_TICKS_MS if each <= shortest), default=WAIT_TICKS_MS[0])
    last = min((each for each in WAIT_TICKS_MS if each >= longest), default=int(longest))
    ticks = [each for each in WAIT_TICKS_MS if first <= each <= last]
    if ticks[-1] < last:
        ticks.append(last)
    # One tick is no scale.
    return ticks if len(ticks) > 1 else [ticks[0], ticks[0] * 2]


def over_time(name: str, span_ms: int) -> Any:
    """Return the place of a time of the data from left to right."""
    alt = load_altair()
    form = "%H:%M:%S" if span_ms < 300_000 else "%H:%M" if span_ms < DAY_MS else "%d %b %H:%M"
    if span_ms > 4 * DAY_MS:
        form = "%d %b"
    axis = alt.Axis(
        title="Time (UTC)",
        format=form,
        labelOverlap=True,
        labelFlush=FLUSH_PX,
        tickCount=6,
        grid=False,
    )
    return alt.X(f"{name}:T", scale=alt.Scale(type="utc"), axis=axis)


def coloured(name: str, colours: Mapping[str, str]) -> Any:
    """Return the colours of a field of the data; the page shows them as the legend."""
    alt = load_altair()
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{name}:N", scale=scale, legend=None)


def shaped(name: str, shapes: Mapping[str, str]) -> Any:
    """Return the shapes of a field of the data, which say the same as its colours."""
    alt = load_altair()
    scale = alt.Scale(domain=list(shapes), range=list(shapes.values()))
    return alt.Shape(f"{name}:N", scale=scale, legend=None)


# Signs of Vega's shapes, for legends.
SIGNS: Final = {
    "square": "\u25a0",
    "circle": "\u25cf",
    "cross": "\u271a",
    "diamond": "\u25c6",
    "triangle-up": "\u25b2",
    "triangle-down": "\u25bc",
    "triangle-left": "\u25c0",
    "triangle-right": "\u25b6",
}


def keys(colours: Mapping[str, str], shapes: Mapping[str, str] | None = None) -> list[Key]:
    """Return the legend of colours, and of the shapes that go with them."""
    signs = {name: SIGNS[shape] for name, shape in (shapes or {}).items()}
    return [Key(name, colour, signs.get(name, SIGNS["square"])) for name, colour in colours.items()]


def plot(
    chart: Any,
    title: str,
    text: str,
    height: int,
    legend: Sequence[Key] = (),
    *,
    is_wide: bool = False,
) -> Plot:
    """Finish a plot as wide as its place in the page."""
    alt = load_altair()
    finished = chart.properties(
        width="container",
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    )
    spec = finished.to_dict()
    spec["config"] = CONFIG
    return Plot(spec, title, text, legend, is_wide)


def time_text(at_ms: int) -> str:
    """Write a time for people: seconds, in UTC."""
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%d %H:%M:%S}"


def length_text(length_ms: float) -> str:
    """Write a length of time: `250 ms`, `1.5 s`, `2 min`, `3 h`, `2 d`."""
    for unit_ms, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if length_ms >= unit_ms:
            return f"{length_ms / unit_ms:.3g} {unit}"
    return f"{length_ms:.3g} ms"
