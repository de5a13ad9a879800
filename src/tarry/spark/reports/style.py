"""Style sheet of reports.

Colours are told apart by people with any of the common kinds of colour-blindness (the palette of
Okabe and Ito, lighter in the dark); where they matter, shape or place says the same.
"""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root {
  --page: #ffffff; --card: #f6f7f9; --ink: #1b1f24; --soft: #57606a; --line: #d5d9df;
  --grid: #e6e8ec; --c1: #0072b2; --c2: #d55e00; --c3: #009e73; --c4: #b8578f; --c5: #c98a00;
  --c6: #3b9bd6; --c7: #6b6f76; --c8: #7a4fa3; --pale: #8fc1e3; --faint: #cfe3f2; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1d2127; --ink: #e8eaed; --soft: #a4acb6; --line: #3a414a;
    --grid: #2a2f37; --c1: #4fa8e0; --c2: #ff8a4a; --c3: #2fc497; --c4: #e598c6; --c5: #f0bd3f;
    --c6: #93d3f8; --c7: #9aa1aa; --c8: #b995e0; --pale: #3579ab; --faint: #2b4b63; --bad: #ff8a80;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; -webkit-print-color-adjust: exact;
  print-color-adjust: exact; overflow-wrap: anywhere; }
header, main { max-width: 1500px; margin: 0 auto; padding: 0 clamp(12px, 3vw, 40px); }
header { padding-top: 24px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0; }
header p { color: var(--soft); margin: 6px 0 18px; }
h2 { font-size: 20px; line-height: 1.3; margin: 36px 0 4px; }
section > p { max-width: 75ch; margin: 0 0 12px; color: var(--soft); }
.figures { display: grid; gap: 10px; margin: 0;
  grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); }
.figures div { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 10px 14px; }
.figures dt { color: var(--soft); font-size: 13px; line-height: 1.3; }
.figures dd { margin: 2px 0 0; font-size: 24px; font-weight: 600; line-height: 1.25;
  font-variant-numeric: tabular-nums; }
.figures .bad dd { color: var(--bad); }
.remarks { margin: 16px 0 0; padding: 10px 14px 10px 32px; border: 1px solid var(--line);
  border-left: 4px solid var(--c5); border-radius: 8px; }
.plots { display: grid; gap: 16px; grid-template-columns: minmax(0, 1fr); }
@media screen and (min-width: 900px) {
  .plots.several { grid-template-columns: repeat(2, minmax(0, 1fr)); }
}
figure.whole { grid-column: 1 / -1; }
figure { margin: 0; min-width: 0; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: 12px 12px 8px; }
figcaption { font-size: 13px; line-height: 1.4; color: var(--soft); margin-bottom: 6px; }
figcaption strong { font-size: 15px; color: var(--ink); }
.legend { list-style: none; margin: 4px 0 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: 2px 14px; color: var(--ink); }
.legend b { font-size: 14px; line-height: 1; }
.plot { width: 100%; }
.plot svg { display: block; max-width: 100%; height: auto; }
details { margin: 10px 0 0; }
summary { cursor: pointer; color: var(--c1); width: fit-content; }
button.copy { margin: 8px 0; font: inherit; font-size: 13px; color: var(--ink);
  background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 3px 10px;
  cursor: pointer; }
.wide { overflow-x: auto; overflow-wrap: normal; }
table { border-collapse: collapse; font-size: 13px; line-height: 1.35; }
th, td { text-align: left; padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td { font-variant-numeric: tabular-nums; }
td.number { text-align: right; }
main { padding-bottom: 48px; }
#vg-tooltip-element.vg-tooltip.tarry-theme { background: var(--page); color: var(--ink);
  border: 1px solid var(--line); border-radius: 6px; padding: 8px 10px; font: 13px/1.4 system-ui,
  sans-serif; box-shadow: 0 2px 8px rgb(0 0 0 / 25%); position: fixed; z-index: 1000;
  pointer-events: none; visibility: hidden; max-width: min(90vw, 460px); }
#vg-tooltip-element.vg-tooltip.tarry-theme.visible { visibility: visible; }
#vg-tooltip-element td { border: 0; padding: 1px 8px 1px 0; overflow-wrap: anywhere; }
#vg-tooltip-element td.key { color: var(--soft); white-space: nowrap; }
@media print {
  :root {
    --page: #ffffff; --card: #f6f7f9; --ink: #1b1f24; --soft: #57606a; --line: #d5d9df;
    --grid: #e6e8ec; --c1: #0072b2; --c2: #d55e00; --c3: #009e73; --c4: #b8578f; --c5: #c98a00;
    --c6: #3b9bd6; --c7: #6b6f76; --c8: #7a4fa3; --pale: #8fc1e3; --faint: #cfe3f2; --bad: #b3261e;
  }
  button.copy { display: none; }
  .wide { overflow-x: visible; overflow-wrap: anywhere; }
  figure, .figures, tr { break-inside: avoid; }
  h2, h2 + p { break-after: avoid; }
}
"""
