"""The commands groups, configs, what changes topics, and consume --group, against Apache Kafka and
against Tarry."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from tests.interop.test_cli_against_kafka import Cli, read_line
from tests.support.broker_process import BrokerProcess
from tests.support.patience import PATIENCE_S

from tarry.cli.main import tarry

ANSWER_SECONDS_MAX = PATIENCE_S


class GroupCli(Cli):
    """Runs commands in this process, which is much quicker, and members in their own.

    Groups get names of their own, members end with the test.
    """

    def __init__(self, address: str, *, is_tarry: bool) -> None:
        super().__init__(address)
        self.is_tarry = is_tarry
        self.members: list[subprocess.Popen[bytes]] = []

    def run(self, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        environment = {"TARRY_BOOTSTRAP_SERVERS": self.address}
        done = CliRunner().invoke(tarry, arguments, prog_name="tarry", input=data, env=environment)
        return subprocess.CompletedProcess(
            arguments, done.exit_code, done.stdout_bytes, done.stderr_bytes
        )

    def group(self) -> str:
        self.made += 1
        return f"cli-group-{os.getpid()}-{self.made}"

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def describe(self, group: str) -> Any:
        return self.json("groups", "describe", group)[0]

    def member(self, topic: str, group: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A member that reads on and on."""
        process = self.start("consume", topic, "--group", group, "--follow", *arguments)
        self.members.append(process)
        return process

    def until_stable(self, group: str, members: int) -> Any:
        """The group's description once it is stable with so many members."""
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while True:
            found = self.run("groups", "describe", group, "--json")
            described = json.loads(found.stdout)[0] if found.returncode == 0 else None
            if (
                described is not None
                and (described["state"], len(described["members"])) == ("Stable", members)
                # A member that was given nothing is between two rounds of a cooperative rebalance.
                and all(one["assignment"] for one in described["members"])
            ):
                return described
            assert time.monotonic() < deadline, found

    def until_empty(self, group: str) -> None:
        """Nobody is a member any more."""
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while (described := self.describe(group))["state"] != "Empty":
            assert time.monotonic() < deadline, described

    def until_read(self, group: str) -> None:
        """The group has committed everything that there is."""
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while any(one["lag"] != 0 for one in self.describe(group)["offsets"]):
            assert time.monotonic() < deadline

    def until_setting(self, value: str, *whose: str) -> None:
        """A setting has this value.  Apache Kafka's broker hears of a change behind its answer."""
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while True:
            found = self.run("configs", "get", *whose, "-q")
            if found.stdout.decode().strip() == value:
                return
            assert time.monotonic() < deadline, found

    def stop(self, member: subprocess.Popen[bytes], how: signal.Signals) -> bytes:
        """End a member; what it printed and nobody has read."""
        member.send_signal(how)
        output, _ = member.communicate(timeout=ANSWER_SECONDS_MAX)
        return output

    def close(self) -> None:
        for member in self.members:
            member.kill()
            member.communicate()
        self.members.clear()


@pytest.fixture(scope="module", params=["kafka", "tarry"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GroupCli]:
    if request.param == "kafka":
        yield GroupCli(request.getfixturevalue("apache_kafka"), is_tarry=False)
        return
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
    # The tests' Kafka is set so too: the first generation waits for no further member.
    broker.start({"group.initial.rebalance.delay.ms": "0"})
    yield GroupCli(broker.address, is_tarry=True)
    broker.close()


@pytest.fixture
def cli(cluster: GroupCli) -> Iterator[GroupCli]:
    yield cluster
    cluster.close()


def numbers(cli: GroupCli, topic: str, count: int, partitions: int) -> None:
    """So many lines into each partition."""
    for partition in range(partitions):
        lines = b"".join(b"%d/%d\n" % (partition, number) for number in range(count))
        cli.ok("produce", topic, "-p", f"{partition}", "-q", data=lines)


# --- What groups have committed


def test_lag_is_sampled_where_no_event_log_is(cli: GroupCli) -> None:
    topic, group = cli.topic("-p", "2"), cli.group()
    numbers(cli, topic, 10, 2)
    to_offset = ["--topic", f"{topic}:1", "--to-offset", "4", "--execute", "--create"]
    cli.ok("groups", "reset-offsets", group, *to_offset)

    logged = cli.run("spark", "lag")
    sampled = cli.json("spark", "lag", "--group", group, "--sample", "10ms", "--for", "10ms")

    assert logged.returncode == 1
    assert b"ask the cluster with --sample" in logged.stderr
    assert sampled["tally"]["events"] == 2
    told = [(one["partition"], one["committed"], one["lag"]) for one in sampled["partitions"]]
    assert told == [(1, 4, 6)]


def test_offsets_of_a_group_are_made_seen_moved_and_deleted(cli: GroupCli) -> None:
    topic, group = cli.topic("-p", "3"), cli.group()
    numbers(cli, topic, 10, 3)
    reset = ["groups", "reset-offsets", group]

    planned = cli.json(*reset, "--topic", topic, "--to-latest")
    missing = cli.run("groups", "describe", group)
    cli.ok(*reset, "--topic", topic, "--to-latest", "--execute", "--create")
    cli.ok(*reset, "--topic", f"{topic}:0", "--shift-by", "-4", "--execute")
    cli.ok(*reset, "--topic", f"{topic}:1", "--to-offset", "3", "--execute")
    cli.ok(*reset, "--topic", f"{topic}:2", "--to-time", "-1h", "--execute")
    described = cli.describe(group)
    again = cli.json(*reset, "--all-topics", "--to-earliest", "--execute")

    assert planned["executed"] is False
    assert [(one["before"], one["after"]) for one in planned["offsets"]] == [(None, 10)] * 3
    assert missing.returncode == 1
    assert b"does not exist" in missing.stderr
    assert [one["committed_offset"] for one in described["offsets"]] == [6, 3, 0]
    assert [one["lag"] for one in described["offsets"]] == [4, 7, 10]
    assert (described["state"], described["members"], described["lag"]) == ("Empty", [], 21)
    assert [one["after"] for one in again["offsets"]] == [0, 0, 0]
    assert cli.ok("groups", "delete-offsets", group, "--topic", f"{topic}:1", "-y")
    assert [one["partition"] for one in cli.describe(group)["offsets"]] == [0, 2]
    assert group in cli.ok("groups", "list", "-q", "--state", "Empty").decode().split()
    cli.ok("groups", "delete", group, "-y")
    assert group not in cli.ok("groups", "list", "-q").decode().split()


def test_a_group_reads_on_from_its_commits(cli: GroupCli) -> None:
    topic, group = cli.topic("-p", "3"), cli.group()
    numbers(cli, topic, 20, 3)

    some = cli.ok("consume", topic, "--group", group, "-c", "7").splitlines()
    rest = cli.ok("consume", topic, "--group", group).splitlines()
    nothing = cli.ok("consume", topic, "--group", group)
    cli.ok(
        "groups", "reset-offsets", group, "--topic", f"{topic}:1", "--to-offset", "18", "--execute"
    )
    again = cli.ok("consume", topic, "--group", group)

    assert len(some) == 7
    assert sorted(some + rest) == sorted(b"%d/%d" % (p, n) for p in range(3) for n in range(20))
    assert nothing == b""
    assert again == b"1/18\n1/19\n"


# --- Members


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_leave_and_take_over(cli: GroupCli, assignor: str) -> None:
    topic, group = cli.topic("-p", "4"), cli.group()
    numbers(cli, topic, 5, 4)
    options = ["--assignor", assignor]

    first = cli.member(topic, group, *options)
    alone = cli.until_stable(group, 1)
    before = [read_line(first) for _ in range(20)]
    second = cli.member(topic, group, *options)
    shared = cli.until_stable(group, 2)
    numbers(cli, topic, 1, 4)
    cli.stop(first, signal.SIGINT)
    left = cli.until_stable(group, 1)
    cli.until_read(group)
    numbers(cli, topic, 1, 4)
    cli.until_read(group)
    after = cli.stop(second, signal.SIGTERM)
    cli.until_empty(group)
    empty = cli.describe(group)

    assert sorted(before) == sorted(b"%d/%d\n" % (p, n) for p in range(4) for n in range(5))
    assert [len(one["assignment"]) for one in alone["members"]] == [4]
    assert [len(one["assignment"]) for one in shared["members"]] == [2, 2]
    assert shared["assignor"] == assignor
    assert [len(one["assignment"]) for one in left["members"]] == [4]
    assert (first.returncode, second.returncode) == (130, 143)
    # The second four for certain; of the first four those that the other one did not print.
    assert 4 <= after.count(b"/0\n") <= 8
    assert (empty["state"], empty["lag"]) == ("Empty", 0)


def test_a_group_with_members_is_not_changed_behind_their_backs(cli: GroupCli) -> None:
    topic, group = cli.topic("-p", "1"), cli.group()
    numbers(cli, topic, 3, 1)
    cli.member(topic, group)
    cli.until_stable(group, 1)

    for arguments, word in (
        (["reset-offsets", group, "--topic", topic, "--to-earliest", "--execute"], b"stop them"),
        (["delete", group, "-y"], b"NON_EMPTY_GROUP"),
        (["delete-offsets", group, "--topic", topic, "-y"], b"GROUP_SUBSCRIBED_TO_TOPIC"),
    ):
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        done = cli.run("groups", *arguments)
        # The first commit may not be there yet.
        while b"has committed nothing" in done.stderr:
            assert time.monotonic() < deadline
            done = cli.run("groups", *arguments)
        assert done.returncode == 1
        assert word in done.stderr
        assert done.stderr.startswith(b"tarry: ")


def test_a_member_stays_though_its_reader_is_slower_than_its_poll_interval(cli: GroupCli) -> None:
    """Nobody reads the pipe for longer than both time-outs, and it is the same member still."""
    topic = cli.topic("-p", "1")
    line = b"x" * 999 + b"\n"
    cli.ok("produce", topic, "-q", data=line * 1_000)
    # A machine that stands still for longer than a session shows nothing: then with a longer one.
    for session_s in (6, 24, 96):
        group = cli.group()
        limits = ["-X", f"session.timeout.ms={session_s}000", "-X", "heartbeat.interval.ms=500"]
        limits += ["-X", f"max.poll.interval.ms={session_s // 2}000"]
        member = cli.member(topic, group, *limits)
        before = cli.until_stable(group, 1)

        with pytest.raises(subprocess.TimeoutExpired):
            member.wait(session_s + 1)
        described = cli.describe(group)

        assert member.stdout is not None
        printed = [member.stdout.readline() for _ in range(1_000)]
        after = cli.until_stable(group, 1)
        if before["members"] == after["members"]:
            break

    assert described["state"] == "Stable"
    assert described["offsets"][0]["committed_offset"] in (None, 0)
    assert printed == [line] * 1_000
    assert before["members"] == after["members"]


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_member_whose_reader_is_stuck_does_not_hold_up_the_others(
    cli: GroupCli, assignor: str
) -> None:
    """The group would give a member that does not poll five minutes."""
    topic, group = cli.topic("-p", "2"), cli.group()
    line = b"x" * 999 + b"\n"
    for partition in ("0", "1"):
        cli.ok("produce", topic, "-p", partition, "-q", data=line * 300)
    stuck = cli.member(topic, group, "--assignor", assignor)
    cli.until_stable(group, 1)
    # It prints, and nobody reads any further.
    read_line(stuck)

    free = cli.member(topic, group, "--assignor", assignor)
    shared = cli.until_stable(group, 2)
    printed = [read_line(free) for _ in range(300)]

    assert [len(one["assignment"]) for one in shared["members"]] == [1, 1]
    assert printed == [line] * 300
    assert stuck.poll() is None


# --- Why


def test_the_broker_tells_why_a_group_rebalanced_or_says_that_it_cannot(cli: GroupCli) -> None:
    topic, group = cli.topic("-p", "2"), cli.group()
    session = ["-X", "session.timeout.ms=10000", "--assignor", "range"]
    first = cli.member(topic, group, *session)
    cli.until_stable(group, 1)
    second = cli.member(topic, group, *session, "-X", "client.id=doomed")
    cli.until_stable(group, 2)
    cli.stop(second, signal.SIGKILL)
    # A line of the first member says that everything is its own again.
    assert first.stderr is not None
    alone = f"{group}: reads {topic}:0-1 (generation 3".encode()
    is_alone = any(alone in line for line in iter(first.stderr.readline, b""))
    cli.stop(first, signal.SIGINT)
    cli.until_empty(group)

    told = cli.run("groups", "why", group, "--json")

    assert is_alone

    if not cli.is_tarry:
        assert told.returncode == 1
        assert b"keeps no memory of rebalances" in told.stderr
        return
    assert told.returncode == 0, told.stderr
    rebalances = json.loads(told.stdout)["rebalances"]
    assert [one["state"] for one in rebalances] == ["stable", "stable", "stable", "empty"]
    assert all(one["stood_ms"] >= 0 for one in rebalances[:3])
    kinds = [[note["kind"] for note in one["notes"]] for one in rebalances]
    assert "MemberRemoved" in kinds[2]
    died = next(note for note in rebalances[2]["notes"] if note["kind"] == "MemberRemoved")
    assert died["client_id"] == "doomed"
    assert died["silent_ms"] >= 10_000
    table = cli.ok("groups", "why", group).decode()
    assert "client doomed at 127.0.0.1 was removed" in table


# --- Settings, partitions, records


def test_settings_of_a_topic_are_changed_and_taken_back(cli: GroupCli) -> None:
    topic = cli.topic("-p", "1")
    get = ["configs", "get", "--topic", topic]
    two = ["--topic", topic, "cleanup.policy", "retention.ms"]

    cli.ok("configs", "set", "--topic", topic, "retention.ms=5000", "cleanup.policy+=compact")
    cli.until_setting("delete,compact\n5000", *two)
    both = {one["name"]: one for one in cli.json(*get, "retention.ms", "cleanup.policy")}
    cli.ok("topics", "alter", topic, "-c", "cleanup.policy-=delete", "--unset", "retention.ms")
    cli.until_setting("compact\n604800000", *two)
    less = cli.ok(*get, "cleanup.policy", "retention.ms", "-q")
    cli.ok("configs", "set", "--topic", topic, "retention.ms=77", "--validate-only")
    cli.ok("configs", "unset", "--topic", topic, "cleanup.policy")
    cli.until_setting("delete\n604800000", *two)

    assert both["retention.ms"]["value"] == "5000"
    assert both["retention.ms"]["source"] == "topic"
    assert both["retention.ms"]["type"] == "long"
    assert len(both["retention.ms"]["documentation"]) > 20
    assert both["cleanup.policy"]["value"] == "delete,compact"
    assert less == b"compact\n604800000\n"
    assert cli.ok(*get, "cleanup.policy", "retention.ms", "-q") == b"delete\n604800000\n"


def test_settings_of_a_broker_are_changed_and_taken_back(cli: GroupCli) -> None:
    broker_id = str(cli.json("describe")["brokers"][0]["broker_id"])
    key = "log.cleaner.backoff.ms"

    cli.ok("configs", "set", "--broker", broker_id, f"{key}=12345")
    cli.until_setting("12345", "--broker", broker_id, key)
    one = cli.json("configs", "get", "--broker", broker_id, key)[0]
    cli.ok("configs", "unset", "--broker", broker_id, key)
    cli.ok("configs", "set", "--brokers", f"{key}=12346")
    cli.until_setting("12346", "--brokers", key)
    cli.ok("configs", "unset", "--brokers", key)
    cli.until_setting("15000", "--broker", broker_id, key)

    assert (one["value"], one["source"]) == ("12345", "broker (dynamic)")


def test_what_cannot_be_changed_is_a_sentence_and_exit_code_1(cli: GroupCli) -> None:
    topic = cli.topic("-p", "2")

    for arguments, word in (
        (["configs", "set", "--topic", topic, "retention.ms=x"], b"INVALID_CONFIG"),
        (["configs", "set", "--topic", topic, "no.such.key=1"], b"INVALID_CONFIG"),
        (["configs", "set", "--topic", "not-there", "retention.ms=1"], b"not-there"),
        (["configs", "get", "--topic", "not-there"], b"not-there"),
        (["configs", "get", "--topic", topic, "retentionms"], b"did you mean 'retention.ms'?"),
        (["topics", "alter", topic, "-c", "segment.bytes=-1"], b"INVALID_CONFIG"),
        (["topics", "add-partitions", topic, "-p", "2"], b"INVALID_PARTITIONS"),
        (["topics", "add-partitions", "not-there", "-p", "2"], b"does not exist"),
        (["topics", "delete-records", topic, "--before", "5", "-y"], b"OFFSET_OUT_OF_RANGE"),
        (["topics", "delete-records", topic, "--before", "end", "-p", "7", "-y"], b"not 7"),
        (["groups", "delete", "not-there", "-y"], b"'not-there' does not exist"),
        (["groups", "describe", "not-there"], b"'not-there' does not exist"),
        (["consume", "not-there", "--group", "g"], b"'not-there' does not exist"),
    ):
        done = cli.run(*arguments)
        assert done.returncode == 1, arguments
        assert word in done.stderr, done.stderr
        assert done.stderr.startswith(b"tarry: ")
        assert b"Traceback" not in done.stderr


def test_partitions_are_added_and_a_group_that_looks_finds_them(cli: GroupCli) -> None:
    topic, group = cli.topic("-p", "1"), cli.group()
    member = cli.member(topic, group, "-X", "metadata.max.age.ms=500")
    cli.until_stable(group, 1)

    cli.ok("topics", "add-partitions", topic, "-p", "3")
    cli.until(
        lambda printed: len(json.loads(printed)[0]["partitions"]) == 3,
        *("topics", "describe", topic, "--json"),
    )
    cli.ok("produce", topic, "-p", "2", data=b"into the new one\n")

    assert read_line(member) == b"into the new one\n"
    described = cli.until_stable(group, 1)
    assert len(described["members"][0]["assignment"]) == 3


def test_records_are_deleted_and_offsets_stay(cli: GroupCli) -> None:
    topic = cli.topic("-p", "2")
    numbers(cli, topic, 10, 2)

    first = cli.json("topics", "delete-records", topic, "--before", "-3", "-y")
    second = cli.json("topics", "delete-records", topic, "--before", "0=9,1=end", "-y")
    cli.ok("produce", topic, "-p", "1", data=b"next\n")

    cli.ok("topics", "alter", topic, "-c", "cleanup.policy=compact")
    cli.until_setting("compact", "--topic", topic, "cleanup.policy")
    refused = cli.run("topics", "delete-records", topic, "--before", "end", "-p", "0", "-y")

    assert b"[0] is compacted" in refused.stderr
    assert [one["begin_offset"] for one in first] == [7, 7]
    assert [(one["begin_offset_before"], one["begin_offset"]) for one in second] == [
        (7, 9),
        (7, 10),
    ]
    assert cli.ok("consume", topic, "-f", "%p %o %s\\n") in (
        b"0 9 0/9\n1 10 next\n",
        b"1 10 next\n0 9 0/9\n",
    )
