"""When a wheel is compiled: by the machine, unless TARRY_COMPILE says otherwise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The hook of a wheel, on a machine that has a compiler."""
    monkeypatch.delenv("TARRY_COMPILE", raising=False)
    hook = hook_of("wheel")
    monkeypatch.setattr(hook, "what_is_missing", lambda: None)
    return hook


def hook_of(target: str) -> Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "tools/hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    builder = WheelBuilder(str(ROOT))
    return module.CompiledWheel(
        str(ROOT), {}, builder.config, builder.metadata, "", target, builder.app
    )


def names_of(dependencies: list[str]) -> list[str]:
    return sorted(one.split(">")[0] for one in dependencies)


def test_where_a_compiler_is_a_wheel_is_compiled_and_asks_for_what_that_needs(hook: Any) -> None:
    assert hook.is_wanted()
    # The types of what the hot modules import are part of it.
    assert {"librt", "msgspec", "mypy", "setuptools"} <= set(names_of(hook.dependencies()))


def test_without_a_compiler_a_wheel_is_pure_needs_nothing_and_says_what_that_costs(
    hook: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hook, "what_is_missing", lambda: "there is no C compiler (cc)")
    build_data: dict[str, Any] = {}

    hook.initialize("standard", build_data)

    assert not hook.is_wanted()
    assert hook.dependencies() == []
    assert build_data == {}
    told = " ".join(capsys.readouterr().err.split())
    assert "(there is no C compiler (cc)): a broker then needs about four times the CPU" in told


def test_a_variable_forbids_and_demands_compiling(
    hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARRY_COMPILE", "0")
    forbidden = hook.is_wanted()
    monkeypatch.setenv("TARRY_COMPILE", "1")
    monkeypatch.setattr(hook, "what_is_missing", lambda: "there is no C compiler (cc)")

    assert not forbidden
    assert hook.is_wanted()
    with pytest.raises(SystemExit, match="TARRY_COMPILE=1: there is no C compiler"):
        hook.initialize("standard", {})


def test_the_source_package_and_an_editable_install_compile_nothing(hook: Any) -> None:
    build_data: dict[str, Any] = {}

    hook.initialize("editable", build_data)

    assert build_data == {}
    assert not hook_of("sdist").is_wanted()
