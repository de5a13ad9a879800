"""What the reference tells of: public definitions of a package, read from its source.

A package exports what its `__all__` names, or, where names are loaded with their first use, what it
imports for type checkers.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "src" / "tarry"

# A constant or a name for a type.
Assignment = ast.Assign | ast.AnnAssign
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | Assignment
Method = ast.FunctionDef | ast.AsyncFunctionDef


class Unwritable(Exception):
    """Refusal of a source that does not say what its page needs."""


@dataclass
class Library:
    """Definitions of all packages that have a page, by name, and where each stands."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    # Of an assignment: its text, and the comment above it.
    texts: dict[str, str] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)

    def read(self, package: str) -> str:
        """Read a package, or a module with names of others; its docstring."""
        folder = SOURCE / package
        path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        tree = parsed(path)
        lazy = imports_for_checkers(tree)
        self.exported.update(lazy or exports(tree))
        for name, module in lazy.items():
            self.load(name, module)
        if not lazy:
            for one in sorted(folder.glob("*.py")):
                self.read_module(one, f"{package}/{one.name}")
        return ast.get_docstring(tree) or ""

    def read_module(self, path: Path, module: str) -> None:
        """Read the public classes and functions of one module."""
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef | Method) and not node.name.startswith("_"):
                self.definitions[node.name] = node
                self.modules[node.name] = module

    def load(self, name: str, module: str) -> None:
        """Read one definition of a module, and the base classes of a class."""
        if name in self.definitions:
            return
        path = SOURCE.parent / (module.replace(".", "/") + ".py")
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, str(path))
        for node in tree.body:
            if isinstance(node, ast.ClassDef | Method) and node.name == name:
                self.definitions[name] = node
            elif isinstance(node, Assignment) and name_of(node) == name:
                self.definitions[name] = node
                self.texts[name] = ast.get_source_segment(text, node) or ""
                self.comments[name] = comment_above(text, node.lineno)
        imported = imports_of(tree)
        if name not in self.definitions and name in imported:
            # The module gives it again.
            self.load(name, imported[name])
            return
        if name not in self.definitions:
            raise Unwritable(f"{module} has no {name}, which a package exports")
        self.modules[name] = path.relative_to(SOURCE).as_posix()
        found = self.definitions[name]
        if isinstance(found, ast.ClassDef):
            own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
            for base in base_names(found):
                if base not in self.definitions and (base in own or base in imported):
                    self.load(base, module if base in own else imported[base])

    def ancestors(self, name: str) -> Iterator[ast.ClassDef]:
        """Yield the base classes of a class, as far as they are in the libraries."""
        node = self.definitions.get(name)
        if isinstance(node, ast.ClassDef):
            for base in base_names(node):
                found = self.definitions.get(base)
                if isinstance(found, ast.ClassDef):
                    yield found
                    yield from self.ancestors(found.name)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def exports(tree: ast.Module) -> list[str]:
    """Return the names in a module's `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    raise Unwritable("a package with a page needs an __all__")


def imports_for_checkers(tree: ast.Module) -> dict[str, str]:
    """Return the module of each name that is imported for type checkers, to be given again."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                if isinstance(statement, ast.ImportFrom) and statement.module:
                    for one in statement.names:
                        if one.asname == one.name:
                            found[one.name] = statement.module
    return found


def imports_of(tree: ast.Module) -> dict[str, str]:
    """Return the module of each name of Tarry's that a module imports."""
    return {
        one.asname or one.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tarry.")
        for one in node.names
        if node.module
    }


def base_names(node: ast.ClassDef) -> list[str]:
    """Return the base classes without what they are generic in."""
    return [
        ast.unparse(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases
    ]


def name_of(node: Assignment) -> str:
    """Return what an assignment names."""
    return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def comment_above(text: str, line: int) -> str:
    """Return the comment that ends right above a line."""
    above = reversed(text.splitlines()[: line - 1])
    comment = list(itertools.takewhile(lambda one: one.startswith("#"), above))
    return "\n".join(one.removeprefix("#").strip() for one in reversed(comment))
