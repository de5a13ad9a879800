"""The libraries under measurement, and a process for each that answers requests."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, NamedTuple

from timer_java import AS_KAFKA, SERIAL, JavaUnavailable, java_command

HERE: Final = Path(__file__).resolve().parent

# A request that takes longer is given up, and its process ended.
ANSWER_SECONDS_MAX: Final = 150.0

# Ten times as much pending costs that many times as long: caches, and a heap's next level.
GROWTH: Final = 13.0


class Library(NamedTuple):
    """Column.  `form`: that of Tarry's hot modules, or empty; `options`: those of its JVM."""

    key: str
    title: str
    subject: str
    form: str = ""
    options: tuple[str, ...] = ()
    package: str = ""
    makes_tasks: bool = False  # entries or tasks are made before they are added
    pause: str = ""  # what stands for one call of advance
    cancel_growth: float = GROWTH  # ten times as much pending, and cancelled


LIBRARIES: Final = (
    Library("wheel", "TimingWheel, compiled", "wheel", "compiled",
            makes_tasks=True, pause="advance(now, limit=1000)"),
    Library("wheel-lists", "the same, add_all", "wheel-lists", "compiled",
            makes_tasks=True, pause="advance(now, limit=1000)"),
    Library("wheel-interpreted", "TimingWheel, interpreted", "wheel", "interpreted",
            makes_tasks=True, pause="advance(now, limit=1000)"),
    Library("system", "SystemTimer, compiled", "system", "compiled",
            makes_tasks=True),
    Library("asyncio-timer", "AsyncioTimer, compiled", "asyncio-timer", "compiled",
            pause="one turn of the loop"),
    Library("heap", "HeapTimer, compiled", "heap", "compiled",
            makes_tasks=True, pause="advance(now, limit=1000)"),
    Library("rounds", "RoundsTimer, compiled", "rounds", "compiled",
            makes_tasks=True, pause="advance(now, limit=1000)"),
    Library("kafka", "Kafka SystemTimer", "kafka", options=AS_KAFKA,
            makes_tasks=True, pause="one advanceClock, under its lock"),
    Library("kafka-serial", "Kafka, SerialGC", "kafka", options=SERIAL,
            makes_tasks=True, pause="one advanceClock, under its lock"),
    Library("netty", "Netty HashedWheelTimer", "netty", options=SERIAL),
    Library("jdk", "JDK ScheduledThreadPool", "jdk", options=SERIAL),
    Library("asyncio", "asyncio", "asyncio", pause="one turn of the loop"),
    Library("uvloop", "uvloop", "uvloop", package="uvloop", pause="one turn of the loop"),
    Library("sched", "sched", "sched", pause="one run(blocking=False)",
            cancel_growth=130.0),
    Library("apscheduler", "APScheduler", "apscheduler", package="apscheduler",
            pause="one look for due jobs"),
)  # fmt: skip


class LeftOut(Exception):
    """A library that is not measured; the text says why."""


class TookTooLong(Exception):
    """A request was given up."""


def is_tarry(library: Library) -> bool:
    return library.form != ""


def command_of(library: Library) -> list[str]:
    """Return the command of the process that measures this library."""
    if library.options:
        try:
            return java_command(library.subject, library.options)
        except JavaUnavailable as reason:
            raise LeftOut(str(reason)) from None
    if library.package:
        try:
            version(library.package)
        except PackageNotFoundError:
            raise LeftOut(
                f"{library.package} is not installed; `make bench-timer` installs it"
            ) from None
    return [sys.executable, str(HERE / "timer_worker.py"), library.subject]


def environment_of(library: Library) -> dict[str, str]:
    return os.environ | {"TARRY_PURE": "1" if library.form == "interpreted" else "0"}


def check_form(library: Library) -> None:
    """Check the form, which is chosen at import: a compiler may not have been there."""
    code = "import tarry; print(tarry.FORM, tarry.FORM_REASON, sep='|')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment_of(library),
        capture_output=True,
        text=True,
        check=False,
    )
    form, _, reason = done.stdout.strip().partition("|")
    if form != library.form:
        raise LeftOut(f"Tarry runs {form or 'not at all'}: {reason or done.stderr[-300:]}")


class Worker:
    """The process of one library."""

    def __init__(self, library: Library) -> None:
        if is_tarry(library):
            check_form(library)
        self.library = library
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command_of(library),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment_of(library),
        )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)

    def ask(self, *words: object) -> dict[str, Any]:
        """Send a request; return its answer, with the seconds by the clock beside it."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        started = time.monotonic()
        try:
            process.stdin.write((" ".join(map(str, words)) + "\n").encode())
            process.stdin.flush()
        except BrokenPipeError:
            raise LeftOut(self._why_ended()) from None
        if not self._selector.select(ANSWER_SECONDS_MAX):
            self.close()
            raise TookTooLong(f"{self.library.title}: {words[0]} took over {ANSWER_SECONDS_MAX} s")
        line = process.stdout.readline()
        if not line:
            raise LeftOut(self._why_ended())
        answer: dict[str, Any] = json.loads(line)
        answer["wall_s"] = time.monotonic() - started
        return answer

    def close(self) -> None:
        """End the process; it holds nothing that matters."""
        self._process.kill()
        self._process.communicate()
        self._selector.close()
        self._errors.close()

    def _why_ended(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"ended with {self._process.returncode}"
