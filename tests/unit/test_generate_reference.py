"""The generator of the reference: what it writes of a signature, and what it refuses."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "generate_reference.py"

SOURCE = '''
class TimerEntry:
    """A base that has a page."""

    def kept(self) -> None:
        """Told here."""

class Inner:
    def __init__(self) -> None:
        self.colour: str = "red"

    def plumbing(self) -> None:
        """For the package's own modules."""

    def inherited(self) -> int:
        """Nobody else tells of it."""

    def overridden(self) -> None:
        """Not told, for Shown says more."""

class Shown(TimerEntry, Inner):
    """A class.  With more to say.

    `size`: how large.
    """

    def __init__(self, size: int, *, name: str = 'x', _secret: int = 0) -> None:
        self.size = size
        self.is_open = True
        self._hidden = 0

    def kept(self) -> None: ...
    def plumbing(self) -> None: ...

    def __iter__(self) -> Iterator[int]:
        """Yield numbers
        without an end."""

    def overridden(self) -> None:
        """Said by the class itself."""

    def run(self, first: module.Thing, *rest: object, limit: int | None = None) -> list[int]:
        """Run it."""

    @property
    def count(self) -> int:
        """How many."""

    def __len__(self) -> int: ...
'''


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_reference", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate_reference"] = module
    spec.loader.exec_module(module)
    return module


def library_of(tool: ModuleType, source: str, exported: set[str]) -> object:
    tree = ast.parse(source)
    definitions = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    modules = dict.fromkeys(definitions, "timer/shown.py")
    return tool.Library(definitions, modules, exported)


def page_of(
    tool: ModuleType, source: str, exported: set[str], hidden: str = "Shown.plumbing"
) -> str:
    page = tool.Page("timer.md", "timer", "See also.", {"Things": ("Shown",)}, (hidden,))
    library = library_of(tool, source, exported)
    return str(tool.page_text(page, library, "Introduction.", sorted(exported & {"Shown", "More"})))


def test_a_class_is_shown_with_what_its_users_need(tool: ModuleType) -> None:
    text = page_of(tool, SOURCE, {"Shown", "TimerEntry"})

    assert "| [Shown](#shown) | A class |" in text
    assert 'from tarry.timer import Shown\nShown(size: int, *, name: str = "x"' in text
    assert "* Attributes: `colour: str`, `size: int`, `is_open: bool`." in text
    assert "run(first: Thing, *rest: object, limit: int | None = None) -> list[int]" in text
    assert "count: int  # read only" in text
    assert "`len()` of it" in text
    assert "* Iterable: yield numbers without an end." in text


def test_what_only_the_modules_of_the_package_call_is_left_out(tool: ModuleType) -> None:
    text = page_of(tool, SOURCE, {"Shown", "TimerEntry"})

    assert "plumbing" not in text
    assert "_hidden" not in text


def test_a_method_is_hidden_only_by_name(tool: ModuleType) -> None:
    with pytest.raises(tool.Unwritable, match=r"Shown\.plumbing is public and has no docstring"):
        page_of(tool, SOURCE, {"Shown", "TimerEntry"}, hidden="Shown.inherited")

    with pytest.raises(tool.Unwritable, match=r"has no Shown\.gone, which PAGES hides"):
        page_of(tool, SOURCE, {"Shown", "TimerEntry"}, hidden="Shown.gone")


def test_what_a_class_inherits_from_one_without_a_page_is_told_with_it(tool: ModuleType) -> None:
    text = page_of(tool, SOURCE, {"Shown", "TimerEntry"})

    assert "#### Shown.inherited\n\n```py\ninherited() -> int\n```\n\nNobody else" in text
    assert "Said by the class itself." in text
    assert "Not told" not in text


def test_what_an_exported_base_tells_is_not_told_again(tool: ModuleType) -> None:
    text = page_of(tool, SOURCE, {"Shown", "TimerEntry"})

    assert "* Subclass of [TimerEntry](timer.md#timerentry)." in text
    assert "kept" not in text


def test_a_public_method_without_a_docstring_is_refused_by_name(tool: ModuleType) -> None:
    source = SOURCE.replace('"""Run it."""', "...")

    with pytest.raises(tool.Unwritable, match=r"Shown\.run is public and has no docstring"):
        page_of(tool, source, {"Shown", "TimerEntry"})


def test_what_is_exported_and_on_no_page_is_refused_by_name(tool: ModuleType) -> None:
    with pytest.raises(tool.Unwritable, match="exports More: name it in PAGES"):
        page_of(tool, SOURCE + "\nclass More: ...\n", {"Shown", "More", "TimerEntry"})


def test_a_long_signature_has_a_line_for_each_parameter(tool: ModuleType) -> None:
    node = ast.parse(
        "def reschedule_everything(first_entry: TimerEntry, second_entry: TimerEntry,"
        " deadline_ms: int) -> bool: ..."
    ).body[0]

    lines = tool.headline(node)

    assert lines[0] == "reschedule_everything("
    assert lines[1:] == [
        "    first_entry: TimerEntry,",
        "    second_entry: TimerEntry,",
        "    deadline_ms: int,",
        ") -> bool",
    ]


def test_a_named_tuple_is_made_with_its_fields(tool: ModuleType) -> None:
    node = ast.parse("class Change(NamedTuple):\n    name: str\n    value: str | None = None").body[
        0
    ]

    assert tool.headline(node) == ["Change(name: str, value: str | None = None)"]


def test_names_that_are_loaded_late_are_read_where_they_are(tool: ModuleType) -> None:
    library = tool.Library()

    introduction = library.read("client/aio")

    assert introduction.startswith("The client for asyncio")
    assert {"Admin", "Consumer", "Producer"} <= library.exported
    assert library.modules["Consumer"] == "client/aio/consumer.py"
    # A base that no package exports, whose methods are told with the class.
    assert "seek" in tool.public_methods("Consumer", library)


def test_a_constant_is_told_by_the_comment_above_it(tool: ModuleType) -> None:
    library = tool.Library()

    library.load("LATEST", "tarry.client.core.consumer.lookup")

    assert library.texts["LATEST"] == "LATEST: Final = -1"
    assert tool.told_of("LATEST", library) == "Time for `Admin.offsets`: the end of the partition."
    library.comments.clear()
    with pytest.raises(tool.Unwritable, match="LATEST is public and has no comment above it"):
        tool.told_of("LATEST", library)


def test_an_error_says_whether_the_same_may_succeed_later(tool: ModuleType) -> None:
    library = tool.Library()

    library.load("BufferFull", "tarry.client.errors")

    assert tool.is_retriable(library.definitions["BufferFull"], library)
    assert not tool.is_retriable(library.definitions["ClientError"], library)
