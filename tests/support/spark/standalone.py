"""Standalone Spark cluster on loopback: a master and workers, by the commands of the page about
clusters."""

from __future__ import annotations

import os
import queue
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark
from tests.support.patience import PATIENCE_S
from tests.support.spark.command import bare_environment
from tests.support.spark.page_examples import programs_of

SPARK_HOME: Final = Path(pyspark.__file__).parent
HOST: Final = "127.0.0.1"
PAGE: Final = "spark-on-a-cluster.md"

# Words of the page that a test replaces.
PAGE_HOST: Final = "10.0.0.1"
PAGE_PORT: Final = "--port 7077"
PAGE_MASTER: Final = "spark://10.0.0.1:7077"
PAGE_PYTHON: Final = "/opt/jobs/bin/python"
PAGE_PROGRAM: Final = "program.py orders orders.copy /mnt/shared"

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
        **_places(directory),
        "SPARK_HOME": str(SPARK_HOME),
        "PYSPARK_PYTHON": sys.executable,
    }


def _places(directory: Path) -> dict[str, str]:
    return {
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(directory),
        "SPARK_WORKER_DIR": str(directory / "work"),
    }


class PageCommands:
    """Blocks of commands on the page, in its order, for a shell of whoever reads it."""

    def __init__(self) -> None:
        self.master, self.worker, self.submit, self.tarry = programs_of(PAGE, "sh")
        # The page has every shell know SPARK_HOME, and says once how.
        self._home = self.master.splitlines()[0]
        assert self._home.startswith("export SPARK_HOME=")

    def program(self, block: str, words: Mapping[str, str]) -> list[str]:
        """Return the program that runs a block, where each word of the page is replaced."""
        for word, instead in words.items():
            assert word in block, f"{PAGE} has no {word!r} in {block!r}"
            block = block.replace(word, instead)
        if not block.startswith(self._home):
            block = f"{self._home}\n{block}"
        return ["sh", "-e", "-c", block]


class Daemon:
    """Daemon of Spark; what it prints is read on a thread, so that a full pipe never holds it."""

    def __init__(self, directory: Path, program: list[str]) -> None:
        quiet = directory / "daemons.properties"
        quiet.write_text(LOGGING)
        # The last line of a block is the daemon: its shell becomes it, and gets its signals.
        *shell, text = program
        before, _, last = text.rstrip("\n").rpartition("\n")
        variables = {
            **bare_environment(directory),
            **_places(directory),
            "SPARK_DAEMON_JAVA_OPTS": (
                f"-Dlog4j.configurationFile={quiet} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
                # An application whose executors are killed is not given up.
                "-Dspark.deploy.maxExecutorRetries=-1"
            ),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_WEBUI_PORT": "0",
            "SPARK_WORKER_WEBUI_PORT": "0",
            "SPARK_WORKER_CORES": "1",
            # An executor asks for this much where nothing says how much.
            "SPARK_WORKER_MEMORY": "1g",
        }
        self._process = subprocess.Popen(
            [*shell, f"{before}\nexec {last}"],
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
    page = PageCommands()
    with ExitStack() as stack:
        # The system chooses the port.
        begin = page.program(page.master, {PAGE_HOST: HOST, PAGE_PORT: "--port 0"})
        master = Daemon(directory, begin)
        stack.callback(master.end)
        address = master.told(r"Starting Spark master at (spark://\S+)")
        for _ in range(workers):
            worker = Daemon(directory, page.program(page.worker, {PAGE_MASTER: address}))
            stack.callback(worker.end)
            worker.told(r"(Successfully registered) with master")
        yield address


def submit(directory: Path, master: str, program: Path, *words: str) -> str:
    """Run a program by spark-submit, and return the last line that it prints."""
    settings = {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.python.authenticate.socketTimeout": "120s",
    }
    given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    page = PageCommands()
    instead = {
        PAGE_MASTER: shlex.join([master, *given]),
        PAGE_PYTHON: sys.executable,
        PAGE_PROGRAM: shlex.join([str(program), *words]),
    }
    done = _run(directory, page.program(page.submit, instead))
    return done.splitlines()[-1] if done else ""


def run_pipeline_file(directory: Path, master: str, bootstrap: str) -> str:
    """Run and recount `orders.toml` of a directory as the page does; return what is printed."""
    page = PageCommands()
    return _run(
        directory,
        page.program(page.tarry, {PAGE_MASTER: master}),
        TARRY_BOOTSTRAP_SERVERS=bootstrap,
    )


def _run(directory: Path, program: list[str], **variables: str) -> str:
    done = subprocess.run(
        program,
        env={**bare_environment(directory), **_places(directory), **variables},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
