#!/usr/bin/env python3
"""Checks the circles of imports below src/tarry, those under TYPE_CHECKING included.

A circle is a set of modules each of which imports every other, directly or through others of the
set.  Three modules that know each other are one idea in three files; more have no order in which
they can be read.  The broker has no circle at all.

    check_circles.py [DIRECTORY]     src if none is named; it holds the package
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

CIRCLE_MODULES_MAX: Final = 3
WITHOUT_CIRCLES: Final = "tarry.broker"

Graph = dict[str, list[str]]


def import_graph(source: Path) -> Graph:
    """Return the modules below `source` and, for each, the modules that it names in imports."""
    paths: dict[str, Path] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph: Graph = {}
    for name, path in paths.items():
        imported = dict.fromkeys(each for each in _imported(path) if each in paths)
        imported.pop(name, None)
        graph[name] = list(imported)
    return graph


def _imported(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # Of a package: its modules, or what the package itself holds.
            names += [f"{node.module}.{alias.name}" for alias in node.names]
            names.append(node.module)
    return names


def circles(graph: Graph) -> list[list[str]]:
    """Return the sets of modules that reach each other, the largest first."""
    backward: Graph = {name: [] for name in graph}
    for name, imported in graph.items():
        for each in imported:
            backward[each].append(name)
    found: list[list[str]] = []
    done: dict[str, None] = {}
    # Kosaraju: in the reverse order of their ends, what reaches a module backward is its circle.
    for name in reversed(_in_order_of_ends(graph)):
        members = _reached(name, backward, done)
        if len(members) > 1:
            found.append(sorted(members))
    return sorted(found, key=lambda members: (-len(members), members))


def _in_order_of_ends(graph: Graph) -> list[str]:
    seen: dict[str, None] = {}
    order: list[str] = []
    for start in graph:
        waiting = [(start, False)]
        while waiting:
            name, is_over = waiting.pop()
            if is_over:
                order.append(name)
            elif name not in seen:
                seen[name] = None
                waiting.append((name, True))
                waiting += [(each, False) for each in graph[name]]
    return order


def _reached(start: str, graph: Graph, done: dict[str, None]) -> list[str]:
    reached: list[str] = []
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in done:
            done[name] = None
            reached.append(name)
            waiting += graph[name]
    return reached


def findings(source: Path) -> list[str]:
    """Return a sentence for every circle that may not be."""
    sentences: list[str] = []
    for members in circles(import_graph(source)):
        named = ", ".join(members)
        if len(members) > CIRCLE_MODULES_MAX:
            sentences.append(
                f"a circle of {len(members)} modules; {CIRCLE_MODULES_MAX} is the limit: {named}"
            )
        elif any(f"{each}.".startswith(f"{WITHOUT_CIRCLES}.") for each in members):
            sentences.append(f"a circle in {WITHOUT_CIRCLES}, which has none: {named}")
    return sentences


def main(arguments: list[str]) -> int:
    sentences = findings(Path(arguments[0]) if arguments else ROOT / "src")
    for sentence in sentences:
        print(f"check_circles: {sentence}")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
