"""A day of orders through the whole pipeline: `make spark-demo`.

A fresh broker gets a seeded day of orders.  A group of readers loses members meanwhile.  The
pipeline of `orders.toml` runs over the day; its driver is killed in the middle and started again.
Then an auditor counts everything, and the reports are written.  Nothing outside of the directory is
touched.  What is left of a demo that did not come to its end is removed by the next one.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from day import Day, headers_of

from tarry.client import LATEST, Admin, NewTopic, Producer

HERE: Final = Path(__file__).resolve().parent
TARRY: Final = Path(sys.executable).with_name("tarry")
FILES: Final = ("orders.toml", "order.json")
# What a demo makes in its directory; one with anything else in it is never removed.
UNDER_WAY: Final = "demo-under-way"
MADE: Final = frozenset((*FILES, UNDER_WAY, "broker.log", "data", "lake", "reports"))

PARTITIONS: Final = 4
MEMBERS: Final = 3
# Micro-batches at least, so that a driver can be killed between two of them.
BATCHES_MIN: Final = 4
WAIT_SECONDS_MAX: Final = 600
LAST_WORDS: Final = 20


def tell(sentence: str) -> None:
    print(sentence, flush=True)


def check_installed() -> None:
    """End with a sentence if PySpark, Java or the libraries of reports are missing."""
    try:
        from tarry.spark import installed
        from tarry.spark.reports.installed import load_altair, load_scripts
    except ImportError:
        raise SystemExit(
            'the demo needs PySpark: pip install "tarry[spark]", or call make spark-demo'
        ) from None
    try:
        installed.check_pyspark()
        installed.check_spark_home()
        installed.check_java()
        installed.check_python(os.environ.get("PYSPARK_PYTHON", sys.executable))
        load_altair()
        load_scripts()
    except (ImportError, RuntimeError) as error:
        raise SystemExit(f"the demo cannot run: {error}") from None


# --- The directory


@contextmanager
def taken(directory: Path) -> Iterator[None]:
    """Make the directory for a demo; while the block runs a file in it says so.

    What is left of a demo that did not come to its end is removed, and nothing else.  The file
    goes at the end of a block that raises nothing.
    """
    refusal = f"{directory} is there already: remove it, or name another --directory"
    marker = directory / UNDER_WAY
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise SystemExit(refusal)
    directory.mkdir(parents=True, exist_ok=True)
    found = {path.name for path in directory.iterdir()}
    if found and (UNDER_WAY not in found or not found <= MADE):
        raise SystemExit(refusal)
    with ExitStack() as held:
        try:
            file = held.enter_context(marker.open("r+" if found else "x"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, FileExistsError):
            raise SystemExit(
                f"a demo runs in {directory}: let it come to its end, or name another --directory"
            ) from None
        except FileNotFoundError:
            raise SystemExit(refusal) from None
        if not marker.exists():
            # Its demo came to its end meanwhile.
            raise SystemExit(refusal)
        if found:
            tell(f"removing what is left in {directory} of a demo that did not come to its end")
        for name in sorted(found - {UNDER_WAY}):
            path = directory / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        yield
        marker.unlink()


def fill(directory: Path, events: int) -> None:
    """Copy the pipeline's files; a small day gets small micro-batches."""
    (directory / "reports").mkdir()
    for name in FILES:
        shutil.copy(HERE / name, directory / name)
    path = directory / "orders.toml"
    plain = path.read_text()
    rate = min(8_000, events // BATCHES_MIN + 1)
    path.write_text(plain.replace("rate = 8_000", f"rate = {rate:_}"))


def run(*words: str, cwd: Path) -> None:
    """Run a command of `tarry`, shown as it is."""
    tell(f"$ tarry {' '.join(words)}")
    subprocess.run([str(TARRY), *words], cwd=cwd, check=True)


# --- The broker, and what it holds


@contextmanager
def broker(directory: Path) -> Iterator[str]:
    """Start a fresh broker that tells of itself; yield its address."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory / "data"),
        "events.enable": "true",
        "events.interval.ms": "1000",
        "group.min.session.timeout.ms": "1000",
        # The day is an old one.
        "log.retention.ms": "-1",
    }
    words = [f"--set={key}={value}" for key, value in settings.items()]
    with (directory / "broker.log").open("w") as log:
        process = subprocess.Popen(
            [str(TARRY), "serve", *words], stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            if not first:
                raise SystemExit(no_broker(directory / "broker.log", process.wait()))
            port = first.partition(";")[0].rpartition(":")[2].strip()
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def no_broker(log: Path, status: int) -> str:
    """Say why there is no broker, by its own last words."""
    words = log.read_text(errors="replace").strip().splitlines()[-LAST_WORDS:]
    said = "\n".join(f"  {line}" for line in words) or "  nothing"
    return f"tarry serve did not start (exit status {status}); its last words:\n{said}"


def send(bootstrap: str, day: Day) -> None:
    """Send the day in its order, with its times."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic("orders", PARTITIONS)])
    with Producer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
        for number, event in enumerate(day.events):
            headers = headers_of(number)
            producer.send(
                "orders", event.value, key=event.key, timestamp=event.at_ms, headers=headers
            )


class Readers:
    """Group of readers, whose members die now and then."""

    def __init__(self, bootstrap: str) -> None:
        self._words = [
            *("consume", "orders", "--group", "billing", "--follow", "-b", bootstrap),
            *("-X", "session.timeout.ms=2000", "-X", "heartbeat.interval.ms=500"),
        ]
        self._members = [self._start() for _ in range(MEMBERS)]
        self.died = 0

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(TARRY), *self._words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def lose_one(self) -> None:
        """Kill a member, and let another one come for it."""
        self._members.pop(0).kill()
        self._members.append(self._start())
        self.died += 1

    def end(self) -> None:
        for one in self._members:
            one.terminate()
        for one in self._members:
            one.wait()


# --- The pipeline


def records_in(bootstrap: str, topic: str) -> int:
    """Count the offsets of a topic; 0 if it is not there."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        found = admin.find_topics([topic])
        if topic not in found:
            return 0
        wanted = {(topic, index): LATEST for index in found[topic].partitions}
        return sum(one.offset for one in admin.offsets(wanted).values())


@contextmanager
def pipeline(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the pipeline in a session of its own, so that a kill takes all its processes; what
    runs at the end of the block is killed."""
    command = [str(TARRY), "spark", "run", "orders.toml", "--once"]
    tell(f"$ tarry {' '.join(command[1:])}")
    process = subprocess.Popen(command, cwd=directory, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def kill_in_the_middle(directory: Path, bootstrap: str, enough: int) -> None:
    """Kill the driver, its JVM and its workers as soon as some of the day went through."""
    ends_at = time.monotonic() + WAIT_SECONDS_MAX
    with pipeline(directory) as process:
        while records_in(bootstrap, "orders.clean") < enough:
            if process.poll() is not None:
                raise SystemExit(f"the pipeline ended by itself, with {process.returncode}")
            if time.monotonic() > ends_at:
                raise SystemExit("the pipeline wrote nothing in time: is the machine very busy?")
            time.sleep(0.05)
    tell(f"killed with {records_in(bootstrap, 'orders.clean')} records in orders.clean")


def run_to_its_end(directory: Path) -> None:
    with pipeline(directory) as process:
        if process.wait() != 0:
            raise SystemExit(f"the pipeline ended with {process.returncode}")


def audit(bootstrap: str, directory: Path, day: Day) -> bool:
    """Print every check; return true if all of them hold."""
    from audit import Auditor

    is_well = True
    for check in Auditor(bootstrap, directory / "lake" / "orders").checks(day.truth):
        tell(f"{'well ' if check.is_well else 'WRONG'}  {check.sentence}: {check.found}")
        is_well = is_well and check.is_well
    return is_well


def reports(directory: Path) -> None:
    for name in ("waits", "rebalances", "lag"):
        run("spark", name, "--html", f"reports/{name}.html", cwd=directory)
    progress = "lake/checkpoints/orders/_pipeline/progress.jsonl"
    run("spark", "health", progress, "--html", "reports/health.html", cwd=directory)


def demo(directory: Path, seed: int, orders: int) -> bool:
    began = time.monotonic()
    day = Day(seed, orders)
    fill(directory, day.truth.events)
    with ExitStack() as stack:
        bootstrap = stack.enter_context(broker(directory))
        os.environ["TARRY_BOOTSTRAP_SERVERS"] = bootstrap
        tell(f"a broker on {bootstrap}, its data in {directory / 'data'}")
        send(bootstrap, day)
        tell(f"sent {day.truth.events} events of {orders} orders (seed {seed})")
        readers = Readers(bootstrap)
        stack.callback(readers.end)
        kill_in_the_middle(directory, bootstrap, day.truth.events // 3)
        readers.lose_one()
        run_to_its_end(directory)
        readers.lose_one()
        run("spark", "verify", "lake/orders", cwd=directory)
        is_well = audit(bootstrap, directory, day)
        reports(directory)
    tell(f"\nreports: {directory / 'reports'}; archive: {directory / 'lake' / 'orders'}")
    told = "all is well" if is_well else "something is WRONG"
    tell(f"{told}; the demo took {time.monotonic() - began:.0f} s")
    return is_well


def end_at_once(number: int, frame: FrameType | None) -> None:
    """End as after Ctrl-C, so that no process of the demo is left over."""
    sys.exit(128 + number)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", type=Path, default=Path("tarry-demo"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--orders", type=int, default=15_000, help="about 2.9 events each")
    arguments = parser.parse_args()
    directory = arguments.directory.absolute()
    check_installed()
    signal.signal(signal.SIGTERM, end_at_once)
    try:
        with taken(directory):
            is_well = demo(directory, arguments.seed, arguments.orders)
    except KeyboardInterrupt:
        raise SystemExit("interrupted: the next demo removes what is left of this one") from None
    except subprocess.CalledProcessError as error:
        words = " ".join(["tarry", *error.cmd[1:]])
        raise SystemExit(f"{words} ended with {error.returncode}") from None
    if not is_well:
        sys.exit(1)


if __name__ == "__main__":
    main()
