"""The commands topics, produce, consume and describe, against Apache Kafka and against Tarry."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.cli.forked import ForkedCommand
from tests.support.interop.both_brokers import KafkaConnection, wait_until_led
from tests.support.patience import PATIENCE_S, tries

ANSWER_SECONDS_MAX = PATIENCE_S


class Cli:
    """Runs the command against one cluster; topics get names of their own."""

    def __init__(self, address: str, forked: ForkedCommand | None = None) -> None:
        self.address = address
        self.made = 0
        self._forked = forked

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "TARRY_BOOTSTRAP_SERVERS": self.address}

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "tarry", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
        )

    def run(self, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        assert self._forked is not None
        return self._forked.run(arguments, data, self.environment)

    def ok(self, *arguments: str, data: bytes = b"") -> bytes:
        done = self.run(*arguments, data=data)
        assert done.returncode == 0, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        return done.stdout

    def topic(self, *arguments: str) -> str:
        self.made += 1
        # Other modules make topics on the same Apache Kafka.
        name = f"{type(self).__name__.lower()}-{os.getpid()}-{self.made}"
        self.ok("topics", "create", name, *arguments)
        # Apache Kafka's broker hears of it behind its controller's answer.
        with contextlib.closing(KafkaConnection(self.address)) as connection:
            wait_until_led(connection.ask, name)
        return name

    def until(self, is_so: Callable[[bytes], bool], *arguments: str) -> bytes:
        """What a command prints once that is so: Apache Kafka's broker hears of a change behind its
        controller's answer."""
        for _ in tries():
            printed = self.ok(*arguments)
            if is_so(printed):
                break
        return printed


@pytest.fixture(scope="module", params=["kafka", "tarry"])
def cli(request: pytest.FixtureRequest, forked: ForkedCommand) -> Cli:
    if request.param == "kafka":
        return Cli(request.getfixturevalue("apache_kafka"), forked)
    broker: BrokerProcess = request.getfixturevalue("shared_broker")
    return Cli(broker.address, forked)


# --- Records in and out


def test_lines_come_back_as_they_went(cli: Cli) -> None:
    topic = cli.topic("-p", "1")
    lines = b"".join(b"%d line with \xff\x00 bytes\r\n" % number for number in range(5_000))

    cli.ok("produce", topic, data=lines)

    assert cli.ok("consume", topic) == lines


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_comes_back(cli: Cli, codec: str) -> None:
    topic = cli.topic("-p", "1")
    lines = b"".join(b"line %d of many that are alike\n" % number for number in range(3_000))

    cli.ok("produce", topic, "-z", codec, data=lines)

    assert cli.ok("consume", topic) == lines


def test_files_come_back_byte_for_byte(cli: Cli, tmp_path: Path) -> None:
    topic = cli.topic("-p", "1")
    contents = [os.urandom(900_000), b"", bytes(range(256)) * 10]
    for number, content in enumerate(contents):
        (tmp_path / f"{number}").write_bytes(content)

    cli.ok("produce", topic, "--whole", *[str(tmp_path / f"{n}") for n in range(3)])

    for number, content in enumerate(contents):
        assert cli.ok("consume", topic, "-o", f"{number}", "-c", "1", "-D", "") == content


def test_keys_nulls_and_headers_are_kept(cli: Cli) -> None:
    topic = cli.topic("-p", "1")

    cli.ok(
        "produce", topic, "-K:", "-Z", "-H", "kind=new", "-H", "empty=", data=b"a:1\nb:\n:3\nx\n"
    )

    assert cli.ok("consume", topic, "-Z", "-f", "%o %k=%s (%K,%S) %h\\n") == (
        b"0 a=1 (1,1) kind=new,empty=\n"
        b"1 b=NULL (1,-1) kind=new,empty=\n"
        b"2 NULL=3 (-1,1) kind=new,empty=\n"
        b"3 NULL=x (-1,1) kind=new,empty=\n"
    )


def test_the_same_key_goes_to_the_same_partition(cli: Cli) -> None:
    topic = cli.topic("-p", "5")

    cli.ok("produce", topic, "-K:", data=b"foobar:1\n21:2\nfoobar:3\n")

    # Java's murmur2: "foobar" is partition 6 of 10 and so 1 of 5, "21" is 3 % 5 of its own.
    places = cli.ok("consume", topic, "-f", "%k %p\\n").splitlines()
    assert places.count(b"foobar 1") == 2


def test_json_copies_a_topic_with_keys_headers_and_times(cli: Cli) -> None:
    source, copy = cli.topic("-p", "1"), cli.topic("-p", "1")
    cli.ok("produce", source, "-K:", "-H", "h=1", data=b"k:v\n\xff\xfe:\xfd\n:\n")
    layout = "%k|%s|%h|%T\\n"

    printed = cli.ok("consume", source, "--json")
    cli.ok("produce", copy, "--json", data=printed)

    assert [json.loads(line)["offset"] for line in printed.splitlines()] == [0, 1, 2]
    assert cli.ok("consume", copy, "-f", layout) == cli.ok("consume", source, "-f", layout)


def test_a_failure_says_how_many_records_are_in_the_log(cli: Cli, tmp_path: Path) -> None:
    topic = cli.topic("-p", "1")
    good = tmp_path / "good.txt"
    good.write_text("1\n2\n")

    absent = cli.run("produce", topic, str(good), str(tmp_path / "absent.txt"))
    broken = cli.run("produce", topic, "--json", data=b'{"value":"3"}\n{"value":"4"}\n{"value"\n')

    assert absent.returncode == 2
    assert b"absent.txt: No such file or directory; nothing was sent" in absent.stderr
    assert broken.returncode == 1
    assert b"stdin line 3: not valid JSON" in broken.stderr
    assert b"2 records were sent and acknowledged" in broken.stderr
    assert cli.ok("consume", topic) == b"3\n4\n"


def test_templates_forms_and_csv_go_both_ways(cli: Cli) -> None:
    # By default the records are too old to be kept, whenever the broker looks at their age.
    topic, other, copy = (cli.topic("-p", "2", "-c", "retention.ms=-1") for _ in range(3))
    lines = f"{topic} 1 1763712000000 7=seven\n{other} 0 1763712000001 8=a,b\n".encode()
    layout = "%t %p %T %k=%s\n"

    cli.ok("produce", topic, "-f", layout, "--key-format", "int32", data=lines)
    printed = [
        cli.ok("consume", one, "-f", layout, "--key-format", "int32") for one in (topic, other)
    ]
    rows = cli.ok("consume", topic, other, "--csv", "--key-format", "hex")
    cli.ok("produce", copy, "--csv", "--key-format", "hex", data=rows)
    copied = cli.ok("consume", copy, "-f", "%T %k=%s\n", "--key-format", "int32")

    assert b"".join(printed) == lines
    assert sorted(copied.splitlines()) == [b"1763712000000 7=seven", b"1763712000001 8=a,b"]


def test_ranges_patterns_and_searches_choose_records(cli: Cli) -> None:
    topic = cli.topic("-p", "2")
    for partition in range(2):
        data = b"".join(b"k%d:v%d%d\n" % (n, partition, n) for n in range(10))
        cli.ok("produce", topic, "-K:", "-p", f"{partition}", data=data)

    ranges = cli.ok("consume", topic, "-o", "0=2..4,1=-2..")
    searched = cli.ok("consume", f"^{topic}$", "--grep", "v.3|k5", "-K", " ")
    keys = cli.ok("consume", topic, "-p", "0", "-c", "2", "--grep-key", "[67]", "--only", "key")

    assert sorted(ranges.split()) == [b"v02", b"v03", b"v18", b"v19"]
    assert sorted(searched.splitlines()) == [b"k3 v03", b"k3 v13", b"k5 v05", b"k5 v15"]
    assert keys == b"k6\nk7\n"


def test_a_member_reads_several_topics_and_commits_past_what_a_search_left_out(cli: Cli) -> None:
    topics = [cli.topic("-p", "1") for _ in range(2)]
    for topic in topics:
        cli.ok("produce", topic, data=b"a\nb\nc\n")
    group = f"group-of-{topics[0]}"

    first = cli.run("consume", *topics, "-G", group, "--grep", "b")
    again = cli.ok("consume", *topics, "-G", group)

    assert first.stdout == b"b\nb\n"
    assert first.stderr.startswith(f"{group}: joining the group\n".encode())
    assert again == b""


def test_a_count_ends_both_ways(cli: Cli) -> None:
    topic = cli.topic("-p", "1")

    cli.ok("produce", topic, "-c", "3", data=b"1\n2\n3\n4\n5\n")

    assert cli.ok("consume", topic, "-c", "2") == b"1\n2\n"
    assert cli.ok("consume", topic) == b"1\n2\n3\n"


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_all_acks_deliver(cli: Cli, acks: str) -> None:
    topic = cli.topic("-p", "1")

    done = cli.run("produce", topic, "-a", acks, data=b"1\n2\n")

    assert done.returncode == 0
    assert b"2 records" in done.stderr
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while cli.ok("consume", topic) != b"1\n2\n":
        assert time.monotonic() < deadline


# --- Where to read


def test_reading_begins_where_it_is_told_to(cli: Cli) -> None:
    topic = cli.topic("-p", "1")
    cli.ok("produce", topic, data=b"".join(b"%d\n" % number for number in range(100)))

    assert cli.ok("consume", topic, "-o", "98") == b"98\n99\n"
    assert cli.ok("consume", topic, "-o", "-3") == b"97\n98\n99\n"
    assert cli.ok("consume", topic, "-o", "-1000", "-c", "1") == b"0\n"
    assert cli.ok("consume", topic, "-o", "end") == b""
    assert cli.ok("consume", topic, "-o", "0=95", "-c", "1") == b"95\n"


def test_partitions_can_be_chosen(cli: Cli) -> None:
    topic = cli.topic("-p", "4")
    for partition in range(4):
        cli.ok("produce", topic, "-p", f"{partition}", data=b"in %d\n" % partition)

    assert cli.ok("consume", topic, "-p", "2") == b"in 2\n"
    assert sorted(cli.ok("consume", topic, "-p", "0,2-3").splitlines()) == [
        b"in 0",
        b"in 2",
        b"in 3",
    ]
    assert cli.ok("consume", topic, "-o", "1=0,3=end") == b"in 1\n"


def test_reading_by_time_takes_exactly_that_time(cli: Cli) -> None:
    # By default the records are too old to be kept, whenever the broker looks at their age.
    configs = ["-c", "message.timestamp.type=CreateTime", "-c", "retention.ms=-1"]
    topic = cli.topic("-p", "1", *configs)
    lines = [
        json.dumps({"value": f"{hour}", "timestamp": 1_763_712_000_000 + hour * 3_600_000})
        for hour in range(24)
    ]
    cli.ok("produce", topic, "--json", "-z", "lz4", data="\n".join(lines).encode())

    # 2025-11-21T08:00Z is the start of hour 0.
    found = cli.ok("consume", topic, "--from", "2025-11-21T10:00Z", "--to", "2025-11-21T13:00Z")

    assert found == b"2\n3\n4\n"
    assert cli.ok("consume", topic, "--from", "1763794800000") == b"23\n"
    assert cli.ok("consume", topic, "--from", "2025-12-21") == b""
    assert cli.ok("consume", topic, "-o", "s@2025-11-22T07:00Z") == b"23\n"


# --- Going on, and ending quietly


def complaints(errors: bytes) -> list[bytes]:
    """Lines on stderr but for those that tell of a broker that a busy machine keeps waiting."""
    return [one for one in errors.splitlines() if not one.startswith(b"tarry: waiting: ")]


def read_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def test_follow_shows_what_comes_and_ctrl_c_ends_it_quietly(cli: Cli) -> None:
    topic = cli.topic("-p", "2")
    cli.ok("produce", topic, data=b"old\n")
    process = cli.start("consume", topic, "--follow")

    first = read_line(process)
    cli.ok("produce", topic, data=b"new\n")
    second = read_line(process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=ANSWER_SECONDS_MAX)

    assert (first, second) == (b"old\n", b"new\n")
    assert (process.returncode, complaints(errors)) == (130, [])


def test_a_closed_pipe_ends_quietly(cli: Cli) -> None:
    topic = cli.topic("-p", "1")
    cli.ok("produce", topic, data=b"x" * 99 + b"\n" + b"y" * 99 + b"\n" * 200_000)
    process = cli.start("consume", topic)

    first = read_line(process)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=ANSWER_SECONDS_MAX)

    assert process.returncode == 0
    assert (first, complaints(errors)) == (b"x" * 99 + b"\n", [])


def test_ctrl_c_sends_what_was_read_and_ends_quietly(cli: Cli) -> None:
    topic = cli.topic("-p", "1")
    process = cli.start("produce", topic)
    assert process.stdin is not None
    process.stdin.write(b"typed\n")
    process.stdin.flush()
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while cli.ok("consume", topic) != b"typed\n":
        assert time.monotonic() < deadline

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=ANSWER_SECONDS_MAX)

    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert complaints(errors)[0].startswith(b"1 record,")


# --- Topics and the cluster


def test_a_topic_lives_from_create_to_delete(cli: Cli) -> None:
    topic = cli.topic("-p", "3", "-c", "retention.ms=86400000")
    cli.ok("produce", topic, "-p", "1", data=b"1\n2\n")

    described = json.loads(cli.ok("topics", "describe", topic, "--json"))[0]
    listed = cli.ok("topics", "list", "-q").decode().split()
    deleted = cli.ok("topics", "delete", topic, "-y")
    left = cli.until(lambda printed: topic not in printed.decode().split(), "topics", "list", "-q")

    assert topic in listed
    assert described["settings"]["retention.ms"] == "86400000"
    assert [one["end_offset"] for one in described["partitions"]] == [0, 2, 0]
    assert all(one["leader_id"] >= 0 for one in described["partitions"])
    assert deleted == f"{topic}: deleted\n".encode()
    assert topic not in left.decode().split()


def test_what_the_cluster_refuses_is_a_sentence_and_exit_code_1(cli: Cli) -> None:
    topic = cli.topic()

    for arguments, word in (
        (["topics", "create", topic], b"TOPIC_ALREADY_EXISTS"),
        (["topics", "create", "no/name"], b"INVALID_TOPIC_EXCEPTION"),
        (["topics", "create", "x", "-c", "no.such.key=1"], b"INVALID_CONFIG"),
        (["topics", "create", "x", "-r", "9"], b"INVALID_REPLICATION_FACTOR"),
        (["topics", "delete", "not-there", "-y"], b"'not-there' does not exist"),
        (["topics", "describe", "not-there"], b"'not-there' does not exist"),
        (["consume", "not-there"], b"'not-there' does not exist"),
        (["consume", f"{topic}x"], f"did you mean '{topic}'?".encode()),
        (["consume", topic, "-p", "99"], b"not 99"),
        (["consume", topic, "-p", "0", "-o", "5"], b"has offsets 0 to 0, not 5"),
    ):
        done = cli.run(*arguments)
        assert done.returncode == 1, arguments
        assert word in done.stderr, done.stderr
        assert done.stderr.startswith(b"tarry: ")
        assert b"Traceback" not in done.stderr


def test_what_is_there_already_is_no_failure_on_request(cli: Cli) -> None:
    topic = cli.topic()

    assert b"nothing changed" in cli.ok("topics", "create", topic, "--if-not-exists")
    assert b"nothing deleted" in cli.ok("topics", "delete", "not-there", "-y", "--if-exists")
    assert b"could be created" in cli.ok("topics", "create", f"{topic}-b", "--validate-only")
    assert f"{topic}-b" not in cli.ok("topics", "list", "-q").decode().split()


def test_a_record_that_is_too_large_is_named(cli: Cli) -> None:
    topic = cli.topic("-p", "1", "-c", "max.message.bytes=10000")

    done = cli.run("produce", topic, data=b"x" * 20_000 + b"\nsmall\n")

    assert done.returncode == 1
    assert b"MESSAGE_TOO_LARGE" in done.stderr
    assert cli.ok("consume", topic) == b"small\n"


def test_the_cluster_is_described(cli: Cli) -> None:
    described = json.loads(cli.ok("describe", "--json"))
    apis = json.loads(cli.ok("describe", "--apis", "--json"))

    assert len(described["cluster_id"]) == 22
    host, _, port = cli.address.rpartition(":")
    assert [(one["host"], one["port"]) for one in described["brokers"]] == [(host, int(port))]
    assert {one["name"] for one in apis} >= {"Produce", "Fetch", "Metadata"}


# --- Measuring


def test_measurements_count_what_was_sent_and_read(cli: Cli) -> None:
    topic = cli.topic("-p", "2")

    sent = json.loads(cli.ok("perf", "produce", topic, "-n", "3k", "-s", "50", "--json"))
    # The first record, which opens the connection, is not measured.
    read = json.loads(cli.ok("perf", "consume", topic, "--json"))
    there_and_back = json.loads(cli.ok("perf", "latency", topic, "-n", "5", "--json"))

    assert (sent["records"], sent["bytes"]) == (3_000, 150_000)
    assert sent["latency_ms"]["samples"] == 30
    assert (read["records"], read["bytes"]) == (3_001, 150_050)
    assert there_and_back["latency_ms"]["samples"] == 5
    assert there_and_back["client_cpu"]["seconds"] > 0


def test_a_topic_that_is_not_there_is_not_measured(cli: Cli) -> None:
    done = cli.run("perf", "produce", "not-there-at-all", "-n", "1")

    assert done.returncode == 1
    assert b"not-there-at-all" in done.stderr
    assert b"tarry topics create not-there-at-all" in done.stderr


# --- Streams that are closed, and bytes that are no text


def test_a_stream_that_is_closed_is_a_sentence(cli: Cli) -> None:
    topic = cli.topic("-p", "1")
    cli.ok("produce", topic, data=b"x\n")

    for line, sentence in (
        (f"produce {topic} <&-", "stdin is closed; no record was sent"),
        (f"consume {topic} >&-", "stdout is closed"),
        (f"consume {topic} > /dev/full", "no space left on device"),
    ):
        environment = {**os.environ, "TARRY_BOOTSTRAP_SERVERS": cli.address}
        done = subprocess.run(
            ["/bin/sh", "-c", f"exec '{sys.executable}' -m tarry {line}"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_SECONDS_MAX,
        )
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr


def test_keys_and_headers_of_the_command_line_are_any_bytes_and_names_are_text(cli: Cli) -> None:
    topic = cli.topic("-p", "1")
    key, content = (os.fsdecode(text) for text in (b"k\xff", b"h=\xfe"))

    cli.ok("produce", topic, "-k", key, "-H", content, data=b"v\n")
    refused = cli.run("consume", os.fsdecode(b"t\xff"))

    assert cli.ok("consume", topic, "-f", "%k %h") == b"k\xff h=\xfe"
    assert refused.returncode == 2
    assert b"is not UTF-8" in refused.stderr
