#!/usr/bin/env python3
"""Compiles the hot modules in place, all of them as one mypyc unit.

The list stands in pyproject.toml, `[tool.tarry] hot`: paths below src/tarry, globs allowed.
One unit, because calls across units are slow calls.  mypyc writes one C file a module; those
whose C did not change are not compiled again.  Beside the build lies the record that
`tarry/_form.py` compares with the sources, so that a stale build never runs.

    compile_hot.py            build if anything changed; one line says what was done
    compile_hot.py --is-due   exit with 0 if a build would be made, print nothing
    compile_hot.py --clean    remove everything that a build leaves behind
    compile_hot.py --opt 3    another optimisation level than the list's `hot_opt_level`
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import sys
import sysconfig
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "src"
PACKAGE: Final = SOURCE / "tarry"
SUFFIX: Final = EXTENSION_SUFFIXES[0]
BUILD: Final = ROOT / "build" / ("hot" + SUFFIX.rsplit(".", 1)[0])
RECORD: Final = PACKAGE / ("_compiled" + SUFFIX.rsplit(".", 1)[0] + ".txt")
# What a build from nothing takes on two cores that have nothing else to do.
EXPECTED: Final = "up to a minute"
UNIT: Final = "tarry"  # the shared library is src/tarry__mypyc<abi>.so

# Functions of the unit are called by the unit alone.  Visible ones could be replaced at load time:
# the compiler would inline none of them, and the loader would bind thousands of names.
COMPILER_ARGUMENTS: Final = ["-fvisibility=hidden"]

# What a record begins with; the same words as in tarry/_form.py.
RECORD_IN_PLACE: Final = "tarry hot build in place"
RECORD_INSTALLED: Final = "tarry hot build installed"


def settings() -> dict[str, Any]:
    """`[tool.tarry]` of pyproject.toml."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        tarry: dict[str, Any] = tomllib.load(file)["tool"]["tarry"]
    return tarry


def hot_modules(patterns: list[str]) -> list[Path]:
    """Return the files that the list names, sorted; an entry that names none is a mistake."""
    modules: dict[Path, None] = {}
    for pattern in patterns:
        found = sorted(PACKAGE.glob(pattern))
        if not found:
            sys.exit(f"pyproject.toml, [tool.tarry] hot: nothing is called src/tarry/{pattern}")
        modules.update(dict.fromkeys(found))
    return sorted(modules)


def with_imported(modules: list[Path]) -> list[Path]:
    """Return the modules and all of Tarry that they import: mypyc takes over their constants."""
    seen: dict[Path, None] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen[module] = None
        for name in imported_names(module):
            path = SOURCE.joinpath(*name.split("."))
            waiting += [
                each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()
            ]
    return sorted(seen)


def imported_names(module: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(module.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.split(".")[0] == "tarry"]


def record_lines(headline: str, unit_digest: str, sources: list[Path]) -> list[str]:
    lines = [f"{headline} {unit_digest}"]
    for source in sources:
        status = source.stat()
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        path = source.relative_to(PACKAGE)
        lines.append(f"{status.st_size} {status.st_mtime_ns} {digest} {path}")
    return lines


def digest_of_unit(sources: list[Path], modules: list[Path], opt_level: str) -> str:
    """Return a digest of everything on which the build depends."""
    digest = hashlib.sha256()
    versions = [sys.version, opt_level, SUFFIX]
    versions += [importlib.metadata.version(name) for name in ("mypy", "librt")]
    versions += [str(module.relative_to(PACKAGE)) for module in modules]
    for version in versions:
        digest.update(version.encode() + b"\0")
    for source in [Path(__file__), *sources]:
        digest.update(str(source.relative_to(ROOT)).encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()


def built_files() -> list[Path]:
    """Return the compiled modules of this interpreter that lie in the source tree."""
    return sorted(SOURCE.rglob("*" + SUFFIX))


def is_up_to_date(unit_digest: str, modules: list[Path]) -> bool:
    try:
        headline = RECORD.read_text(encoding="utf-8").split("\n", 1)[0]
    except OSError:
        return False
    if headline != f"{RECORD_IN_PLACE} {unit_digest}":
        return False
    return all(module.with_name(module.stem + SUFFIX).exists() for module in modules)


def what_is_missing() -> str | None:
    """Return what a build needs and this machine has not, as a sentence; None if it can begin."""
    command = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(command) is None:
        return f"there is no C compiler ({command}); on Debian `apt install gcc` brings one"
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    if not header.is_file():
        return f"{header} is missing; on Debian `apt install python3-dev` brings it"
    return None


def remove_build() -> None:
    """Remove the record first: compiled modules without one are never used."""
    RECORD.unlink(missing_ok=True)
    for path in built_files():
        path.unlink()


def compile_unit(modules: list[Path], opt_level: str) -> list[tuple[Path, Path]]:
    """Generate C, compile and link; pairs of a built library and its place below src."""
    from mypyc.build import mypycify
    from setuptools._distutils import ccompiler, sysconfig as distutils_sysconfig

    BUILD.mkdir(parents=True, exist_ok=True)
    names = [str(module.relative_to(SOURCE)) for module in modules]
    with chdir(SOURCE):  # so that the modules' names begin at tarry
        extensions = mypycify(
            ["--config-file=", f"--cache-dir={BUILD / 'mypy'}", "--ignore-missing-imports", *names],
            opt_level=opt_level,
            debug_level="0",
            multi_file=True,
            target_dir=str(BUILD),
            group_name=UNIT,
        )
    for extension in extensions:
        # Extensions share one list.
        extension.extra_compile_args = [*extension.extra_compile_args, *COMPILER_ARGUMENTS]
    compiler = ccompiler.new_compiler()
    distutils_sysconfig.customize_compiler(compiler)
    headers = hashlib.sha256()
    for header in sorted(BUILD.rglob("*.h")):
        headers.update(header.read_bytes())
    include = [sysconfig.get_paths()["include"]]
    objects: dict[str, Path] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for extension in extensions:
            for source in extension.sources:
                objects[source] = object_path(source, extension, headers.hexdigest())
        work = [
            pool.submit(compile_source, compiler, source, objects[source], extension, include)
            for extension in extensions
            for source in extension.sources
        ]
        for each in work:
            each.result()
    built = []
    for extension in extensions:
        place = Path(*extension.name.split(".")).as_posix() + SUFFIX
        library = BUILD / "linked" / place
        compiler.link_shared_object(
            [str(objects[source]) for source in extension.sources], str(library)
        )
        built.append((library, SOURCE / place))
    return built


def object_path(source: str, extension: Any, headers: str) -> Path:
    """Return a path named by all that the object depends on, so that an equal one is used again."""
    digest = hashlib.sha256(headers.encode())
    digest.update(" ".join(extension.extra_compile_args).encode())
    digest.update(Path(source).read_bytes())
    return BUILD / "objects" / f"{Path(source).stem}-{digest.hexdigest()[:20]}.o"


def compile_source(
    compiler: Any, source: str, place: Path, extension: Any, include: list[str]
) -> None:
    if place.exists():
        return
    directory = place.with_suffix(".tmp")
    (compiled,) = compiler.compile(
        [source],
        output_dir=str(directory),
        include_dirs=[*extension.include_dirs, *include],
        extra_postargs=extension.extra_compile_args,
    )
    os.replace(compiled, place)
    shutil.rmtree(directory, ignore_errors=True)


def build(modules: list[Path], opt_level: str) -> None:
    """Build into the source tree; the record comes last."""
    sources = with_imported(modules)
    unit_digest = digest_of_unit(sources, modules, opt_level)
    lines = record_lines(RECORD_IN_PLACE, unit_digest, sources)  # as they were before the build
    built = compile_unit(modules, opt_level)
    remove_build()
    for library, place in built:
        # A copy under a new name, then a rename: a running broker keeps the file it has mapped.
        fresh = place.with_name(place.name + ".tmp")
        shutil.copyfile(library, fresh)
        os.replace(fresh, place)
    write_record(RECORD, lines)


def build_for_wheel() -> list[tuple[Path, Path]]:
    """Build beside the source tree; pairs of a file and its place in a wheel."""
    hot = settings()
    modules = hot_modules(hot["hot"])
    opt_level = str(hot["hot_opt_level"])
    sources = with_imported(modules)
    unit_digest = digest_of_unit(sources, modules, opt_level)
    built = compile_unit(modules, opt_level)
    record = BUILD / "linked" / RECORD.name
    write_record(record, record_lines(RECORD_INSTALLED, unit_digest, sources))
    pairs = [(library, place.relative_to(SOURCE)) for library, place in built]
    return [*pairs, (record, RECORD.relative_to(SOURCE))]


def write_record(place: Path, lines: list[str]) -> None:
    fresh = place.with_name(place.name + ".tmp")
    fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.replace(fresh, place)


@contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of a source tree: one build at a time."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--clean", action="store_true", help="remove what a build leaves behind")
    parser.add_argument("--is-due", action="store_true", help="only say whether to build")
    parser.add_argument("--opt", metavar="LEVEL", help="optimisation level of the C compiler")
    arguments = parser.parse_args()
    if arguments.clean:
        remove_build()
        shutil.rmtree(BUILD, ignore_errors=True)
        return 0
    hot = settings()
    opt_level = arguments.opt or str(hot["hot_opt_level"])
    modules = hot_modules(hot["hot"])
    if arguments.is_due:
        digest = digest_of_unit(with_imported(modules), modules, opt_level)
        return 0 if what_is_missing() is None and not is_up_to_date(digest, modules) else 1
    with alone():
        sources = with_imported(modules)
        unit_digest = digest_of_unit(sources, modules, opt_level)
        if is_up_to_date(unit_digest, modules):
            # Sources that were only touched, as by a checkout, would have every start compare
            # their contents: 15 ms.
            write_record(RECORD, record_lines(RECORD_IN_PLACE, unit_digest, sources))
            return 0
        missing = what_is_missing()
        if missing is not None:
            remove_build()
            print(f"The hot modules run interpreted: {missing}.")
            return 0
        print(f"compiling {len(modules)} hot modules, {EXPECTED}", flush=True)
        started = time.monotonic()
        build(modules, opt_level)
        print(f"compiled in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
