"""What a user imports and writes: names of `tarry.client`, and settings as arguments."""

from __future__ import annotations

import ast
import subprocess
import sys
from datetime import datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, Unpack, get_args, get_type_hints

import pytest

import tarry.client
from tarry.base.errors import TarryError
from tarry.client import errors
from tarry.client.setting_arguments import ClientArguments, ConsumerArguments, ProducerArguments
from tarry.link import errors as link_errors


def test_every_public_name_is_there_and_says_where_it_comes_from() -> None:
    for name, module in tarry.client.MODULES.items():
        assert getattr(tarry.client, name) is getattr(import_module(module), name)
        assert name in dir(tarry.client)


def test_type_checkers_see_the_same_names_in_the_same_modules() -> None:
    tree = ast.parse(Path(tarry.client.__file__).read_text(encoding="utf-8"))
    (block,) = [one for one in tree.body if isinstance(one, ast.If)]

    seen = {
        alias.asname: statement.module
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }

    assert seen == tarry.client.MODULES


def test_every_error_is_a_public_name_and_stands_in_the_module_of_errors() -> None:
    there = {
        name: one
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, TarryError)
    }

    public = {name for name, module in tarry.client.MODULES.items() if module.endswith("errors")}
    links = {name for name, one in vars(link_errors).items() if isinstance(one, type)}
    assert public == set(there)
    assert links - {"TarryError"} <= set(there)


def classes_in(hint: Any) -> set[type]:
    """Classes of ours that a type hint names, at any depth."""
    if isinstance(hint, list):
        return {one for each in hint for one in classes_in(each)}
    found = {hint} if isinstance(hint, type) and hint.__module__.startswith("tarry.") else set()
    return found.union(*(classes_in(one) for one in get_args(hint)))


@pytest.mark.parametrize(
    "face", ["Producer", "Consumer", "Admin", "Listener", "Receipt", "ConsumerRecord"]
)
def test_every_class_that_a_public_method_takes_or_gives_is_a_public_name(face: str) -> None:
    made = getattr(tarry.client, face)
    names = {name: getattr(tarry.client, name) for name in tarry.client.MODULES}
    # A producer imports them when it is given one.
    names |= {"datetime": datetime, "timedelta": timedelta}
    public = [one for one in names.values() if isinstance(one, type)]

    used: set[type] = set()
    for name, one in vars(made).items():
        function = one.fget if isinstance(one, property) else one
        if callable(function) and not name.startswith("_"):
            for hint in get_type_hints(function, localns=names).values():
                used |= classes_in(hint)

    assert used - set(public) - {made} == set()


def test_who_imports_a_producer_loads_neither_consumer_nor_admin_nor_pyarrow() -> None:
    program = (
        "import sys; from tarry.client import Producer; print('asyncio' in sys.modules); "
        "from tarry.client.aio import Producer; "
        "print(*(one for one in sys.modules if 'consumer' in one or '.group' in one "
        "or '.admin' in one or one == 'pyarrow'))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize("face", ["aio", "arrow"])
def test_every_name_of_a_face_is_there_and_type_checkers_see_it(face: str) -> None:
    module = import_module(f"tarry.client.{face}")
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (block,) = [one for one in tree.body if isinstance(one, ast.If)]

    seen = [
        alias.asname
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
        if alias.asname is not None
    ]

    assert seen
    assert set(seen) <= set(dir(module))
    if face == "aio" or find_spec("pyarrow"):
        for name in seen:
            assert getattr(module, name).__name__ == name


@pytest.mark.parametrize(
    ("face", "arguments"),
    [
        ("Producer", ProducerArguments),
        ("Consumer", ConsumerArguments),
        ("Admin", ClientArguments),
    ],
)
def test_a_face_takes_the_settings_of_its_kind(face: str, arguments: Any) -> None:
    made = getattr(tarry.client, face)

    hint = get_type_hints(made.__init__)["arguments"]

    assert get_args(hint) == get_args(Unpack[arguments])
    assert signature(made).parameters["arguments"].kind.name == "VAR_KEYWORD"


def test_a_topic_partition_is_a_pair_also_where_it_is_made_as_other_clients_do() -> None:
    made: Any = tarry.client.TopicPartition

    assert made("orders", 0) == ("orders", 0)
    assert type(made("orders", 0)) is tuple


def test_a_star_brings_the_public_names() -> None:
    names: dict[str, object] = {}

    exec("from tarry.client import *", names)

    assert set(tarry.client.MODULES) <= set(names)
    assert names["Producer"] is tarry.client.Producer
