"""Refuse assignments to attributes of other packages' objects in `broker/` and `cluster/`.

What a part needs of its neighbours it takes when it is made.  An attribute that another package
sets later is a wire that no constructor shows, so its class has to declare it: with the words
`# open: ` and the reason behind the line in which the class makes it.  Messages of the protocol
and records are data, and open.

    check_neighbours.py [DIRECTORY]     src if none is named; it holds the package

The check goes by names: an assignment is refused if no class of the same package, and no open one,
has an attribute of that name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKED = ("broker", "cluster")
# Packages whose objects are data.
DATA = ("protocol",)
MARK = "# open: "


def assigned(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the attributes that are assigned to on anything but `self`."""
    for node in ast.walk(tree):
        for target in _targets(node):
            if isinstance(target, ast.Attribute) and not _is_self(target.value):
                yield target


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def made(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the attributes that classes make, with their lines."""
    for cls in ast.walk(tree):
        if not isinstance(cls, ast.ClassDef):
            continue
        for node in ast.walk(cls):
            for target in _targets(node):
                if isinstance(target, ast.Attribute) and _is_self(target.value):
                    yield target.attr, target.lineno
                elif isinstance(target, ast.Name) and node in cls.body:
                    yield target.id, target.lineno


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a statement assigns to."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        yield from target.elts if isinstance(target, ast.Tuple) else [target]


def main(words: list[str]) -> int:
    """Print each assignment that is refused; 1 if there is one."""
    source = Path(words[0] if words else ROOT / "src") / "tarry"
    trees = {
        path.relative_to(source): (ast.parse(text := path.read_text()), text.splitlines())
        for path in sorted(source.rglob("*.py"))
    }
    own: dict[Path, set[str]] = {}
    opened: set[str] = set()
    for path, (tree, lines) in trees.items():
        is_data = path.parts[0] in DATA
        for name, line in made(tree):
            own.setdefault(path.parent, set()).add(name)
            if is_data or MARK in lines[line - 1] or MARK in lines[line - 2]:
                opened.add(name)
    found = 0
    for path, (tree, _) in trees.items():
        if path.parts[0] not in CHECKED:
            continue
        for each in assigned(tree):
            if each.attr not in own.get(path.parent, set()) and each.attr not in opened:
                found += 1
                print(
                    f"src/tarry/{path}:{each.lineno}: {ast.unparse(each)} is set from outside; "
                    f"pass it to the constructor, or declare it with '{MARK}...' in its class"
                )
    print(f"check_neighbours: {found or 'nothing'} found")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
