"""Every rule of the house that can be checked is: an offence planted is an offence caught."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

# Check of `make check`, planted module, its text, what the check must say.
OFFENCES = {
    "an import upwards": (
        "layers",
        "wire/planted_upwards.py",
        "from tarry.log import segment\n\n__all__ = ['segment']",
        "tarry.wire.planted_upwards -> tarry.log",
    ),
    "an import of a sibling": (
        "layers",
        "records/planted_sibling.py",
        "from tarry.protocol import api_keys\n\n__all__ = ['api_keys']",
        "tarry.records.planted_sibling -> tarry.protocol.api_keys",
    ),
    "a client that knows the broker": (
        "layers",
        "client/planted_insider.py",
        "from tarry.broker import broker\n\n__all__ = ['broker']",
        "tarry.client.planted_insider -> tarry.broker.broker",
    ),
    "a handler that knows the broker": (
        "layers",
        "broker/apis/planted_handler.py",
        "from typing import TYPE_CHECKING\n\n"
        "if TYPE_CHECKING:\n    from tarry.broker.broker import Broker\n\n"
        "def f(broker: Broker) -> None:\n    del broker",
        "tarry.broker.apis.planted_handler -> tarry.broker.broker",
    ),
    "a package that no layer names": (
        "layers",
        "helpers/__init__.py",
        "LIMIT = 3",
        "tarry.helpers",
    ),
    "a docstring that tells a riddle": (
        "words",
        "base/planted_riddle.py",
        'def left() -> int:\n    """What a step has left."""\n    return 0',
        "a first line without verb or noun: What a step has left.",
    ),
    "a function that begins with an article": (
        "words",
        "base/planted_article.py",
        'def budget() -> int:\n    """The budget of a step, in us."""\n    return 0',
        "a function's first word is a verb: The budget of a step, in us.",
    ),
    "a class with the name of another": (
        "words",
        "base/planted_name.py",
        'class TimingWheel:\n    """Wheel of a cart."""',
        "class TimingWheel has the name of one in",
    ),
    "a clock read in the core": (
        "lint",
        "broker/planted_clock.py",
        "import time\n\nstarted = time.monotonic()",
        "planted_clock.py",
    ),
    "a clock read by its function": (
        "lint",
        "timer/planted_clock_function.py",
        "from time import monotonic\n\nstarted = monotonic()",
        "planted_clock_function.py",
    ),
    "a calendar read in the core": (
        "lint",
        "log/planted_calendar.py",
        "from datetime import datetime\n\nstarted = datetime.now()",
        "planted_calendar.py",
    ),
    "chance in the core": (
        "lint",
        "cluster/planted_chance.py",
        "import uuid\n\ntopic_id = uuid.uuid4()",
        "planted_chance.py",
    ),
    "a socket in the core": (
        "lint",
        "broker/planted_socket.py",
        "import socket\n\nlistener = socket.socket()",
        "planted_socket.py",
    ),
    "a thread in the core": (
        "lint",
        "log/planted_thread.py",
        "import threading\n\nlock = threading.Lock()",
        "planted_thread.py",
    ),
    "a set iterated in the core": (
        "types",
        "partition/planted_set.py",
        "def f(names: set[str]) -> list[int]:\n    return [len(name) for name in names]",
        "planted_set.py",
    ),
    "a set iterated by a loop over an attribute": (
        "types",
        "broker/planted_set_attribute.py",
        "class A:\n"
        "    def __init__(self) -> None:\n"
        "        self.keys: set[int] = set()\n\n"
        "    def f(self) -> None:\n"
        "        for key in self.keys:\n"
        "            del key",
        "planted_set_attribute.py",
    ),
    "a set made a list": (
        "types",
        "log/planted_set_list.py",
        "def f(names: frozenset[str]) -> list[str]:\n    return list(names)",
        "planted_set_list.py",
    ),
    "a set taken apart": (
        "types",
        "cluster/planted_set_pop.py",
        "def f(names: set[str]) -> str:\n    return names.pop()",
        "planted_set_pop.py",
    ),
    "a write into a log": (
        "types",
        "partition/planted_write.py",
        "from tarry.log.log import Log\n\n\ndef f(log: Log) -> None:\n    log.log_start_offset = 7",
        "planted_write.py:9: error: tarry.log alone writes here",
    ),
    "a write into what an attribute of a log holds": (
        "types",
        "broker/planted_write_below.py",
        "from tarry.log.owner import LogOwner\n\n\n"
        "def f(owner: LogOwner) -> None:\n"
        "    owner.log.active.written_size += 1\n"
        "    owner.log.config.retention_ms = -1",
        "planted_write_below.py:9: error: tarry.log alone writes here",
    ),
    "a list of a log that is changed": (
        "types",
        "cluster/planted_append.py",
        "from tarry.log.log import Log\n\n\n"
        "def f(log: Log) -> None:\n    log.leader_epochs.epochs.append(7)",
        "planted_append.py:9: error: tarry.log alone writes here",
    ),
    "an entry of a log's list that is replaced": (
        "types",
        "simulation/planted_item.py",
        "from tarry.log.log import Log\n\n\n"
        "def f(log: Log) -> None:\n    log.leader_epochs.epochs[0] = 7",
        "planted_item.py:9: error: tarry.log alone writes here",
    ),
    "a private attribute of a log, read from within its package": (
        "types",
        "log/planted_private.py",
        "from tarry.log.log import Log\n\n\n"
        "def f(log: Log) -> int:\n    return len(log.tail._chunks)",
        "planted_private.py:9: error: private to its module",
    ),
    "a hash in a result": (
        "source",
        "log/planted_hash.py",
        "def f(name: str) -> int:\n    return hash(name) % 8",
        "planted_hash.py:6",
    ),
    "a file opened in the core": (
        "source",
        "log/planted_open.py",
        "def f() -> bytes:\n    with open('x', 'rb') as file:\n        return file.read()",
        "planted_open.py:6",
    ),
    "a simulation that reads the clock": (
        "source",
        "simulation/planted_clock.py",
        "import time\n\nstarted = time.time()",
        "planted_clock.py:5",
    ),
    "state on a module": (
        "source",
        "broker/planted_state.py",
        "seen: dict[str, int] = {}",
        "planted_state.py:5",
    ),
    "a module that is too long": (
        "source",
        "broker/planted_length.py",
        "x = 1\n" * 500,
        "planted_length.py:1",
    ),
    "a function that is too long": (
        "source",
        "broker/planted_function.py",
        "def f() -> None:\n" + "    x = 1\n" * 60 + "    del x",
        "planted_function.py:5",
    ),
    "a function of seven parameters": (
        "lint",
        "broker/planted_parameters.py",
        "def f(a: int, b: int, c: int, d: int, e: int, g: int, h: int) -> None:\n    del a",
        "planted_parameters.py",
    ),
    "an untyped function": (
        "types",
        "broker/planted_untyped.py",
        "def f(a):\n    return a",
        "planted_untyped.py",
    ),
}


# Planted module and its text, of which `types` must say nothing.
INNOCENT = {
    "sorted sets and dictionaries": (
        "log/planted_order.py",
        "def f(names: set[str], sizes: dict[str, int]) -> list[str]:\n"
        "    return [*sorted(names), *sizes, *sizes.keys()]",
    ),
    "an owner of a log that writes into itself": (
        "partition/planted_owner.py",
        "from tarry.log.owner import LogOwner\n\n\n"
        "class PlantedOwner(LogOwner):\n"
        "    def f(self, offset: int) -> None:\n"
        "        self.is_touched = True\n"
        "        self.log.advance_log_start_offset(offset)",
    ),
    "a log that writes into a segment": (
        "log/planted_writer.py",
        "from tarry.log.log import Log\n\n\n"
        "def f(log: Log) -> None:\n    log.active.written_size = 0",
    ),
}


@pytest.fixture(scope="module")
def planted(shared_project: Any) -> Any:
    for _, path, text, _ in OFFENCES.values():
        shared_project.plant(path, text)
    for path, text in INNOCENT.values():
        shared_project.plant(path, text)
    return shared_project


@pytest.mark.parametrize("offence", OFFENCES)
def test_a_planted_offence_is_caught_by_make_check(planted: Any, offence: str) -> None:
    check, _, _, sentence = OFFENCES[offence]

    output = planted.check(check)

    # Long reports break lines; the words count.
    assert sentence in " ".join(output.split())


@pytest.mark.parametrize("name", INNOCENT)
def test_what_is_allowed_is_no_offence(planted: Any, name: str) -> None:
    """A check that cried wolf would be switched off soon."""
    path, _ = INNOCENT[name]

    output = planted.check("types")

    assert Path(path).name not in output
