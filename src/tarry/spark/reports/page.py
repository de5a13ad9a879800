"""Page: a report as one HTML file, with its scripts, its plots and the numbers below them.

The file forbids itself the network.  Plots take their colours from the style sheet, so that light,
dark and paper are one drawing.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import Any, Final

from tarry.spark.reports.installed import load_scripts
from tarry.spark.reports.style import STYLE

# Rows of a table in the file; all of them are in the job's JSON.
ROWS_MAX: Final = 1_000

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "img-src data:"
)

# What draws the plots, and copies a table as CSV.  Texts of users reach neither as code.
DRAWING: Final = """
for (const [id, plot] of Object.entries(JSON.parse(document.getElementById("plots").textContent))) {
  vegaEmbed("#" + id, plot, {renderer: "svg", actions: false, tooltip: {theme: "tarry"}})
    .catch(error => { document.getElementById(id).textContent = "This plot failed: " + error; });
}
for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.csv).textContent;
    try {
      await navigator.clipboard.writeText(JSON.parse(text));
      button.textContent = "Copied";
    } catch {
      button.textContent = "The browser refused";
    }
  });
}
"""


@dataclass(frozen=True)
class Figure:
    """Number that a reader should see first, with what it counts."""

    text: str
    label: str
    is_bad: bool = False


@dataclass(frozen=True)
class Table:
    """Numbers: titles, and rows of texts and numbers."""

    titles: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = "The numbers"
    # Shown at once, without a click.
    is_open: bool = False


@dataclass(frozen=True)
class Key:
    """Key of a legend: a name, its colour as the style sheet writes it, its sign."""

    name: str
    colour: str
    sign: str = "\u25a0"


@dataclass(frozen=True)
class Plot:
    """Vega-Lite's description of a plot; above it stand title, sentence and legend."""

    spec: dict[str, Any]
    title: str
    text: str
    legend: Sequence[Key] = ()
    # As wide as the page, not one of two side by side.
    is_wide: bool = False


@dataclass(frozen=True)
class Section:
    """Part of a page: a heading, a few sentences, plots side by side, and their numbers."""

    title: str
    text: str
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Page:
    """Report before it is written."""

    title: str
    subtitle: str
    figures: Sequence[Figure] = ()
    remarks: Sequence[str] = ()
    sections: Sequence[Section] = field(default_factory=tuple)

    def html(self) -> str:
        """Write the page."""
        plots: dict[str, dict[str, Any]] = {}
        body = "".join(
            _section(place, section, plots) for place, section in enumerate(self.sections)
        )
        data = _data("plots", "application/json", plots)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
            f"<header><h1>{escape(self.title)}</h1><p>{escape(self.subtitle)}</p></header>\n"
            f"<main>\n{self._head()}{body}</main>\n{data}"
            f"<script>{_script_text(_scripts())}</script>\n<script>{DRAWING}</script>\n"
            "</body>\n</html>\n"
        )

    def _head(self) -> str:
        figures = "".join(
            f"<div{' class=bad' if figure.is_bad else ''}><dt>{escape(figure.label)}</dt>"
            f"<dd>{escape(figure.text)}</dd></div>"
            for figure in self.figures
        )
        remarks = "".join(f"<li>{escape(remark)}</li>" for remark in self.remarks)
        head = f'<dl class="figures">{figures}</dl>\n' if figures else ""
        return head + (f'<ul class="remarks">{remarks}</ul>\n' if remarks else "")


def _section(place: int, section: Section, plots: dict[str, dict[str, Any]]) -> str:
    drawn = []
    for plot in section.plots:
        name = f"plot-{len(plots)}"
        plots[name] = plot.spec
        size = ' class="whole"' if plot.is_wide else ""
        drawn.append(
            f"<figure{size}><figcaption><strong>{escape(plot.title)}</strong><br>"
            f"{escape(plot.text)}{_legend(plot.legend)}</figcaption>"
            f'<div id="{name}" class="plot" role="img" aria-label="{escape(plot.title)}"></div>'
            "</figure>"
        )
    several = " several" if len(drawn) > 1 else ""
    tables = "".join(
        _table(f"csv-{place}-{number}", table) for number, table in enumerate(section.tables)
    )
    return (
        f"<section>\n<h2>{escape(section.title)}</h2>\n<p>{escape(section.text)}</p>\n"
        + (f'<div class="plots{several}">{"".join(drawn)}</div>\n' if drawn else "")
        + f"{tables}</section>\n"
    )


def _legend(legend: Sequence[Key]) -> str:
    named = "".join(
        f'<li><b style="color:{escape(key.colour)}">{key.sign}</b> {escape(key.name)}</li>'
        for key in legend
    )
    return f'<ul class="legend">{named}</ul>' if named else ""


def _table(name: str, table: Table) -> str:
    shown = table.rows[:ROWS_MAX]
    head = "".join(f"<th>{escape(title)}</th>" for title in table.titles)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown)
    left = len(table.rows) - len(shown)
    more = f"<p>{left:,} more rows are in the job's JSON.</p>" if left else ""
    rows = f"{len(table.rows):,} row" + ("" if len(table.rows) == 1 else "s")
    return (
        f"<details{' open' if table.is_open else ''}><summary>{escape(table.caption)} ({rows})"
        f'</summary><button type="button" class="copy" data-csv="{name}">Copy as CSV</button>'
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        f"</table></div>"
        f"{more}{_data(name, 'application/json', csv_text(table))}</details>\n"
    )


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{escape(str(value))}</td>"


def csv_text(table: Table) -> str:
    """Write the rows that the page shows as CSV."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(table.titles)
    writer.writerows(table.rows[:ROWS_MAX])
    return written.getvalue()


def _data(name: str, kind: str, value: object) -> str:
    # No text inside ends the element: "<" has another form in JSON.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script id="{name}" type="{kind}">{text}</script>\n'


@cache
def _scripts() -> str:
    return load_scripts()


def _script_text(source: str) -> str:
    return source.replace("</script", "<\\/script")
