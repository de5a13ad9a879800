"""Installed PySpark, Java and the Python of workers: a sentence for what is wrong with them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION_MIN: Final = (4, 2)
JAVA_VERSION_MIN: Final = 17

# In what `java -version` tells: `openjdk version "17.0.15"`; up to Java 8 it was `"1.8.0_392"`.
JAVA_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')

# Name of the file of a Spark that tells its version.
CORE_JAR: Final = re.compile(r"spark-core_[\d.]+-(?P<version>(?P<line>\d+\.\d+)\..*)\.jar")

# What a worker needs, run by its Python.
WORKER_PROGRAM: Final = (
    "import sys; "
    "assert sys.version_info[:2] == {version}, 'it is Python ' + sys.version.split()[0]; "
    "import tarry.spark.reading.rows"
)

# Time in which a Python starts, on a machine that is busy.
SECONDS_MAX: Final = 60


def check_pyspark(version: str = pyspark.__version__) -> None:
    """Refuse a PySpark whose Python data sources cannot do what this one needs."""
    if tuple(int(part) for part in version.split(".")[:2]) < VERSION_MIN:
        needed = ".".join(str(part) for part in VERSION_MIN)
        raise ImportError(
            f"the format tarry needs PySpark {needed} or newer, and this is {version}: "
            'pip install "tarry[spark]"'
        )


def check_java(environment: Mapping[str, str] = os.environ) -> None:
    """Refuse a machine whose Java, as Spark's scripts find it, is missing or too old."""
    home = environment.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH"))
    needed = f"Spark needs Java {JAVA_VERSION_MIN} or newer"
    if java is None:
        raise RuntimeError(
            f"{needed}, and there is no program java: install one, or set JAVA_HOME to the "
            "directory of one"
        )
    done = _ran([java, "-version"])
    found = None if isinstance(done, str) else JAVA_VERSION.search(done.stderr + done.stdout)
    if found is None:
        told = done if isinstance(done, str) else _first_line(done)
        raise RuntimeError(
            f"{needed}, and {java} cannot be run ({told}): set JAVA_HOME to the "
            "directory of a Java, or unset it where java is on the PATH"
        )
    if int(found[1]) < JAVA_VERSION_MIN:
        raise RuntimeError(
            f"{needed}, and {java} is Java {found[1]}: set JAVA_HOME to the "
            "directory of a newer one"
        )


def check_spark_home(
    environment: Mapping[str, str] = os.environ, version: str = pyspark.__version__
) -> None:
    """Refuse a SPARK_HOME whose Spark is not that of PySpark, which would start it."""
    home = environment.get("SPARK_HOME")
    if not home:
        return
    try:
        names = os.listdir(os.path.join(home, "jars"))
    except OSError:
        names = []
    found = next(filter(None, map(CORE_JAR.fullmatch, sorted(names))), None)
    told = "no Spark" if found is None else f"Spark {found['version']}"
    if found is None or found["line"] != ".".join(version.split(".")[:2]):
        raise RuntimeError(
            f"SPARK_HOME={home} has {told}, and PySpark is {version}: unset SPARK_HOME, so that "
            "PySpark takes its own Spark, or let it name one of that version"
        )


def check_workers(spark: SparkSession) -> None:
    """Refuse a session whose workers would run a Python without this package."""
    context = getattr(spark, "_sc", None)
    if context is None:
        # Spark Connect: its server has workers of its own.
        return
    check_python(context.pythonExec)


def check_python(name: str) -> None:
    """Refuse a Python that is not of this version, or that lacks what workers need."""
    found = shutil.which(name)
    if found is not None and os.path.abspath(found) == os.path.abspath(sys.executable):
        return
    reason = "there is no such program"
    if found is not None:
        version = tuple(sys.version_info[:2])
        done = _ran([found, "-c", WORKER_PROGRAM.format(version=version)])
        if isinstance(done, str):
            reason = done
        elif done.returncode == 0:
            return
        else:
            reason = done.stderr.strip().rpartition("\n")[2] or f"it exits with {done.returncode}"
    raise RuntimeError(
        f"Spark's workers run {name} ({reason}), and the format tarry needs the Python that has "
        f"it: set PYSPARK_PYTHON={sys.executable} before the session is made"
    )


def _ran(command: list[str]) -> subprocess.CompletedProcess[str] | str:
    """Run a program that only tells something; return why it cannot be run where it cannot."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS_MAX,
            check=False,
        )
    except OSError as error:
        return error.strerror or type(error).__name__
    except subprocess.TimeoutExpired:
        return f"it does not end within {SECONDS_MAX} s"


def _first_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = f"{done.stderr}{done.stdout}".strip().splitlines()
    return lines[0][:200] if lines else f"it exits with {done.returncode}"
