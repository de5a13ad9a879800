"""What `make dist` makes: a pure wheel for everybody, a compiled one for this Python."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

import tarry

ROOT = Path(__file__).resolve().parents[2]

# A compiled wheel is made of what `make setup` has compiled; without that it would take minutes.
COMPILED = tarry.FORM == "compiled"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages; tools/dist.sh itself imports each wheel and fails if it runs another form."""
    directory = tmp_path_factory.mktemp("packages") / "dist"
    done = subprocess.run(
        [ROOT / "tools" / "dist.sh", *([] if COMPILED else ["--pure"]), directory],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_pure_wheel_holds_sources_only_and_fits_every_platform(dist: Path) -> None:
    (wheel,) = dist.glob("*-py3-none-any.whl")

    names = names_in(wheel)

    assert "tarry/timer/wheel.py" in names
    assert [name for name in names if name.endswith(".so") or "_compiled" in name] == []


@pytest.mark.skipif(not COMPILED, reason="there is nothing compiled here to pack")
def test_the_compiled_wheel_holds_the_unit_beside_the_sources(dist: Path) -> None:
    (wheel,) = set(dist.glob("*.whl")) - set(dist.glob("*-any.whl"))

    names = names_in(wheel)

    for module in ("timer/wheel", "purgatory/purgatory", "broker/broker"):
        assert f"tarry/{module}.py" in names
        assert any(name.startswith(f"tarry/{module}.c") for name in names)
    assert any("_compiled" in name for name in names)


def test_the_source_package_brings_what_builds_both_wheels(dist: Path) -> None:
    (source,) = dist.glob("*.tar.gz")

    with tarfile.open(source) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}

    wanted = {"pyproject.toml", "tools/hatch_build.py", "tools/compile_hot.py", "LICENSE"}
    assert wanted - names == set()
    assert "src/tarry/timer/wheel.py" in names
