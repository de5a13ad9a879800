"""Which form of the hot modules is chosen, and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarry import _form


@pytest.fixture(autouse=True)
def _nothing_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TARRY_PURE", raising=False)


def record(directory: Path, *sources: Path, headline: str = _form.RECORD_IN_PLACE) -> str:
    lines = [f"{headline} 0123"]
    for source in sources:
        status = source.stat()
        digest = _form.content_digest(str(source))
        lines.append(f"{status.st_size} {status.st_mtime_ns} {digest} {source.name}")
    path = directory / "_compiled.test.txt"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "wheel of time.py"
    path.write_text("x = 1\n")
    return path


def test_without_a_record_the_sources_run(tmp_path: Path) -> None:
    assert _form.choose_form(str(tmp_path / "none.txt"))[0] == _form.INTERPRETED


def test_a_record_that_agrees_with_the_sources_is_used(tmp_path: Path, source: Path) -> None:
    assert _form.choose_form(record(tmp_path, source))[0] == _form.COMPILED


@pytest.mark.parametrize("text", ["y = 1\n", "x = 11\n"])
def test_a_source_that_changed_after_the_build_is_named(
    tmp_path: Path, source: Path, text: str
) -> None:
    path = record(tmp_path, source)
    source.write_text(text)
    os.utime(source, ns=(1, 1))

    form, reason = _form.choose_form(path)

    assert form == _form.INTERPRETED
    assert reason == "wheel of time.py changed after the build"


def test_a_source_that_was_only_touched_is_the_one_that_was_built(
    tmp_path: Path, source: Path
) -> None:
    path = record(tmp_path, source)
    os.utime(source, ns=(1, 1))

    assert _form.choose_form(path)[0] == _form.COMPILED


def test_a_source_that_is_gone_makes_the_build_stale(tmp_path: Path, source: Path) -> None:
    path = record(tmp_path, source)
    source.unlink()

    assert _form.choose_form(path)[0] == _form.INTERPRETED


def test_an_empty_record_is_no_build(tmp_path: Path) -> None:
    path = tmp_path / "_compiled.test.txt"
    path.touch()

    assert _form.choose_form(str(path))[0] == _form.INTERPRETED


def test_an_installed_build_is_not_compared(tmp_path: Path, source: Path) -> None:
    path = record(tmp_path, source, headline=_form.RECORD_INSTALLED)
    source.write_text("changed\n")

    assert _form.choose_form(path)[0] == _form.COMPILED


@pytest.mark.parametrize(
    ("value", "is_pure"), [("1", True), ("yes", True), ("0", False), ("", False)]
)
def test_the_interpreted_form_can_be_asked_for(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, value: str, is_pure: bool
) -> None:
    monkeypatch.setenv("TARRY_PURE", value)

    form, _ = _form.choose_form(record(tmp_path, source))

    assert form == (_form.INTERPRETED if is_pure else _form.COMPILED)


def test_the_finder_of_sources_knows_packages_and_modules_of_tarry_only(tmp_path: Path) -> None:
    (tmp_path / "timer").mkdir()
    (tmp_path / "timer" / "__init__.py").touch()
    (tmp_path / "wheel.py").touch()
    (tmp_path / "wheel.so").touch()
    path = [str(tmp_path)]

    package = _form.SourceFinder.find_spec("tarry.timer", path)
    module = _form.SourceFinder.find_spec("tarry.wheel", path)

    assert package is not None
    assert package.submodule_search_locations == [str(tmp_path / "timer")]
    assert module is not None
    assert module.origin == str(tmp_path / "wheel.py")
    assert _form.SourceFinder.find_spec("json.wheel", path) is None
    assert _form.SourceFinder.find_spec("tarry", None) is None
