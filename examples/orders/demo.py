"""A day of orders through the whole pipeline: `make spark-demo`.

A fresh broker gets a seeded day of orders.  A group of readers loses members meanwhile.  The
pipeline of `orders.toml` runs over the day; its driver is killed in the middle and started again.
Then an auditor counts everything, and the reports are written.  Nothing outside of the directory is
touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from audit import Auditor
from day import Day

from tarry.client import LATEST, Admin, NewTopic, Producer

HERE: Final = Path(__file__).resolve().parent
TARRY: Final = Path(sys.executable).with_name("tarry")
FILES: Final = ("orders.toml", "order.json")

PARTITIONS: Final = 4
MEMBERS: Final = 3
WAIT_SECONDS_MAX: Final = 240


def tell(sentence: str) -> None:
    print(sentence, flush=True)


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
        first = process.stdout.readline()
        port = first.partition(";")[0].rpartition(":")[2].strip()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def send(bootstrap: str, day: Day) -> None:
    """Send the day in its order, with its times."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic("orders", PARTITIONS)])
    with Producer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
        for event in day.events:
            producer.send("orders", event.value, key=event.key, timestamp=event.at_ms)


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


def start_pipeline(directory: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start the pipeline in a session of its own, so that a kill takes all its processes."""
    command = [str(TARRY), "spark", "run", "orders.toml", "--once", *words]
    tell(f"$ tarry {' '.join(command[1:])}")
    return subprocess.Popen(command, cwd=directory, start_new_session=True)


def kill_in_the_middle(directory: Path, bootstrap: str, enough: int) -> None:
    """Kill the driver, its JVM and its workers as soon as some of the day went through."""
    process = start_pipeline(directory)
    ends_at = time.monotonic() + WAIT_SECONDS_MAX
    try:
        while records_in(bootstrap, "orders.clean") < enough:
            if process.poll() is not None:
                raise SystemExit(f"the pipeline ended by itself, with {process.returncode}")
            if time.monotonic() > ends_at:
                raise SystemExit("the pipeline wrote nothing in time: is the machine very busy?")
            time.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    tell(f"killed with {records_in(bootstrap, 'orders.clean')} records in orders.clean")


def audit(bootstrap: str, directory: Path, day: Day) -> bool:
    """Print every check; return true if all of them hold."""
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
    (directory / "reports").mkdir(parents=True)
    for name in FILES:
        shutil.copy(HERE / name, directory / name)
    day = Day(seed, orders)
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
        process = start_pipeline(directory)
        if process.wait() != 0:
            raise SystemExit(f"the pipeline ended with {process.returncode}")
        readers.lose_one()
        run("spark", "verify", "lake/orders", cwd=directory)
        is_well = audit(bootstrap, directory, day)
        reports(directory)
    tell(f"\nreports: {directory / 'reports'}; archive: {directory / 'lake' / 'orders'}")
    tell(f"{'all is well' if is_well else 'something is WRONG'}, {time.monotonic() - began:.0f} s")
    return is_well


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", type=Path, default=Path("tarry-demo"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--orders", type=int, default=15_000, help="about 2.9 events each")
    arguments = parser.parse_args()
    directory = arguments.directory.absolute()
    if directory.exists():
        raise SystemExit(f"{directory} is there already: remove it, or name another --directory")
    if not demo(directory, arguments.seed, arguments.orders):
        sys.exit(1)


if __name__ == "__main__":
    main()
