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
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
if str(ROOT / "tools") not in sys.path:
    # Where a test loads this file, the folder of the tools is not searched.
    sys.path.insert(0, str(ROOT / "tools"))

from reference_library import (  # noqa: E402
    Assignment,
    Library,
    Method,
    Unwritable,
    base_names,
)
from reference_pages import PAGES, Page  # noqa: E402

REFERENCE: Final = ROOT / "docs" / "reference"

NOTICE: Final = "<!-- Written by tools/generate_reference.py from the docstrings; change those. -->"

# A signature longer than this is written one parameter a line.
SIGNATURE_MAX: Final = 88


# --- What stands on a page


def page_text(page: Page, library: Library, introduction: str, exported: list[str]) -> str:
    named = [name for names in page.sections.values() for name in names]
    package = page.package.replace("/", ".")
    missing = sorted(set(exported) - set(named))
    if missing:
        raise Unwritable(f"tarry.{package} exports {', '.join(missing)}: name it in PAGES")
    for name in named:
        if name not in library.definitions:
            raise Unwritable(f"tarry.{package} has no {name}, which PAGES names")
    for hidden in page.hidden:
        owner, _, method = hidden.partition(".")
        if method not in public_methods(owner, library):
            raise Unwritable(f"tarry.{package} has no {hidden}, which PAGES hides")
    title = f"tarry.{package}"
    if page.about:
        about, _, introduction = page.about.partition("\n")
        title = f"{title}: {about}"
    lines = [f"# {title}", "", NOTICE, "", introduction.strip(), "", page.see, ""]
    lines += ["| name | what it is |", "|---|---|"]
    for name in named:
        sentence = first_sentence(told_of(name, library))
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
    package = page.package.replace("/", ".")
    where = f"tarry.{package}" if name in library.exported else f"tarry.{dotted}"
    if isinstance(node, Assignment):
        # As it stands there: the formatter, which looks into pages too, has seen it already.
        made = ["", library.texts[name]]
    else:
        made = [] if name in page.given else headline(node)
    lines = [f"### {name}", "", *fenced(f"from {where} import {name}", *made)]
    lines += ["", told_of(name, library)]
    facts: list[str] = []
    if isinstance(node, ast.ClassDef):
        making = init_of(node)
        if made and making is not None and (text := ast.get_docstring(making)):
            lines += ["", text]
        facts = class_facts(node, library, page)
    facts.append(f"Source: [`{module}`](../../src/tarry/{module}).")
    lines += ["", *(f"* {fact}" for fact in facts)]
    if isinstance(node, ast.ClassDef):
        for method in methods(node, page, library):
            lines += ["", *method_entry(method, name)]
    return lines


def told_of(name: str, library: Library) -> str:
    """Return the docstring of a class or function, or the comment above an assignment."""
    node = library.definitions[name]
    if not isinstance(node, Assignment):
        return documented(node, name)
    if not library.comments.get(name):
        raise Unwritable(f"{name} is public and has no comment above it")
    return library.comments[name]


def class_facts(node: ast.ClassDef, library: Library, page: Page) -> list[str]:
    """Write bases, attributes and what else the signature does not show."""
    facts = []
    bases = [base for base in base_names(node) if base in library.exported]
    if bases:
        linked = [f"[{base}]({page_of(base, page)}#{base.lower()})" for base in bases]
        facts.append(f"Subclass of {', '.join(linked)}.")
    shown = page.attributes.get(node.name)
    kinds = dict(all_attributes(node, library))
    if shown is not None and not set(shown) <= kinds.keys():
        raise Unwritable(f"{node.name} lacks attributes that PAGES names, or their types: {shown}")
    attributes = [
        f"`{name}: {kind}`" for name, kind in kinds.items() if shown is None or name in shown
    ]
    if attributes and (node.name in page.given or not has_fields(node)):
        facts.append(f"Attributes: {', '.join(attributes)}.")
    if is_retriable(node, library):
        facts.append("`is_retriable` is true: the same may succeed later.")
    for method in node.body:
        if isinstance(method, Method) and method.name in ITERATIONS:
            told = documented(method, f"{node.name}.{method.name}").replace("\n", " ")
            facts.append(ITERATIONS[method.name] + told[0].lower() + told[1:])
    own = {method.name for method in node.body if isinstance(method, Method)}
    if "__enter__" in own:
        facts.append("Context manager.")
    if "__aenter__" in own:
        facts.append("Asynchronous context manager.")
    if any("__len__" in names for names in [own, *map(method_names, library.ancestors(node.name))]):
        facts.append("`len()` of it: how many entries are pending.")
    return facts


# What a class can do in a loop or an `await`.
ITERATIONS: Final = {
    "__iter__": "Iterable: ",
    "__aiter__": "Asynchronously iterable: ",
    "__await__": "Awaitable: ",
}


def is_retriable(node: ast.ClassDef, library: Library) -> bool:
    """Return true for an error whose class says that the same may succeed later."""
    return any(
        isinstance(one, ast.Assign) and ast.unparse(one) == "is_retriable = True"
        for each in (node, *library.ancestors(node.name))
        for one in each.body
    )


def page_of(name: str, asking: Page) -> str:
    """Return the page on which a name stands, of those on the shelf of the page that asks."""
    for page in PAGES:
        if page.shelf == asking.shelf and any(name in names for names in page.sections.values()):
            return page.file
    raise Unwritable(f"no page has {name}")


def all_attributes(node: ast.ClassDef, library: Library) -> list[tuple[str, str]]:
    """Return public attributes, first those from bases that are not exported."""
    found: dict[str, str] = {}
    for base in base_names(node):
        definition = library.definitions.get(base)
        if base not in library.exported and isinstance(definition, ast.ClassDef):
            found.update(all_attributes(definition, library))
    found.update(attributes_of(node))
    return list(found.items())


def attributes_of(node: ast.ClassDef) -> list[tuple[str, str]]:
    """Return public attributes that the class gives itself, with their types."""
    if has_fields(node):
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


def has_fields(node: ast.ClassDef) -> bool:
    """Return true for a dataclass or a named tuple."""
    return "NamedTuple" in base_names(node) or any(
        ast.unparse(one).startswith("dataclass") for one in node.decorator_list
    )


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
        for base in base_names(node):
            if base not in library.exported:
                # Its own stand first, and take the place of inherited ones.
                found = found | public_methods(base, library) | found
    return found


def methods(node: ast.ClassDef, page: Page, library: Library) -> Iterator[Method]:
    """Yield the methods that are for users, in the order of the source, inherited ones last."""
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


def documented(node: ast.ClassDef | Method, name: str) -> str:
    text = ast.get_docstring(node)
    if text is None:
        raise Unwritable(f"{name} is public and has no docstring")
    return inspect.cleandoc(text)


def fenced(*lines: str) -> list[str]:
    """Fence lines as `py` and not `python`: an example runs, a signature does not."""
    return ["```py", *lines, "```"]


# --- Signatures


def headline(node: ast.ClassDef | Method) -> list[str]:
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
    making = init_of(node)
    if making is not None:
        return call(node.name, parameters(making.args, skip=1), "")
    fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
    if not has_fields(node):
        return []
    parts = [
        parameter(ast.arg(ast.unparse(one.target), one.annotation), one.value) for one in fields
    ]
    return call(node.name, parts, "")


def init_of(node: ast.ClassDef) -> ast.FunctionDef | None:
    """Return what makes an object; with overloads the last one, which is for all of them."""
    found = None
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            found = method
    return found


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
    """Return an expression as people write it: classes without their module, double quotes, type
    variables without their variance."""
    text = re.sub(r"\b[a-z_]+\.(?=[A-Z])", "", ast.unparse(node)).replace("'", '"')
    return re.sub(r"\b(Key|Value)(In_contra|Out_co)\b", r"\1", text)


# --- The command


def pages() -> dict[Path, str]:
    shelves = {page.shelf: Library() for page in PAGES}
    introductions: dict[tuple[str, str], str] = {}
    exported: dict[tuple[str, str], set[str]] = {}
    for page in PAGES:
        book = (page.shelf, page.package)
        if book not in introductions:
            library = shelves[page.shelf]
            before = set(library.exported)
            introductions[book] = library.read(page.package)
            exported[book] = library.exported - before
    texts = {}
    for page in PAGES:
        book = (page.shelf, page.package)
        # What stands on another page of the same package is not missing on this one.
        elsewhere = {
            name
            for other in PAGES
            if other is not page and (other.shelf, other.package) == book
            for names in other.sections.values()
            for name in names
        }
        texts[REFERENCE / page.file] = page_text(
            page, shelves[page.shelf], introductions[book], sorted(exported[book] - elsewhere)
        )
    return texts


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
