"""Form of the hot modules that runs: compiled by mypyc, or the interpreted source.

`tools/compile_hot.py` writes a record beside its build: every source that went into it, with
size, time and digest.  Compiled modules are used only while that record agrees with the
sources; else, or with TARRY_PURE=1, a finder hides them and the sources run.  A form is chosen
once, before the first hot module is imported, and for all of them: mixed forms would be slow
and hard to tell apart.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PACKAGE_DIRECTORY: Final = os.path.dirname(os.path.abspath(__file__))

# A build serves one interpreter's ABI; several may lie side by side in one source tree.
RECORD_PATH: Final = os.path.join(
    PACKAGE_DIRECTORY, "_compiled" + EXTENSION_SUFFIXES[0].rsplit(".", 1)[0] + ".txt"
)

# What the first line of a record begins with; "installed" records come with a wheel, whose
# files belong together and need no comparing.
RECORD_IN_PLACE: Final = "tarry hot build in place"
RECORD_INSTALLED: Final = "tarry hot build installed"

COMPILED: Final = "compiled"
INTERPRETED: Final = "interpreted"


class SourceFinder:
    """Finds the modules of this package as source files only, whatever lies beside them."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not name.startswith("tarry."):
            return None
        for directory in path:
            finder = FileFinder(directory, (SourceFileLoader, SOURCE_SUFFIXES))
            spec = finder.find_spec(name)
            if spec is not None:
                return spec
        return None


def choose_form(record_path: str = RECORD_PATH) -> tuple[str, str]:
    """Return the form to run and the reason for it, as half a sentence."""
    if os.environ.get("TARRY_PURE", "0") not in ("", "0"):
        return INTERPRETED, "TARRY_PURE is set"
    try:
        with open(record_path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return INTERPRETED, "no hot module is compiled"
    if not lines:
        return INTERPRETED, "the build is not whole"
    if lines[0].startswith(RECORD_INSTALLED):
        return COMPILED, "installed compiled"
    stale = stale_source(lines[1:], os.path.dirname(record_path))
    if stale is None:
        return COMPILED, "the build is up to date"
    return INTERPRETED, f"{stale} changed after the build"


def stale_source(lines: list[str], directory: str) -> str | None:
    """Return the first source that is not what was built, or None.

    Time and size settle it for a few microseconds a file; only where they differ, as after a
    checkout, the content is compared.
    """
    for line in lines:
        size, time_ns, digest, path = line.split(" ", 3)
        source = os.path.join(directory, path)
        try:
            status = os.stat(source)
        except OSError:
            return path
        if status.st_size != int(size):
            return path
        if status.st_mtime_ns != int(time_ns) and content_digest(source) != digest:
            return path
    return None


def content_digest(path: str) -> str:
    """SHA-256 of a file."""
    import hashlib  # rarely needed, and start-up time counts

    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def install() -> tuple[str, str]:
    """Choose, hide compiled modules where the sources are to run, and say so if it surprises."""
    form, reason = choose_form()
    if form == INTERPRETED:
        sys.meta_path.insert(0, SourceFinder)
        if reason.endswith("changed after the build"):
            print(f"tarry runs interpreted: {reason}; `make setup` compiles", file=sys.stderr)  # noqa: T201
    return form, reason
