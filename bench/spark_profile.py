"""Profile of one work of both sides: where the CPU goes, and what the threads of tasks wait for.

    python bench/spark_profile.py rows --queries 8

Ours and the connector at its best settings (those that a search has found, else the ones that were
found by hand) do the work one after the other, after as many rounds that warm them up.  CPU time
is taken by process and group of threads, from /proc.  Then the work is done as often again, and
each JVM is asked for the stacks of all threads ten times a second (`jcmd Thread.print`), and each
Python worker by `py-spy dump`, if that is installed and may look.  A stack counts for the first of
its frames that is neither the JDK's nor Spark's own plumbing.  A sample is wall time: of a thread
that waits it says for what.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import peers
from spark_session import Session, fill, topic_on
from spark_settings import AS_IT_COMES, BY_HAND, load
from tests.support.interop.kafka_server import POM, class_path

from processes import below

WORKS: Final = {
    "rows": "rows",
    "parquet": "parquet",
    "archive": "parquet",
    "write": "write",
    "copy": "copy",
}
SAMPLE_SECONDS: Final = 0.1
LINES: Final = 14
# Whole stacks that are printed, and frames of each.
STACKS: Final = 3
STACK_FRAMES: Final = 12
TASK_THREAD: Final = "Executor task launch worker"
# Frames that tell nothing of what a thread is at.
PLUMBING: Final = re.compile(
    r"^(java\.|jdk\.|sun\.|scala\.|org\.apache\.spark\.(util|rdd|scheduler|executor|TaskContext)"
    r"|org\.apache\.spark\.sql\.execution\.(WholeStage|datasources\.v2\.DataSourceRDD))"
)
WAITS: Final = (
    "EPoll.wait",
    "Unsafe.park",
    "Object.wait",
    "Thread.sleep",
    "Net.poll",
    "Net.accept",
)
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


def thread_cpu(root: int) -> Counter[str]:
    """Return CPU seconds below a process, by its kind and the group of the thread."""
    found: Counter[str] = Counter()
    for one in below(root):
        kind = "driver" if one.pid == root else "JVM" if one.name == "java" else "Python worker"
        for entry in Path(f"/proc/{one.pid}/task").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                before, _, behind = entry.read_text().rpartition(")")
                fields = behind.split()
                name = re.sub(r"[-#\s]*\d[\d.\s]*(\(.*)?$", "", before.partition("(")[2]).strip()
                ticks = int(fields[11]) + int(fields[12])
                found[f"{kind}, {name if kind == 'JVM' else 'all'}"] += ticks / _TICKS_PER_SECOND
    return found


def java_places(pid: int) -> list[tuple[str, str]]:
    """Return where the threads that run tasks are, with the whole stack of each."""
    told = subprocess.run(
        ["jcmd", str(pid), "Thread.print"], capture_output=True, text=True, check=False
    ).stdout
    places = []
    for part in told.split("\n\n"):
        if part.lstrip().startswith(f'"{TASK_THREAD}'):
            frames = re.findall(r"^\s+at (?:[\w.@]+/)?([\w.$<>]+)\(", part, re.MULTILINE)
            if frames:
                state = "waits" if any(one in frames[0] for one in WAITS) else "runs"
                known = (one for one in frames if not PLUMBING.match(one))
                place = f"{state}: {next(known, frames[-1])}"
                places.append((place, " < ".join(frames[:STACK_FRAMES])))
    return places


def python_places(pid: int) -> list[tuple[str, str]]:
    """Return where the threads of a Python worker are; nothing if py-spy may not look."""
    spy = shutil.which("py-spy", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if spy is None:
        return []
    told = subprocess.run(
        [spy, "dump", "--nonblocking", "--pid", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    places = []
    for part in told.split("\n\n"):
        frames = re.findall(r"^ {4}(\S+ \([^():]*)", part, re.MULTILINE)
        if part.startswith("Thread") and frames:
            if "manager (daemon.py" in frames[0]:
                # It only starts the others.
                continue
            state = "waits" if "(idle)" in part else "runs"
            stack = " < ".join(f"{one})" for one in frames[:STACK_FRAMES])
            places.append((f"{state}: {frames[0]})", stack))
    return places


class Sampler:
    """Samples of one session, taken by a thread of its own while a work runs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        # By place and whole stack.
        self.java: Counter[tuple[str, str]] = Counter()
        self.python: Counter[tuple[str, str]] = Counter()

    @contextlib.contextmanager
    def sampling(self) -> Iterator[None]:
        """Take samples while the context lasts."""
        self._ended.clear()
        thread = threading.Thread(target=self._sample)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            for one in below(self._pid):
                if one.name == "java":
                    self.java.update(java_places(one.pid))
                elif one.pid != self._pid:
                    self.python.update(python_places(one.pid))


def tell(title: str, counts: Counter[str], unit: str) -> None:
    """Print the largest shares of a whole."""
    whole = counts.total()
    print(f"\n{title}: {whole:.1f} {unit}" if unit == "s" else f"\n{title}: {whole:.0f} {unit}")
    for name, count in counts.most_common(LINES):
        if count:
            print(f"  {100 * count / whole:5.1f} %  {name}")
    sys.stdout.flush()


def tell_samples(title: str, samples: Counter[tuple[str, str]]) -> None:
    """Print the most frequent places, and how the most frequent one comes about."""
    places: Counter[str] = Counter()
    for (place, _), count in samples.items():
        places[place] += count
    tell(title, places, "samples")
    for (place, stack), count in samples.most_common(STACKS):
        print(f"\n  {count} times {place}\n    {stack}")
    sys.stdout.flush()


def profile(session: Session, work: str, order: dict[str, object], queries: int) -> None:
    """Profile a work in a warm session."""
    cpu = thread_cpu(session.pid)
    rows = seconds = 0.0
    for _ in range(queries):
        figures = session.do(work, **order)
        if figures is None:
            raise SystemExit(session.ended)
        rows, seconds = rows + figures["rows"], seconds + figures["s"]
    spent = thread_cpu(session.pid)
    spent.subtract(cpu)
    rate, cores = rows / seconds / 1e6, spent.total() / seconds
    print(f"\n## {session.name}: {work}, {rate:.2f} M rows/s, {cores:.2f} cores busy")
    tell("CPU by threads that are still there", spent, "s")
    # Once more, as the samples cost time.
    sampler = Sampler(session.pid)
    with sampler.sampling():
        for _ in range(queries):
            session.do(work, **order)
    tell_samples("stacks of the JVM's task threads", sampler.java)
    if sampler.python:
        tell_samples("stacks of Python workers", sampler.python)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--queries", type=int, default=10, help="how often the work is done")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--on-kafka", action="store_true", help="against Apache Kafka, not Tarry")
    parser.add_argument(
        "--as-it-comes", action="store_true", help="the connector without any setting"
    )
    arguments = parser.parse_args()
    jars = class_path(POM.with_name("spark-pom.xml"))
    print(peers.machine(), flush=True)
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        start = peers.kafka if arguments.on_kafka else peers.tarry
        broker = stack.enter_context(start(directory, {}))
        found = load(broker.name, 0)
        settings = BY_HAND if found is None else found.settings
        if arguments.as_it_comes:
            settings = AS_IT_COMES
        print(*settings.lines(), sep="\n", flush=True)
        topic, to = (stack.enter_context(topic_on(broker)) for _ in range(2))
        fill(broker, topic, arguments.rows)
        order = {"address": broker.address, "topic": topic, "to": to, "rows": arguments.rows}
        ours = Session("tarry", "tarry", "")
        theirs = Session("the connector", "kafka", jars, settings)
        for session, work in ((ours, arguments.work), (theirs, WORKS[arguments.work])):
            stack.callback(session.end)
            for _ in range(arguments.queries):
                session.do(work, **order)
            profile(session, work, order, arguments.queries)


if __name__ == "__main__":
    main()
