#!/usr/bin/env python3
"""Checks of the house's rules that neither ruff nor mypy can make.

Sizes of modules and functions, built-in functions that go behind a door or whose result differs
between two runs, state that hangs on a module, and what the simulation may import.  Prints one
line a finding, in ruff's form, and ends with 1 if there is any.

    check_source.py [FILE or DIRECTORY ...]     src/tarry if none is named
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

MODULE_LINES_MAX: Final = 500
FUNCTION_LINES_MAX: Final = 60

# Longer than the limit, each with its reason.
LONG_MODULES: Final = {
    "src/tarry/protocol/messages/": "generated: as long as Kafka's message has fields",
    "src/tarry/protocol/registry.py": "generated: as long as there are APIs",
}

# Where the world may be touched, and where text is read from files: the shells.
SHELLS: Final = (
    "src/tarry/_form.py",
    "src/tarry/runtime/",
    "src/tarry/client/aio/",
    "src/tarry/client/face/",
    "src/tarry/client/sync/",
    "src/tarry/cli/",
    "src/tarry/testing/",
    "src/tarry/spark/",
    "tools/",
    "bench/",
)

# Built-in functions that the core may not call.
FORBIDDEN_CALLS: Final = {
    "open": "files come through the Disk door",
    "input": "the core asks nobody",
    "hash": "differs between two processes",
    "id": "differs between two processes",
    "__import__": "imports stand at the top",
    "exec": "code is not made at run time",
    "eval": "code is not made at run time",
    "breakpoint": "the core never stops",
}

# ruff's banned imports are waived for the simulation as a whole because of `random`.
SIMULATION: Final = "src/tarry/simulation/"
SIMULATION_MAY_IMPORT: Final = ("random",)

MUTABLE_DISPLAYS: Final = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_CALLS: Final = ("list", "dict", "set", "defaultdict", "deque", "bytearray")


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and sentence of each violation in a module."""
    name = relative_name(path)
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, str(path))
    lines = text.count("\n")
    if lines > MODULE_LINES_MAX and not name.startswith(tuple(LONG_MODULES)):
        yield 1, f"a module of {lines} lines; {MODULE_LINES_MAX} is the limit, 250 reads well"
    is_shell = name.startswith(SHELLS)
    hashing = calls_that_hash(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not name.startswith(tuple(LONG_MODULES)):
                yield from long_function(node)
        elif isinstance(node, ast.Call) and not is_shell and node not in hashing:
            yield from forbidden_call(node)
        elif isinstance(node, ast.Import | ast.ImportFrom) and name.startswith(SIMULATION):
            yield from forbidden_import(node)
        elif isinstance(node, ast.Global):
            yield node.lineno, f"state on the module: {', '.join(node.names)}"
    for statement in tree.body:
        yield from module_state(statement)
    if ast.get_docstring(tree) is None:
        yield 1, "a module says at its top what its one idea is"


def long_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, str]]:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if lines > FUNCTION_LINES_MAX:
        yield node.lineno, f"{node.name}() has {lines} lines; {FUNCTION_LINES_MAX} is the limit"


def calls_that_hash(tree: ast.Module) -> list[ast.AST]:
    """Return the calls of `hash` in methods `__hash__`, whose result is seen by nobody."""
    methods = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__hash__"
    ]
    return [
        call
        for method in methods
        for call in ast.walk(method)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "hash"
    ]


def forbidden_call(node: ast.Call) -> Iterator[tuple[int, str]]:
    if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
        yield node.lineno, f"{node.func.id}(): {FORBIDDEN_CALLS[node.func.id]}"


def forbidden_import(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[int, str]]:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    banned = banned_imports()
    for name in names:
        top = name.split(".")[0]
        if top in banned and top not in SIMULATION_MAY_IMPORT:
            yield node.lineno, f"`{name}` in the simulation: its world is made from a seed"


@cache
def banned_imports() -> list[str]:
    """Return the modules that ruff bans, from pyproject.toml."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        lint = tomllib.load(file)["tool"]["ruff"]["lint"]
    return list(lint["flake8-tidy-imports"]["banned-api"])


def module_state(statement: ast.stmt) -> Iterator[tuple[int, str]]:
    """Yield a list, dict or set bound to a name of the module that is not Final: a table is."""
    if isinstance(statement, ast.Assign):
        names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        value: ast.expr | None = statement.value
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        names = [statement.target.id]
        value = None if "Final" in ast.unparse(statement.annotation) else statement.value
    else:
        return
    if names == ["__all__"] or value is None:
        return
    is_call = isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
    if isinstance(value, MUTABLE_DISPLAYS) or (is_call and value.func.id in MUTABLE_CALLS):  # type: ignore[attr-defined]
        yield statement.lineno, f"state on the module: {', '.join(names)} is not Final"


def relative_name(path: Path) -> str:
    """Return the path below the project; that of a planted offence counts from its `src`."""
    parts = path.resolve().parts
    if path.resolve().is_relative_to(ROOT):
        return path.resolve().relative_to(ROOT).as_posix()
    return "/".join(parts[parts.index("src") :]) if "src" in parts else path.name


def modules(arguments: list[str]) -> Iterator[Path]:
    for argument in arguments:
        path = Path(argument)
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main(arguments: list[str]) -> int:
    count = 0
    for path in modules(arguments or [str(ROOT / "src" / "tarry")]):
        for line, sentence in sorted(findings(path)):
            print(f"{relative_name(path)}:{line}: {sentence}")
            count += 1
    print(f"check_source: {count} findings" if count else "check_source: nothing found")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
