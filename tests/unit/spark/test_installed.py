"""What is installed: PySpark's version, and the Python of workers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tarry.spark.installed import (
    check_java,
    check_pyspark,
    check_python,
    check_spark_home,
)


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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("#!/nowhere/interpreter\n", "No such file or directory"),
        ("#!/bin/sh\nexit 3\n", "it exits with 3"),
    ],
)
def test_workers_whose_python_does_not_run_are_refused(
    tmp_path: Path, text: str, told: str
) -> None:
    other = tmp_path / "python3"
    other.write_text(text)
    other.chmod(0o755)

    with pytest.raises(RuntimeError, match=rf"\({told}\).*set PYSPARK_PYTHON="):
        check_python(str(other))


def java_home(directory: Path, version: str) -> str:
    """Make a directory whose java tells a version."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return str(directory)


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2", "25", "17-ea"])
def test_a_new_java_is_taken(tmp_path: Path, version: str) -> None:
    check_java({"JAVA_HOME": java_home(tmp_path / "jdk", version)})


@pytest.mark.parametrize(("version", "told"), [("1.8.0_392", "8"), ("11.0.2", "11")])
def test_an_old_java_is_refused(tmp_path: Path, version: str, told: str) -> None:
    home = java_home(tmp_path / "jdk", version)

    with pytest.raises(RuntimeError, match=rf"bin/java is Java {told}: set JAVA_HOME to"):
        check_java({"PATH": f"{home}/bin"})


def test_a_machine_without_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="needs Java 17 or newer, and there is no program java"):
        check_java({"PATH": str(tmp_path)})


def test_java_home_counts_before_the_path(tmp_path: Path) -> None:
    home = java_home(tmp_path / "jdk", "17.0.15")

    with pytest.raises(RuntimeError, match=r"/nowhere/bin/java cannot be run .*set JAVA_HOME to"):
        check_java({"JAVA_HOME": "/nowhere", "PATH": f"{home}/bin"})


def test_a_java_that_cannot_start_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\necho 'Unable to locate a Java Runtime.' >&2\nexit 1\n")
    program.chmod(0o755)

    with pytest.raises(RuntimeError, match=r"java cannot be run \(Unable to locate a Java Runtime"):
        check_java({"PATH": str(tmp_path)})


@pytest.mark.parametrize(
    ("jars", "told"),
    [
        (["spark-core_2.12-3.5.1.jar", "spark-sql_2.13-4.2.0.jar"], "has Spark 3.5.1, and PySpark"),
        (["spark-core_2.13-4.3.0-preview1.jar"], "has Spark 4.3.0-preview1, and PySpark is 4.2.1"),
        ([], "has no Spark, and PySpark is 4.2.1: unset SPARK_HOME"),
    ],
)
def test_a_spark_of_another_version_is_refused(tmp_path: Path, jars: list[str], told: str) -> None:
    (tmp_path / "jars").mkdir()
    for name in jars:
        (tmp_path / "jars" / name).touch()

    with pytest.raises(RuntimeError, match=told):
        check_spark_home({"SPARK_HOME": str(tmp_path)}, "4.2.1")


def test_a_spark_of_the_same_version_is_taken(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.2.0.jar").touch()
    import pyspark

    check_spark_home({"SPARK_HOME": str(tmp_path)}, "4.2.1")
    check_spark_home({})
    own = str(Path(pyspark.__file__).parent)
    check_spark_home({"SPARK_HOME": own})
