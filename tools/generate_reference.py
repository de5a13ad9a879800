"""Write `docs/reference/*.md` from the docstrings and signatures of the libraries.

python tools/generate_reference.py            write what differs
python tools/generate_reference.py --check    write nothing; exit 1 if something differs

The source is read, not imported: what is compiled has no signatures.  What a package exports must
stand on its page and must have a docstring; either is an error with a sentence.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "src" / "tarry"
REFERENCE: Final = ROOT / "docs" / "reference"

NOTICE: Final = "<!-- Written by tools/generate_reference.py from the docstrings; change those. -->"

# A signature longer than this is written one parameter a line.
SIGNATURE_MAX: Final = 88


@dataclass(frozen=True)
class Page:
    """Page: title, the package it is of, and what stands under which heading."""

    file: str
    package: str
    see: str
    sections: dict[str, tuple[str, ...]]
    # Named without an underscore for the package's own modules, and not for users.
    hidden: tuple[str, ...] = ()
    # Classes that a user is given and never makes.
    given: tuple[str, ...] = ()


PAGES: Final = (
    Page(
        file="timer.md",
        package="timer",
        see="[How the wheel works](../explanation/timing-wheel.md), with pictures. How to: "
        "[time-outs in asyncio](../how-to/asyncio-timeouts.md), "
        "[a delay queue in threads](../how-to/delay-queue.md), "
        "[periodic work](../how-to/periodic-work.md).",
        sections={
            "Pure timers": ("TimingWheel", "HeapTimer", "RoundsTimer", "PureTimer"),
            "Entries": ("TimerEntry", "PeriodicEntry"),
            "Threads": ("SystemTimer", "CallEntry", "CallEveryEntry"),
            "asyncio": ("AsyncioTimer", "TimerHandle", "PeriodicHandle", "Timeout"),
            "Errors": ("TimerShutDown",),
            "Looking into a wheel": ("look_at", "WheelView", "LevelView", "BucketView"),
        },
        hidden=(
            "SystemTimer.seconds_until",
            "SystemTimer.depart",
            "SystemTimer.begin_beat",
            "SystemTimer.end_beat",
            "TimerHandle.drop",
            "TimerHandle.what",
            "Timeout.expire",
            "Timeout.drop",
            "Timeout.what",
        ),
        given=(
            "CallEntry",
            "CallEveryEntry",
            "TimerHandle",
            "PeriodicHandle",
            "Timeout",
            "WheelView",
            "LevelView",
            "BucketView",
        ),
    ),
    Page(
        file="purgatory.md",
        package="purgatory",
        see="How to: [operations keyed by a resource](../how-to/keyed-operations.md). "
        "[How it works](../explanation/timing-wheel.md#what-stands-on-it-operations-that-wait).",
        sections={
            "Operations": ("DelayedOperation", "PayloadOperation", "OperationListener"),
            "Purgatories": ("Purgatory", "ThreadedPurgatory"),
            "Errors": ("PurgatoryShutDown",),
        },
        hidden=("Purgatory.complete", "Purgatory.expire"),
    ),
    Page(
        file="testing.md",
        package="testing",
        see="How to: [test your Kafka code without Docker](../how-to/test-without-docker.md).",
        sections={
            "Brokers": ("Tarry", "TarrySession", "TarryProcess", "TarryWorld"),
            "What brokers have in common": ("BrokerAccess", "FaultControls"),
            "Their clocks and faults": ("BrokerClock", "ApiFault"),
            "Clients in simulated time": ("WorldProducer", "WorldConsumer", "WorldAdmin"),
            "Errors": ("ProcessEnded",),
        },
        hidden=(
            "ApiFault.fits",
            "ApiFault.handle",
            "FaultControls.on_faults",
            "TarryWorld.on_faults",
            "TarryWorld.on_life_begins",
            "TarryWorld.on_life_ends",
            "WorldAdmin.perform",
            "WorldAdmin.user",
            "WorldConsumer.perform",
            "WorldConsumer.user",
            "WorldProducer.perform",
            "WorldProducer.user",
        ),
        given=(
            "BrokerAccess",
            "FaultControls",
            "TarrySession",
            "BrokerClock",
            "ApiFault",
            "WorldProducer",
            "WorldConsumer",
            "WorldAdmin",
        ),
    ),
)

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Method = ast.FunctionDef | ast.AsyncFunctionDef


class Unwritable(Exception):
    """Refusal of a source that does not say what its page needs."""


@dataclass
class Library:
    """Definitions of all packages that have a page, by name, and where each stands."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)

    def read(self, package: str) -> str:
        """Read a package; its docstring."""
        introduction = ""
        for path in sorted((SOURCE / package).glob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
            if path.name == "__init__.py":
                introduction = ast.get_docstring(tree) or ""
                self.exported.update(exports(tree))
            for node in tree.body:
                if isinstance(node, Definition) and not node.name.startswith("_"):
                    self.definitions[node.name] = node
                    self.modules[node.name] = f"{package}/{path.name}"
        return introduction

    def ancestors(self, name: str) -> Iterator[ast.ClassDef]:
        """Yield the base classes of a class, as far as they are in the libraries."""
        node = self.definitions.get(name)
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                found = self.definitions.get(ast.unparse(base))
                if isinstance(found, ast.ClassDef):
                    yield found
                    yield from self.ancestors(found.name)


def exports(tree: ast.Module) -> list[str]:
    """Return the names in a module's `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    raise Unwritable("a package with a page needs an __all__")


# --- What stands on a page


def page_text(page: Page, library: Library, introduction: str, exported: list[str]) -> str:
    named = [name for names in page.sections.values() for name in names]
    missing = sorted(set(exported) - set(named))
    if missing:
        raise Unwritable(f"tarry.{page.package} exports {', '.join(missing)}: name it in PAGES")
    for name in named:
        if name not in library.definitions:
            raise Unwritable(f"tarry.{page.package} has no {name}, which PAGES names")
    for hidden in page.hidden:
        owner, _, method = hidden.partition(".")
        if method not in public_methods(owner, library):
            raise Unwritable(f"tarry.{page.package} has no {hidden}, which PAGES hides")
    lines = [f"# tarry.{page.package}", "", NOTICE, "", introduction, "", page.see, ""]
    lines += ["| name | what it is |", "|---|---|"]
    for name in named:
        sentence = first_sentence(documented(library.definitions[name], name))
        lines.append(f"| [{name}](#{name.lower()}) | {sentence} |")
    for title, names in page.sections.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += ["", *entry(name, page, library)]
    return "\n".join(lines) + "\n"


def first_sentence(text: str) -> str:
    """Return the text up to the first colon, semicolon or end of a sentence."""
    return re.split(r"[.;:]\s", text.replace("\n", " ") + " ", maxsplit=1)[0]


def entry(name: str, page: Page, library: Library) -> list[str]:
    """Write the entry of a class or a function."""
    node = library.definitions[name]
    module = library.modules[name]
    dotted = module.removesuffix(".py").replace("/", ".")
    where = f"tarry.{page.package}" if name in library.exported else f"tarry.{dotted}"
    made = [] if name in page.given and isinstance(node, ast.ClassDef) else headline(node)
    lines = [f"### {name}", "", *fenced(f"from {where} import {name}", *made)]
    lines += ["", documented(node, name)]
    facts = class_facts(node, library) if isinstance(node, ast.ClassDef) else []
    facts.append(f"Source: [`{module}`](../../src/tarry/{module}).")
    lines += ["", *(f"* {fact}" for fact in facts)]
    if isinstance(node, ast.ClassDef):
        for method in methods(node, page, library):
            lines += ["", *method_entry(method, name)]
    return lines


def class_facts(node: ast.ClassDef, library: Library) -> list[str]:
    """Write bases, attributes and what else the signature does not show."""
    facts = []
    bases = [base for base in map(ast.unparse, node.bases) if base in library.exported]
    if bases:
        linked = [f"[{base}]({page_of(base)}#{base.lower()})" for base in bases]
        facts.append(f"Subclass of {', '.join(linked)}.")
    attributes = [f"`{name}: {kind}`" for name, kind in all_attributes(node, library)]
    if attributes:
        facts.append(f"Attributes: {', '.join(attributes)}.")
    own = {method.name for method in node.body if isinstance(method, Method)}
    if "__enter__" in own:
        facts.append("Context manager.")
    if "__aenter__" in own:
        facts.append("Asynchronous context manager.")
    if any("__len__" in names for names in [own, *map(method_names, library.ancestors(node.name))]):
        facts.append("`len()` of it: how many entries are pending.")
    return facts


def page_of(name: str) -> str:
    """Return the page on which a name stands."""
    for page in PAGES:
        if any(name in names for names in page.sections.values()):
            return page.file
    raise Unwritable(f"no page has {name}")


def all_attributes(node: ast.ClassDef, library: Library) -> list[tuple[str, str]]:
    """Return public attributes, first those from bases that are not exported."""
    found: dict[str, str] = {}
    for base in map(ast.unparse, node.bases):
        definition = library.definitions.get(base)
        if base not in library.exported and isinstance(definition, ast.ClassDef):
            found.update(all_attributes(definition, library))
    found.update(attributes_of(node))
    return list(found.items())


def attributes_of(node: ast.ClassDef) -> list[tuple[str, str]]:
    """Return public attributes that the class gives itself, with their types."""
    if any(ast.unparse(one).startswith("dataclass") for one in node.decorator_list):
        return [
            (ast.unparse(one.target), ast.unparse(one.annotation))
            for one in node.body
            if isinstance(one, ast.AnnAssign)
        ]
    found: dict[str, str] = {}
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            arguments = method.args
            types = {
                one.arg: ast.unparse(one.annotation)
                for one in [*arguments.args, *arguments.kwonlyargs]
                if one.annotation is not None
            }
            for statement in ast.walk(method):
                found.update(assigned(statement, types))
    return [(name, kind) for name, kind in found.items() if not name.startswith("_")]


def assigned(statement: ast.AST, types: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the attribute that a statement of `__init__` sets, if its type can be told."""
    target: ast.expr
    if isinstance(statement, ast.AnnAssign):
        target, kind = statement.target, ast.unparse(statement.annotation)
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(value, ast.Name):
            kind = types.get(value.id, "")
        else:
            kind = type(value.value).__name__ if isinstance(value, ast.Constant) else ""
    else:
        return
    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" and kind:
        yield target.attr, kind


def method_names(node: ast.ClassDef) -> set[str]:
    return {method.name for method in node.body if isinstance(method, Method)}


def public_methods(name: str, library: Library) -> dict[str, Method]:
    """Return the public methods of a class, its own and those of bases that are not exported.

    An exported base tells of what it has, and of what it inherits.
    """
    node = library.definitions.get(name)
    found: dict[str, Method] = {}
    if isinstance(node, ast.ClassDef):
        for method in node.body:
            if isinstance(method, Method) and not method.name.startswith("_"):
                found[method.name] = method
        for base in map(ast.unparse, node.bases):
            if base not in library.exported:
                found = public_methods(base, library) | found
    return found


def methods(node: ast.ClassDef, page: Page, library: Library) -> Iterator[Method]:
    """Yield the methods that are for users, in the order of the source, inherited ones first."""
    told: set[str] = set()
    for base in library.ancestors(node.name):
        if base.name in library.exported:
            told |= public_methods(base.name, library).keys()
    for name, method in public_methods(node.name, library).items():
        # An exported base has told it already, unless there is more to say here.
        if name in told and ast.get_docstring(method) is None:
            continue
        if f"{node.name}.{name}" not in page.hidden:
            yield method


def method_entry(method: Method, owner: str) -> list[str]:
    name = f"{owner}.{method.name}"
    return [f"#### {name}", "", *fenced(*headline(method)), "", documented(method, name)]


def documented(node: Definition, name: str) -> str:
    text = ast.get_docstring(node)
    if text is None:
        raise Unwritable(f"{name} is public and has no docstring")
    return inspect.cleandoc(text)


def fenced(*lines: str) -> list[str]:
    """Fence lines as `py` and not `python`: an example runs, a signature does not."""
    return ["```py", *lines, "```"]


# --- Signatures


def headline(node: Definition) -> list[str]:
    """Return the signature; for a class that of its construction."""
    if isinstance(node, ast.ClassDef):
        return class_headline(node)
    decorators = [ast.unparse(one) for one in node.decorator_list]
    returned = written(node.returns) if node.returns is not None else ""
    if "property" in decorators:
        return [f"{node.name}: {returned}  # read only"]
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    is_method = bool(node.args.args) and node.args.args[0].arg == "self"
    arrow = f" -> {returned}" if returned and returned != "None" else ""
    return call(prefix + node.name, parameters(node.args, skip=1 if is_method else 0), arrow)


def class_headline(node: ast.ClassDef) -> list[str]:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return call(node.name, parameters(method.args, skip=1), "")
    return []


def call(name: str, parts: list[str], arrow: str) -> list[str]:
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= SIGNATURE_MAX:
        return [line]
    return [f"{name}(", *(f"    {part}," for part in parts), f"){arrow}"]


def parameters(arguments: ast.arguments, skip: int) -> list[str]:
    """Return each parameter as it stands in the source."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    parts = [parameter(one, default) for one, default in zip(positional, defaults, strict=True)]
    parts = parts[skip:]
    if arguments.vararg is not None:
        parts.append("*" + parameter(arguments.vararg, None))
    elif arguments.kwonlyargs:
        parts.append("*")
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parts.append(parameter(one, default))
    if arguments.kwarg is not None:
        parts.append("**" + parameter(arguments.kwarg, None))
    return parts


def parameter(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {written(one.annotation)}" if one.annotation is not None else ""
    if default is None:
        return one.arg + kind
    return f"{one.arg}{kind}{' = ' if kind else '='}{written(default)}"


def written(node: ast.expr) -> str:
    """Return an expression as people write it: classes without their module, double quotes."""
    return re.sub(r"\b[a-z_]+\.(?=[A-Z])", "", ast.unparse(node)).replace("'", '"')


# --- The command


def pages() -> dict[Path, str]:
    library = Library()
    read = {}
    for page in PAGES:
        before = set(library.exported)
        introduction = library.read(page.package)
        read[page.file] = (introduction, sorted(library.exported - before))
    return {REFERENCE / page.file: page_text(page, library, *read[page.file]) for page in PAGES}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare only")
    is_check = parser.parse_args().check
    try:
        texts = pages()
    except Unwritable as error:
        print(f"generate_reference: {error}", file=sys.stderr)
        return 1
    differing = [
        path
        for path, text in texts.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in differing:
        if is_check:
            print(f"{path.relative_to(ROOT)} is not what tools/generate_reference.py writes")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if is_check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
