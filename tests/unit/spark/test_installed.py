"""What is installed: PySpark's version, and the Python of workers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tarry.spark.installed import check_pyspark, check_python


@pytest.mark.parametrize("version", ["4.2.0", "4.3.0", "4.10.1", "5.0.0.dev1"])
def test_a_new_pyspark_is_taken(version: str) -> None:
    check_pyspark(version)


@pytest.mark.parametrize("version", ["3.5.4", "4.1.1"])
def test_an_old_pyspark_is_refused(version: str) -> None:
    with pytest.raises(ImportError, match=f"needs PySpark 4.2 or newer, and this is {version}"):
        check_pyspark(version)


def test_workers_of_this_python_are_taken() -> None:
    check_python(sys.executable)


def test_workers_without_a_python_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"\(there is no such program\).*set PYSPARK_PYTHON="):
        check_python("python-of-nobody")


def test_workers_whose_python_lacks_the_package_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.write_text(
        "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'tarry'\" >&2\nexit 1\n"
    )
    other.chmod(0o755)

    with pytest.raises(RuntimeError, match="No module named 'tarry'"):
        check_python(str(other))
