"""Methods that one module alone calls, since a second caller would do its work beside it."""

from __future__ import annotations

import ast
from pathlib import Path

import tarry


def callers_of(method: str, *folders: str) -> list[str]:
    """Modules in these folders that call a method of this name, once for each call; calls of
    `super()` do not count."""
    source = Path(tarry.__file__).parent
    return [
        str(path.relative_to(source))
        for folder in folders
        for path in sorted((source / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == method
        and not _is_of_super(node.func)
    ]


def _is_of_super(called: ast.Attribute) -> bool:
    owner = called.value
    return (
        isinstance(owner, ast.Call)
        and isinstance(owner.func, ast.Name)
        and owner.func.id == "super"
    )


def test_the_leader_epoch_of_a_reader_is_checked_in_one_place() -> None:
    assert callers_of("epoch_error", "") == ["broker/reads.py"]


def test_a_change_of_many_rows_is_continued_in_one_place() -> None:
    """A change that does not fit into one transaction is a `Series`; `rest` elsewhere in the broker
    is about records and followers."""
    assert callers_of("rest", "broker/membership", "broker/metadata", "cluster") == [
        "broker/membership/series.py"
    ]
