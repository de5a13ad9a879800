"""Standalone Spark cluster on loopback: a master and workers, by the wheel's own scripts."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark
from tests.support.patience import PATIENCE_S

SPARK_HOME: Final = Path(pyspark.__file__).parent
HOST: Final = "127.0.0.1"

LOGGING: Final = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_OUT
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
"""


def environment(directory: Path) -> dict[str, str]:
    """Return the environment of Spark's programs: nothing leaves loopback or the directory."""
    return {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(directory),
        "SPARK_WORKER_DIR": str(directory / "work"),
        "PYSPARK_PYTHON": sys.executable,
    }


class Daemon:
    """Daemon of Spark; what it prints is read on a thread, so that a full pipe never holds it."""

    def __init__(self, directory: Path, name: str, *words: str) -> None:
        quiet = directory / "daemons.properties"
        quiet.write_text(LOGGING)
        variables = {
            **environment(directory),
            "SPARK_DAEMON_JAVA_OPTS": (
                f"-Dlog4j.configurationFile={quiet} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
                # An application whose executors are killed is not given up.
                "-Dspark.deploy.maxExecutorRetries=-1"
            ),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        self._process = subprocess.Popen(
            [*command, "--host", HOST, "--port", "0", "--webui-port", "0", *words],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put("")

    def told(self, pattern: str) -> str:
        """Return what a pattern's group finds in the lines, as soon as one fits."""
        passed = []
        while line := self._lines.get(timeout=PATIENCE_S):
            found = re.search(pattern, line)
            if found is not None:
                return found[1]
            passed.append(line)
        raise AssertionError(f"the daemon ended: {''.join(passed[-20:])}")

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.join()


@contextmanager
def standalone_cluster(directory: Path, workers: int) -> Iterator[str]:
    """Start a master and its workers of one core; yield the master's address."""
    with ExitStack() as stack:
        master = Daemon(directory, "master.Master")
        stack.callback(master.end)
        address = master.told(r"Starting Spark master at (spark://\S+)")
        for _ in range(workers):
            words = ("--cores", "1", "--memory", "600m", address)
            worker = Daemon(directory, "worker.Worker", *words)
            stack.callback(worker.end)
            worker.told(r"(Successfully registered) with master")
        yield address


def submit(directory: Path, master: str, program: Path, *words: str) -> str:
    """Run a program by spark-submit, and return the last line that it prints."""
    settings = {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.python.authenticate.socketTimeout": "120s",
    }
    given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, *given]
    done = subprocess.run(
        [*command, str(program), *words],
        env=environment(directory),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()[-1] if done.stdout else ""
