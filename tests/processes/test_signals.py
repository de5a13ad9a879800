"""Signals to a broker: settings read again, a terminal that closes, what was ignored before."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.broker_process import START_S_MAX, BrokerProcess, wait_until

from tarry.client.sync.admin import Admin

MakeBroker = Callable[[], BrokerProcess]


def broker_of_file(make_broker: MakeBroker, text: str) -> BrokerProcess:
    """A running broker that was given a settings file."""
    broker = make_broker()
    settings_file(broker).write_text(text)
    broker.start(words=[f"--config={settings_file(broker)}"])
    return broker


def settings_file(broker: BrokerProcess) -> Path:
    return broker.directory / "server.properties"


def test_hang_up_reads_the_settings_again_and_applies_what_may_change(
    make_broker: MakeBroker,
) -> None:
    broker = broker_of_file(make_broker, "log.retention.hours=1\nnum.partitions=2\n")
    settings_file(broker).write_text("log.retention.hours=2\nmax.connections=50\nnum.partitions=3")

    broker.send_signal(signal.SIGHUP)

    log = broker.wait_for_log("only after a restart: num.partitions\n")
    assert (
        "settings read again, from now on: log.retention.hours=2 (was 1), max.connections=50\n"
    ) in log
    with Admin(bootstrap_servers=broker.address) as admin:
        entries = {entry.name: entry.value for entry in admin.describe_broker_configs(1)}
    assert entries["log.retention.hours"] == "2"
    assert entries["num.partitions"] == "2"
    broker.stop_cleanly()


def test_a_settings_file_that_went_wrong_changes_nothing_and_is_told(
    make_broker: MakeBroker,
) -> None:
    broker = broker_of_file(make_broker, "log.retention.hours=1\n")
    settings_file(broker).write_text("log.retention.hours=many\n")

    broker.send_signal(signal.SIGHUP)

    log = broker.wait_for_log("settings cannot be read again, those of before stay")
    assert "log.retention.hours=many" in log
    broker.stop_cleanly()


def start_ignoring(number: signal.Signals, broker: BrokerProcess) -> subprocess.Popen[bytes]:
    """Start it as a shell with `trap '' SIGNAL` does, which is what `nohup` is."""
    process = subprocess.Popen(
        ["sh", "-c", f'trap "" {number.name[3:]}; exec "$@"', "sh", *broker.command()],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=broker.directory,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_was_ignored_at_the_start_stays_ignored(
    make_broker: MakeBroker, number: signal.Signals
) -> None:
    process = start_ignoring(number, make_broker())

    process.send_signal(number)
    process.send_signal(number)

    # A signal that is not ignored would have ended it or be answered before this one.
    process.send_signal(signal.SIGTERM)
    assert process.wait(START_S_MAX) == 0
    assert process.stdout is not None
    process.stdout.close()


def test_a_terminal_that_closes_stops_the_broker_cleanly(make_broker: MakeBroker) -> None:
    broker = make_broker()
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.chdir(broker.directory)
            os.execv(sys.executable, broker.command())
        finally:
            os._exit(99)
    shown = b""

    def has_started() -> str:
        nonlocal shown
        shown += os.read(terminal, 4096)
        return "listening" if b"listening at" in shown else ""

    wait_until(has_started, "listening at")
    os.close(terminal)

    with suppress(ChildProcessError):
        assert os.waitpid(pid, 0)[1] == 0
    assert b"tarry produce" in shown  # on a terminal it says what to type next
    assert (broker.directory / "data" / ".tarry_clean_shutdown").exists()


def test_a_service_manager_hears_that_it_serves_and_that_it_stops(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(START_S_MAX)
        manager.bind(str(broker.directory / "notify"))

        broker.start(environment={"NOTIFY_SOCKET": str(broker.directory / "notify")})
        ready = manager.recv(100)
        code = broker.stop()

        assert (ready, manager.recv(100), code) == (b"READY=1", b"STOPPING=1", 0)
