"""Write the man pages and the reference page of the command line from the commands themselves.

python tools/generate_commands.py            write man/*.1 and docs/reference/command-line.md
python tools/generate_commands.py --check    write nothing; exit 1 if something differs

What neither an option nor an example can say, such as shapes of JSON, stands in
docs/reference/json-shapes.md, which becomes part of the page.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

# Defaults are shown as they are without an environment or a configuration of the user.
for name in [name for name in os.environ if name.startswith("TARRY_")]:
    del os.environ[name]
os.environ.update({"TARRY_PURE": "1", "TARRY_PROFILES": os.devnull, "COLUMNS": "100"})

from command_tree import EXIT_CODES, VARIABLES, Entry, entries  # noqa: E402
from roff import Page  # noqa: E402

ROOT: Final = Path(__file__).resolve().parent.parent
MAN: Final = ROOT / "man"
REFERENCE: Final = ROOT / "docs" / "reference"
SHAPES: Final = REFERENCE / "json-shapes.md"

NOTICE: Final = (
    "<!-- Written by tools/generate_commands.py from the commands; change those, or\n"
    "     docs/reference/json-shapes.md. -->"
)


def pages(found: list[Entry]) -> dict[Path, str]:
    """Return each generated file with its text."""
    texts = {REFERENCE / "command-line.md": reference(found)}
    for entry in found:
        # One page for each command of the first level, with its own commands on it.
        if entry.path.count(" ") <= 1:
            texts[MAN / f"{entry.path.replace(' ', '-')}.1"] = man_page(entry, found)
    return texts


# --- The reference page


def reference(found: list[Entry]) -> str:
    """Write the text of docs/reference/command-line.md."""
    lines = [
        "# Command line",
        "",
        NOTICE,
        "",
        "Everything that `tarry COMMAND --help` says, on one page; `man tarry-COMMAND` says it",
        "too.  `-h` and `--help` are options of every command.",
        "",
    ]
    for entry in found[1:]:
        if entry.path.count(" ") == 1:
            lines.append(f"- [`{entry.path}`](#{anchor(entry.path)}): {entry.sentence}")
    lines += ["", "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES]
    lines += ["", "## Environment", "", "| variable | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in VARIABLES]
    lines.append("")
    for entry in found[1:]:
        lines += section(entry)
    return "\n".join(lines) + "\n" + SHAPES.read_text(encoding="utf-8")


def anchor(path: str) -> str:
    return path.replace(" ", "-")


def section(entry: Entry) -> list[str]:
    """Write the section about one command."""
    depth = "#" * (entry.path.count(" ") + 1)
    lines = [f"{depth} {entry.path}", "", "```text", entry.usage, "```", ""]
    for paragraph in entry.paragraphs:
        lines += [paragraph, ""]
    lines += ["| option | |", "|---|---|"]
    lines += [f"| `{cell(names)}` | {cell(meaning)} |" for names, meaning in entry.options]
    lines.append("")
    for block in entry.blocks:
        if block.title:
            lines += [f"{block.title}:", ""]
        lines += ["```text", *block.lines, "```", ""]
    return lines


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# --- Man pages


def man_page(entry: Entry, found: list[Entry]) -> str:
    """Write the page of a command and the commands below it."""
    page = Page(entry.path.replace(" ", "-"), "Tarry")
    page.section("NAME")
    page.line(f"{entry.path.replace(' ', '-')} \\- {page.escaped(entry.sentence.rstrip('.'))}")
    is_root = entry.path == "tarry"
    below = [one for one in found if one.path.startswith(f"{entry.path} ")]
    page.section("SYNOPSIS")
    page.literal([entry.usage, *([] if is_root else [one.usage for one in below])])
    page.section("DESCRIPTION")
    described(page, entry)
    if is_root:
        page.section("COMMANDS")
        for one in below:
            if one.path.count(" ") == 1:
                page.item(f"{one.path.replace(' ', '-')}(1)", one.sentence)
        page.section("ENVIRONMENT")
        for name, meaning in VARIABLES:
            page.item(name, meaning)
    else:
        for one in below:
            page.section(one.path.upper())
            described(page, one)
    page.section("EXIT STATUS")
    for code, meaning in EXIT_CODES:
        page.item(code, meaning)
    page.section("SEE ALSO")
    others = [one.path for one in found if one.path.count(" ") <= 1 and one.path != entry.path]
    page.text(", ".join(f"{path.replace(' ', '-')}(1)" for path in others))
    return page.done()


def described(page: Page, entry: Entry) -> None:
    """Write help, options and examples."""
    for paragraph in entry.paragraphs:
        page.text(paragraph)
    page.subsection("Options")
    for names, meaning in entry.options:
        page.item(names, meaning)
    for block in entry.blocks:
        page.subsection(block.title or "Notes")
        page.literal(block.lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare only")
    is_check = parser.parse_args().check
    texts = pages(list(entries()))
    stale = [path for path in sorted(MAN.glob("*.1")) if path not in texts]
    differing = [
        path
        for path, text in texts.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in [*differing, *stale]:
        if is_check:
            print(
                f"{path.relative_to(ROOT)} is not what the commands say: run "
                "python tools/generate_commands.py"
            )
        elif path in stale:
            path.unlink()
            print(f"removed {path.relative_to(ROOT)}")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if is_check and (differing or stale) else 0


if __name__ == "__main__":
    sys.exit(main())
