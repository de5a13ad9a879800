#!/usr/bin/env python3
"""Checks of words and names: first lines of docstrings, names of classes, sizes of packages.

Prints one line a finding and ends with 1 if there is any.

    check_words.py [FILE or DIRECTORY ...]     src/tarry if none is named
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "src" / "tarry"

GENERATED: Final = "src/tarry/protocol/messages/"

# A first line with such a word tells a riddle: it has neither a verb nor the thing itself.
RIDDLES: Final = frozenset(
    [
        "All",
        "Any",
        "Anybody",
        "Anything",
        "As",
        "At",
        "Be",
        "By",
        "Each",
        "Every",
        "Everybody",
        "Everything",
        "For",
        "From",
        "He",
        "How",
        "If",
        "In",
        "It",
        "No",
        "Nobody",
        "None",
        "Not",
        "Nothing",
        "Of",
        "On",
        "One",
        "Only",
        "She",
        "Some",
        "Somebody",
        "Something",
        "Somewhere",
        "So",
        "See",
        "That",
        "There",
        "These",
        "They",
        "This",
        "Those",
        "To",
        "Until",
        "Up",
        "What",
        "Whatever",
        "When",
        "Where",
        "Whether",
        "Which",
        "While",
        "Who",
        "Whoever",
        "Whose",
        "Why",
        "With",
        "Within",
        "Without",
    ]
)

# A function does something: its first word is a verb.
ARTICLES: Final = frozenset(("A", "An", "The"))

PACKAGE_MODULES_MIN: Final = 3
PACKAGE_MODULES_MAX: Final = 15

# Packages of another size, each with its reason.
PACKAGES: Final = {
    "src/tarry": "the distribution: its rooms are the packages below it",
    "src/tarry/base": "what all share; six of its modules are settings",
    "src/tarry/broker": "what a broker is made of; what it does lies in the packages below",
    "src/tarry/broker/apis": "one module for each API of the protocol",
    "src/tarry/cli": "one module for each command of `tarry`, and what commands share",
    "src/tarry/client/face": "what two faces share",
    "src/tarry/cluster": "one module for the decisions of each kind of change",
    "src/tarry/protocol/messages": "generated: one module for each API",
    "src/tarry/protocol/schema": "one text for each API, and the notation that reads them",
    "src/tarry/runtime": "one module for each thing of the operating system",
    "src/tarry/schedule": "one module for each word of scheduled records",
    "src/tarry/simulation": "a world and what happens in it; its workloads are packages",
    "src/tarry/simulation/cluster": "a cluster in a world",
    "src/tarry/spark/jobs": "one module for each job",
    "src/tarry/timer": "a library that is read by the names of its modules",
}


def first_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and sentence of each docstring whose first word is neither a verb nor a noun."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if not text:
            continue
        line = node.lineno if not isinstance(node, ast.Module) else 1
        first = text.splitlines()[0]
        words = re.findall(r"\w+", first)
        word = words[0] if words and first.startswith(words[0]) else ""
        if first.startswith("The same") or word in RIDDLES:
            yield line, f"a first line without verb or noun: {first}"
        elif word in ARTICLES and is_action(node):
            yield line, f"a function's first word is a verb: {first}"


def is_action(node: ast.AST) -> bool:
    """Return true for a function that is not read like an attribute."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    decorators = [ast.unparse(one) for one in node.decorator_list]
    return not any(one in ("property", "cached_property") for one in decorators)


# The asyncio face has the names of the synchronous one, so that a program changes an import.
TWINS: Final = ("src/tarry/client/aio/", "src/tarry/client/sync/")


def class_names(paths: list[Path]) -> Iterator[tuple[Path, int, str]]:
    """Yield place and sentence of each class whose name another module's class has as well."""
    seen: dict[str, Path] = {}
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
            if isinstance(node, ast.ClassDef):
                other = seen.setdefault(node.name, path)
                if other != path and not are_twins(path, other):
                    place = other.relative_to(ROOT)
                    yield path, node.lineno, f"class {node.name} has the name of one in {place}"


def are_twins(path: Path, other: Path) -> bool:
    """Return true for two modules of one name in the two faces."""
    folders = sorted(one.parent.relative_to(ROOT).as_posix() + "/" for one in (path, other))
    return path.name == other.name and tuple(folders) == TWINS


def package_sizes() -> Iterator[tuple[Path, int, str]]:
    """Yield place and sentence of each package with too few or too many modules."""
    for init in sorted(PACKAGE.rglob("__init__.py")):
        folder = init.parent
        name = folder.relative_to(ROOT).as_posix()
        count = len([one for one in folder.glob("*.py") if one.name != "__init__.py"])
        count += len(list(folder.glob("*/__init__.py"))) if count < PACKAGE_MODULES_MIN else 0
        if name not in PACKAGES and not PACKAGE_MODULES_MIN <= count <= PACKAGE_MODULES_MAX:
            yield init, 1, f"a package of {count} modules; 3 to 15 read well"


def main() -> int:
    given = [Path(word).resolve() for word in sys.argv[1:]] or [PACKAGE]
    paths = [
        path
        for place in given
        for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])
        if not path.relative_to(ROOT).as_posix().startswith(GENERATED)
    ]
    found = [(path, line, text) for path in paths for line, text in first_lines(path)]
    if PACKAGE in given:
        found += class_names(paths)
        found += package_sizes()
    for path, line, text in found:
        print(f"{path.relative_to(ROOT)}:{line}: {text}")
    print(f"check_words: {len(found)} found" if found else "check_words: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
