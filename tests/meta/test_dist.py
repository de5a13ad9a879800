"""What `make dist` makes: a pure wheel for everybody, a compiled one for this Python."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
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


# --- The tutorial's lines

PRINT_NEEDS = "import importlib.metadata as m; print(*m.requires('tarry'), sep='\\n')"


def test_the_tutorial_about_spark_installs_what_make_dist_makes(dist: Path, tmp_path: Path) -> None:
    """Without PySpark itself, which is large: what the extra asks for is compared with what the
    tests run with."""
    page = (ROOT / "docs" / "tutorial-spark.md").read_text(encoding="utf-8")
    block = re.search(r"^## 1\. Install$.*?^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert block is not None
    made, *lines = block[1].splitlines()
    assert made == "make dist"
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "dist").symlink_to(dist)
    left_out = ("PYTHONPATH", "PYTHONHOME", "TARRY_PURE")
    environment = {key: value for key, value in os.environ.items() if key not in left_out}
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment.update({"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"})
    # Other packages than Tarry come from the environment of the tests.
    others = f"export PYTHONPATH={sysconfig.get_path('purelib')}"
    looks = [f'python -c "{PRINT_NEEDS}"', others, "command -v tarry", "tarry --version"]

    done = subprocess.run(
        ["sh", "-ec", "\n".join([*lines, *looks])],
        cwd=tmp_path / "checkout",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    *printed, command, version = done.stdout.splitlines()
    assert command == str(tmp_path / "first" / "bin" / "tarry")
    assert tarry.__version__ in version
    needs = [Requirement(line) for line in printed if "extra ==" in line]
    of_spark = [one for one in needs if one.marker and one.marker.evaluate({"extra": "spark"})]
    assert "pyspark" in [one.name for one in of_spark]
    if importlib.util.find_spec("pyspark") is not None:
        for one in of_spark:
            assert one.specifier.contains(importlib.metadata.version(one.name), prereleases=True)


# --- A user's typed program against the installed wheel

PROGRAM = ROOT / "tests" / "meta" / "typed_program.py"

# Each line is refused by both checkers: what a user mistypes is told before it runs.
MISTAKES = """from tarry.client import Admin, Consumer, Producer, Text

Producer(linger="5")
Producer(group_id="billing")
Consumer("orders", group_id=5)
Consumer(42)
Producer().send("orders", "text")
Producer().send(b"orders")
Producer().send("orders", partition="0")
Producer(value=Text()).send("orders", b"text")
Consumer().assign([("orders", "0")])
Consumer().seek("orders", 0, "beginning")
Admin().create_topics(["orders"])
"""


@pytest.fixture(scope="module")
def user(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the program and its mistakes, and an environment that has the wheel."""
    directory = tmp_path_factory.mktemp("user")
    python = directory / "env" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory / "env"], check=True)
    (packages,) = directory.glob("env/lib/*/site-packages")
    (wheel,) = dist.glob("*-py3-none-any.whl")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--no-deps", "--target", packages, wheel], check=True)
    assert python.exists()
    shutil.copy(PROGRAM, directory / "program.py")
    (directory / "mistakes.py").write_text(MISTAKES)
    return directory


CHECKERS = {
    "mypy": ["mypy", "--strict", "--config-file=", "--python-executable=env/bin/python"],
    "pyright": ["pyright", "--pythonpath=env/bin/python"],
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_users_typed_program_passes_and_its_mistakes_do_not(user: Path, checker: str) -> None:
    program, *arguments = CHECKERS[checker]
    done = subprocess.run(
        [str(Path(sys.executable).parent / program), *arguments, "program.py", "mistakes.py"],
        cwd=user,
        env={key: value for key, value in os.environ.items() if key != "MYPYPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    if checker == "pyright" and "informations" not in done.stdout:
        pytest.skip(f"pyright cannot be had from npm: {done.stderr.strip()[-200:]}")
    refused = re.findall(r"(\w+\.py):(\d+)(?::\d+)?(?: -|:) error", done.stdout)
    lines = {int(line) for name, line in refused if name == "mistakes.py"}
    assert [one for one in refused if one[0] != "mistakes.py"] == [], done.stdout
    assert lines == set(range(3, MISTAKES.count("\n") + 1)), done.stdout + done.stderr


def test_the_source_package_brings_what_builds_both_wheels(dist: Path) -> None:
    (source,) = dist.glob("*.tar.gz")

    with tarfile.open(source) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}

    wanted = {"pyproject.toml", "tools/hatch_build.py", "tools/compile_hot.py", "LICENSE"}
    assert wanted - names == set()
    assert "src/tarry/timer/wheel.py" in names
