"""A compiled form that does not belong to the sources never runs."""

from __future__ import annotations

import shutil
import sys
import sysconfig

import pytest
from tests.meta.conftest import Project

WHICH = "import tarry, tarry.timer.wheel as wheel; print(tarry.FORM, wheel.__file__[-3:])"

has_compiler = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) is not None


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy in which the timing wheel alone is compiled; tests leave it as it is."""
    project = Project(tmp_path_factory.mktemp("compiled"))
    settings = project.directory / "pyproject.toml"
    lines = settings.read_text().partition("[tool.tarry]")[0]
    settings.write_text(lines + '[tool.tarry]\nhot = ["timer/wheel.py"]\nhot_opt_level = 0\n')
    done = project.run([sys.executable, "tools/compile_hot.py"])
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def which(project: Project, **environment: str) -> tuple[str, str]:
    done = project.run([sys.executable, "-c", WHICH], **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.skipif(not has_compiler, reason="there is no C compiler")
def test_a_stale_build_is_not_run_and_a_line_says_so(compiled: Project) -> None:
    fresh = which(compiled)
    wheel = compiled.directory / "src/tarry/timer/wheel.py"
    text = wheel.read_text()

    wheel.write_text(text + "\n# changed\n")
    changed = which(compiled)
    wheel.write_text(text)
    touched = which(compiled)

    assert fresh == ("compiled .so", "")
    assert changed[0] == "interpreted .py"
    assert "timer/wheel.py changed after the build" in changed[1]
    assert touched == fresh


@pytest.mark.skipif(not has_compiler, reason="there is no C compiler")
def test_sources_that_were_only_touched_are_not_read_at_every_start(compiled: Project) -> None:
    wheel = compiled.directory / "src/tarry/timer/wheel.py"
    program = "import sys, tarry; print(tarry.FORM, '_hashlib' in sys.modules)"
    wheel.touch()
    touched = compiled.run([sys.executable, "-c", program])

    compiled.run([sys.executable, "tools/compile_hot.py"])
    settled = compiled.run([sys.executable, "-c", program])

    assert touched.stdout == "compiled True\n"
    assert settled.stdout == "compiled False\n"


@pytest.mark.skipif(not has_compiler, reason="there is no C compiler")
def test_the_interpreted_form_runs_beside_a_build_when_asked_for(compiled: Project) -> None:
    assert which(compiled, TARRY_PURE="1") == ("interpreted .py", "")


@pytest.mark.skipif(not has_compiler, reason="there is no C compiler")
def test_compiled_modules_without_their_record_are_not_run(compiled: Project) -> None:
    records = list(compiled.directory.glob("src/tarry/_compiled.*"))
    for record in records:
        record.rename(record.with_suffix(".away"))

    without = which(compiled)

    for record in records:
        record.with_suffix(".away").rename(record)
    assert without == ("interpreted .py", "")
