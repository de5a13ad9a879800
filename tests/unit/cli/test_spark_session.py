"""Sessions of commands: what is missing on the machine, and errors that Spark raises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from tarry.cli.spark import session
from tarry.cli.spark.session import spark_session
from tarry.client import ClientError

PIPELINE = """\
name = "orders"
checkpoint = "checkpoint"
source = { topics = ["orders"] }
decode = { format = "text" }
clean = { topic = "orders.clean", rejected = "orders.rejected" }
"""

# A Python that has not installed PySpark.
WITHOUT_PYSPARK = """\
import sys
sys.modules["pyspark"] = None
from tarry.cli.spark.commands import spark
spark(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (("run", "orders.toml"), ""),
        (("run", "orders.toml", "--check"), ""),
        (("backfill", "orders.toml"), ""),
        (("compact", "lake"), ", or use --local"),
    ],
)
def test_a_machine_without_pyspark_is_told(
    tmp_path: Path, words: tuple[str, ...], instead: str
) -> None:
    archive = '[archive]\npath = "lake"\ntopics = ["orders", "orders.clean"]\n'
    result = '[[aggregate]]\nname = "a"\nwindow = "5m"\nvalues = { n = "count(*)" }\ntopic = "b"\n'
    (tmp_path / "orders.toml").write_text(PIPELINE + archive + result)

    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYSPARK, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    told = f'tarry: PySpark is not installed: pip install "tarry[spark]"{instead}\n'
    assert (done.returncode, done.stderr) == (1, told)


class PythonException(Exception):
    """Error of a worker, as Spark raises it at the driver."""


class Py4JNetworkError(Exception):
    """Error of the bridge to Java."""


PythonException.__module__ = "pyspark.errors.exceptions.captured"
Py4JNetworkError.__module__ = "py4j.protocol"


@pytest.fixture
def _started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a session be there at once, without a Java."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    started = SimpleNamespace(
        sparkContext=SimpleNamespace(setLogLevel=lambda level: None), stop=lambda: None
    )
    monkeypatch.setattr(session, "_check_installed", lambda: None)
    monkeypatch.setattr(session, "_started", lambda builder, master: started)


@pytest.mark.usefixtures("_started")
@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            PythonException(
                "Job aborted due to stage failure: Task 0 failed\nTraceback (most recent call "
                "last):\n  File x\nOSError: [Errno 28] No space left on device\n\tat org.apache.x"
            ),
            "No space left on device. Make room; the next start goes on where it stopped.",
        ),
        (
            PythonException("Job\ntarry.link.errors.TimedOut: no broker is there\n at x"),
            "no broker is there.",
        ),
        (Py4JNetworkError("Answer from Java side is empty"), "Spark's Java process has ended: "),
        (ConnectionRefusedError(111, "Connection refused"), "Spark's Java process has ended: "),
    ],
)
def test_what_spark_raises_is_a_sentence(
    capsys: pytest.CaptureFixture[str], error: Exception, sentence: str
) -> None:
    with pytest.raises(SystemExit) as ended, spark_session(None, is_local=False):
        raise error

    told = capsys.readouterr().err
    assert ended.value.code == 1
    assert told.startswith(f"tarry: {sentence}")
    assert told.count("\n") == 1


@pytest.mark.usefixtures("_started")
@pytest.mark.parametrize(
    "error",
    [ClientError("no broker answers"), KeyError("ours"), BrokenPipeError(32, "a pipe")],
)
def test_what_spark_did_not_raise_goes_on(error: Exception) -> None:
    with pytest.raises(type(error)), spark_session(None, is_local=False):
        raise error


@pytest.fixture
def builders(monkeypatch: pytest.MonkeyPatch, _started: None) -> list[Any]:
    """Settings of the sessions that were started."""
    started = session._started
    asked: list[Any] = []

    def start(builder: Any, master: str | None) -> object:
        asked.append(dict(builder._options))
        return started(builder, master)

    monkeypatch.setattr(session, "_started", start)
    return asked


def test_settings_of_spark_go_before_ours_and_the_commands_before_the_files(
    builders: list[Any],
) -> None:
    file = {"spark.ui.enabled": "true", "spark.driver.memory": "2g", "spark.x": "file"}
    conf = ["spark.x=a=b", "spark.driver.extraJavaOptions=-XX:+UseSerialGC"]

    with spark_session(None, is_local=False, conf=conf, settings=file):
        pass

    (asked,) = builders
    assert asked["spark.master"] == "local[*]"
    assert (asked["spark.ui.enabled"], asked["spark.driver.memory"]) == ("true", "2g")
    assert asked["spark.x"] == "a=b"
    options = asked["spark.driver.extraJavaOptions"]
    assert options.startswith("-Dlog4j2.") and options.endswith(" -XX:+UseSerialGC")


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ("driver.memory=4g", "driver.memory is no setting of Spark's: they begin with spark."),
        ("spark.driver.memory", "write it as KEY=VALUE"),
    ],
)
def test_what_is_no_setting_of_spark_is_wrong_usage(
    builders: list[Any], conf: str, told: str
) -> None:
    with pytest.raises(click.UsageError) as wrong, spark_session(None, is_local=False, conf=[conf]):
        pass

    assert told in str(wrong.value)
    assert builders == []
