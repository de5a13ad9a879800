"""`tarry serve` as its user meets it: first line, refusals, settings, signals."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.patience import PATIENCE_S

from tarry.base.listeners import host_and_port
from tarry.protocol.api_keys import METADATA
from tarry.protocol.frames import encode_request
from tarry.protocol.headers import decode_response_header
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    decode_metadata_response,
)
from tarry.wire.reader import Reader

MakeBroker = Callable[[], BrokerProcess]

METADATA_VERSION = 12

SERVER_PROPERTIES = """
process.roles=broker,controller
node.id=7
controller.quorum.bootstrap.servers=localhost:19093
listeners=PLAINTEXT://:0,CONTROLLER://:19093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:0,CONTROLLER://localhost:19093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
log.dirs=./kraft-combined-logs
num.partitions=1
offsets.topic.replication.factor=1
log.retention.hours=168
log.segment.bytes=1073741824
"""


def run_serve(
    directory: Path,
    *words: str,
    environment: dict[str, str] | None = None,
    descriptors_max: int | None = None,
) -> tuple[int, str]:
    """A start that is to be refused: exit code and standard error output."""

    limit = f"ulimit -n {descriptors_max}; " if descriptors_max else ""
    done = subprocess.run(
        ["sh", "-c", f'{limit}exec "$@"', "sh", sys.executable, "-m", "tarry", "serve", *words],
        cwd=directory,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == ""
    # Said once more by every process while sources are newer than their compiled form.
    lines = [line for line in done.stderr.splitlines(True) if "after the build" not in line]
    return done.returncode, "".join(lines)


def assert_one_sentence(error: str) -> None:
    assert error.startswith("tarry: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error


def ask_metadata(peer: socket.socket) -> MetadataResponse:
    request = MetadataRequest(topics=[])
    peer.sendall(encode_request(METADATA, METADATA_VERSION, 5, "test", request))
    (size,) = struct.unpack(">i", read_exactly(peer, 4))
    reader = Reader(read_exactly(peer, size))
    assert decode_response_header(reader, METADATA, METADATA_VERSION) == 5
    return decode_metadata_response(reader, METADATA_VERSION)


def read_exactly(peer: socket.socket, size: int) -> bytes:
    data = peer.recv(size, socket.MSG_WAITALL)
    assert len(data) == size
    return data


def connect(port: int, host: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((host, port), PATIENCE_S)


def test_without_a_terminal_the_first_line_names_the_address_alone(broker: BrokerProcess) -> None:
    assert broker.first_line == f"Tarry is ready at {broker.address}"
    assert broker.port > 0


def test_a_quick_start_names_the_next_command_wherever_it_runs(make_broker: MakeBroker) -> None:
    broker = make_broker()
    broker.start(words=["--quick-start"])

    assert broker.first_line == (
        f"Tarry is ready at {broker.address}; try tarry produce and tarry consume in another "
        "terminal:"
    )


def test_the_log_tells_the_start_and_the_stop(broker: BrokerProcess) -> None:
    first = broker.wait_for_log("listening at")
    broker.stop()
    broker.start()
    second = broker.wait_for_log("the last stop was clean")

    assert f"data in {broker.directory / 'data'}, " in first
    assert f"listening at PLAINTEXT://{broker.address}\n" in first
    assert "tarry.broker: logs opened: 1\n" in first
    assert "tarry.runtime: stopping" in second
    assert "tarry.cli: stopped cleanly\n" in second


def test_the_log_tells_what_recovery_read_after_a_kill(broker: BrokerProcess) -> None:
    broker.kill()

    broker.start()

    log = broker.wait_for_log("the last stop was not clean")
    assert "bytes beyond the recovery points read again" in log


def test_a_client_is_told_the_address_it_can_come_back_to(broker: BrokerProcess) -> None:
    with connect(broker.port) as peer:
        (node,) = ask_metadata(peer).brokers

    assert (node.host, node.port, node.node_id) == ("127.0.0.1", broker.port, 1)


def test_data_goes_into_tarry_data_of_the_current_directory(make_broker: MakeBroker) -> None:
    broker = make_broker()
    del broker.texts["log.dirs"]

    broker.start()

    assert (broker.directory / "tarry-data").is_dir()
    for path in (broker.directory / "tarry-data").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_second_broker_on_the_directory_is_refused(broker: BrokerProcess) -> None:
    code, error = run_serve(broker.directory, f"--set=log.dirs={broker.texts['log.dirs']}")

    assert code == 3
    assert_one_sentence(error)
    assert f"another broker (process {broker.pid}) uses the directory" in error


def test_a_taken_port_is_refused(broker: BrokerProcess, tmp_path: Path) -> None:
    code, error = run_serve(tmp_path, f"--set=listeners=PLAINTEXT://{broker.address}")

    assert code == 3
    assert_one_sentence(error)
    assert f"{broker.address} is taken by another program" in error


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    code, error = run_serve(tmp_path, "--set=log.dirs=/dev/null/data")

    assert code == 3
    assert_one_sentence(error)


def test_data_of_a_newer_format_is_refused(broker: BrokerProcess) -> None:
    broker.stop()
    (broker.directory / "data" / ".tarry_format").write_text("99\n")

    code, error = run_serve(broker.directory, "--set=log.dirs=data")

    assert code == 3
    assert_one_sentence(error)
    assert "written by a newer Tarry" in error


def test_too_few_file_descriptors_are_refused(tmp_path: Path) -> None:
    code, error = run_serve(tmp_path, descriptors_max=200)

    assert code == 3
    assert_one_sentence(error)
    assert "may open 200 files" in error


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--set", "log.dris=/x"], "did you mean log.dirs?"),
        (["--set", "log.dirs=/a,/b"], "one directory"),
        (["--set", "num.partitions=many"], "whole number"),
        (["--set", "num.partitions"], "write key=value"),
        (["--set", "listeners=PLAINTEXT://0.0.0.0:9092"], "write advertised.listeners="),
        (["--set", "listeners=SASL_SSL://localhost:9092"], "not supported"),
        (["--config", "missing.properties"], "missing.properties cannot be read"),
    ],
)
def test_a_wrong_setting_is_refused_as_wrong_usage(
    tmp_path: Path, words: list[str], expected: str
) -> None:
    code, error = run_serve(tmp_path, *words)

    assert code == 2
    assert_one_sentence(error)
    assert expected in error
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_in_the_environment_is_refused(tmp_path: Path) -> None:
    code, error = run_serve(tmp_path, environment={"TARRY_LOG_DRIS": "/x"})

    assert code == 2
    assert "did you mean log.dirs?" in error


def test_a_server_properties_of_kafka_serves_and_is_told_what_it_does_not_do(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker()
    broker.texts = {"listeners": "PLAINTEXT://:0,CONTROLLER://:19093"}
    (broker.directory / "server.properties").write_text(SERVER_PROPERTIES)

    broker.start(environment={"TARRY_CONFIG": "server.properties"})
    with connect(broker.port) as peer:
        (node,) = ask_metadata(peer).brokers

    assert (node.host, node.port, node.node_id) == ("localhost", broker.port, 7)
    assert (broker.directory / "kraft-combined-logs").is_dir()
    # A thread of the broker writes the lines.
    log = broker.wait_for_log("this broker is open to everybody who can reach")
    unused, is_open = [line for line in log.splitlines() if " WARNING " in line]
    for name in ("process.roles", "num.io.threads", "CONTROLLER"):
        assert name in unused
    assert "this broker is open to everybody who can reach" in is_open


def test_the_environment_is_over_the_file_and_set_over_both(make_broker: MakeBroker) -> None:
    broker = make_broker()
    del broker.texts["log.dirs"]
    (broker.directory / "file").write_text("log.dirs=from-file\nnode.id=1\nbroker.rack=file\n")

    broker.start(
        {"node.id": "3"},
        environment={
            "TARRY_CONFIG": "file",
            "TARRY_LOG_DIRS": "from-environment",
            "TARRY_NODE_ID": "2",
        },
    )
    with connect(broker.port) as peer:
        (node,) = ask_metadata(peer).brokers

    assert (node.node_id, node.rack) == (3, "file")
    assert (broker.directory / "from-environment").is_dir()
    assert not (broker.directory / "from-file").exists()


def test_one_broker_is_reached_under_two_advertised_names(make_broker: MakeBroker) -> None:
    broker = make_broker()
    broker.start(
        {
            "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://localhost:0",
            "advertised.listeners": "OUTSIDE://localhost:0",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        }
    )

    with connect(broker.port) as peer:
        (inside,) = ask_metadata(peer).brokers
    # Who came in by one name is told that name, and reaches the broker by it again.
    outside_port = outside_port_of(broker)
    with connect(outside_port, "localhost") as peer:
        (outside,) = ask_metadata(peer).brokers
    assert (inside.host, inside.port) == ("127.0.0.1", broker.port)
    assert (outside.host, outside.port) == ("localhost", outside_port)
    with connect(outside.port, outside.host) as peer:
        assert ask_metadata(peer).brokers[0].node_id == inside.node_id


def outside_port_of(broker: BrokerProcess) -> int:
    """The other port that the process listens on."""
    inodes = set()
    for path in Path(f"/proc/{broker.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the broker has closed it meanwhile
            name = os.readlink(path)
            if name.startswith("socket:"):
                inodes.add(name[8:-1])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ports = [int(row[1].split(":")[1], 16) for row in rows if row[9] in inodes and row[3] == "0A"]
    (other,) = [port for port in ports if port != broker.port]
    return other


def test_ipv6_is_served(make_broker: MakeBroker) -> None:
    broker = make_broker()
    broker.start({"listeners": "PLAINTEXT://[::1]:0"})

    with connect(broker.port, "::1") as peer:
        (node,) = ask_metadata(peer).brokers

    assert host_and_port(node.host, node.port) == f"[::1]:{broker.port}"


def test_log_lines_can_be_json(make_broker: MakeBroker) -> None:
    broker = make_broker()
    broker.start({"logging.format": "json", "num.io.threads": "8"})

    log = broker.wait_for_log("num.io.threads")
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]

    assert lines[0]["level"] == "warning"
    assert "num.io.threads" in lines[0]["message"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(broker: BrokerProcess, number: signal.Signals) -> None:
    with connect(broker.port) as peer:
        ask_metadata(peer)

        code = broker.stop(number)

        assert peer.recv(100) == b""
    # A broker that does not finish within five seconds ends with 1.
    assert code == 0
    assert "Traceback" not in broker.log()


def test_it_starts_again_after_a_stop_and_after_a_kill(broker: BrokerProcess) -> None:
    with connect(broker.port) as peer:
        cluster_id = ask_metadata(peer).cluster_id

    broker.stop()
    broker.start()
    broker.kill()
    broker.start()

    with connect(broker.port) as peer:
        assert ask_metadata(peer).cluster_id == cluster_id


def test_a_broker_that_was_stopped_for_a_while_keeps_its_connections(
    broker: BrokerProcess,
) -> None:
    with connect(broker.port) as peer:
        ask_metadata(peer)
        broker.send_signal(signal.SIGSTOP)
        time.sleep(2.5)  # longer than the second that counts as a stall
        broker.send_signal(signal.SIGCONT)

        ask_metadata(peer)

    broker.wait_for_log("the process did not run for")


def test_a_closed_standard_error_output_does_not_stop_it(make_broker: MakeBroker) -> None:
    broker = make_broker()
    process = subprocess.Popen(
        broker.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=broker.directory
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        port = int(process.stdout.readline().decode().split(";")[0].rpartition(":")[2])
        process.stderr.close()

        for _ in range(3):
            with connect(port) as foreign:
                foreign.sendall(b"GET / HTTP/1.1\r\n\r\n")
                assert foreign.recv(100) == b""
        with connect(port) as peer:
            ask_metadata(peer)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.slow
def test_it_is_ready_with_little_work_and_small(make_broker: MakeBroker) -> None:
    works = []
    for _ in range(5):
        broker = make_broker()
        broker.start()
        works.append(cpu_seconds(broker.pid))
        rss = resident_bytes(broker.pid)
        broker.close()

    # The README's figure is 0.3 s on the clock of a quiet machine; tests share theirs.
    assert min(works) < 0.6
    assert rss <= 40 * 1024 * 1024


def cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        pytest.skip("no /proc here")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except FileNotFoundError:
        pytest.skip("no /proc here")
    return pages * resource.getpagesize()
