"""`tarry configs` and what changes topics: what they print, and how they refuse."""

from __future__ import annotations

import pytest
from tests.support.cli.command_runner import CommandRunner
from tests.support.client.scripted_groups import TOPIC, GroupCluster

from tarry.cli.configs import parse_changes
from tarry.client.core.admin.configs import APPEND, DELETE, SET, SUBTRACT


@pytest.fixture
def cluster() -> GroupCluster:
    made = GroupCluster(brokers=2)
    for log in made.topic("orders", partitions=3, leader_id=2).logs:
        log.add(*[b"%d" % number for number in range(10)])
    return made


@pytest.fixture
def tarry(cluster: GroupCluster, monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    return CommandRunner(cluster, monkeypatch)


# --- configs


def test_what_was_set_is_shown_and_defaults_on_request(tarry: CommandRunner) -> None:
    tarry.ok("configs set --topic orders retention.ms=5")

    assert tarry.ok("configs get --topic orders") == (
        "setting       value  from\nretention.ms  5      topic\n"
    )
    assert "cleanup.policy" in tarry.ok("configs get --topic orders --all")
    assert tarry.ok("configs get --topic orders retention.ms cleanup.policy -q") == "5\ndelete\n"


def test_settings_that_nobody_set_are_said_so_on_stderr(tarry: CommandRunner) -> None:
    result = tarry.run("configs get --topic orders")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "topic orders has no settings of its own; --all shows the defaults" in result.stderr


def test_a_broker_that_is_not_there_is_refused_with_those_that_are(tarry: CommandRunner) -> None:
    result = tarry.run("configs get --broker 9 -m 1")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no broker 9; the cluster has 1, 2" in result.stderr


def test_settings_are_explained_without_the_marks_of_html(tarry: CommandRunner) -> None:
    assert tarry.ok("configs get --topic orders retention.ms --explain") == (
        "retention.ms = 604800000\n"
        "  long, from: default\n"
        "  default: retention.ms = 604800000\n"
        "  What retention.ms does.\n"
    )


def test_settings_in_json_have_everything(tarry: CommandRunner) -> None:
    assert tarry.json("configs get --topic orders retention.ms") == [
        {
            "name": "retention.ms",
            "value": "604800000",
            "source": "default",
            "type": "long",
            "is_default": True,
            "is_read_only": False,
            "is_sensitive": False,
            "synonyms": [{"name": "retention.ms", "value": "604800000", "source": "default"}],
            "documentation": "What <b>retention.ms</b> does.",
        }
    ]


def test_settings_are_changed_in_every_way(tarry: CommandRunner, cluster: GroupCluster) -> None:
    said = tarry.ok("configs set --topic orders retention.ms=a=b cleanup.policy+=compact")
    both = dict(cluster.settings[TOPIC, "orders"])
    tarry.ok("configs set --topic orders cleanup.policy-=delete")
    less = dict(cluster.settings[TOPIC, "orders"])
    tarry.ok("configs unset --topic orders cleanup.policy retention.ms")

    assert said == "topic orders: 2 settings changed\n"
    assert both == {"retention.ms": "a=b", "cleanup.policy": "delete,compact"}
    assert less["cleanup.policy"] == "compact"
    assert cluster.settings[TOPIC, "orders"] == {}


def test_settings_of_one_broker_and_of_all(tarry: CommandRunner) -> None:
    one = tarry.json("configs set --broker 2 retention.ms=7")
    said = tarry.ok("configs set --brokers retention.ms=8")

    assert one == {
        "topic": None,
        "broker_id": 2,
        "executed": True,
        "settings": ["retention.ms"],
    }
    assert said == "the brokers: 1 setting changed\n"
    assert tarry.ok("configs get --broker 2 retention.ms -q") == "7\n"
    assert tarry.ok("configs get --brokers retention.ms -q") == "8\n"


def test_a_change_can_be_tried(tarry: CommandRunner, cluster: GroupCluster) -> None:
    said = tarry.ok("configs set --topic orders retention.ms=5 --validate-only")

    assert said == "topic orders: 1 setting could be changed\n"
    assert cluster.settings == {}


def test_keys_that_are_not_there_are_refused_with_the_nearest(tarry: CommandRunner) -> None:
    assert "did you mean 'retention.ms'?" in tarry.refused("configs get --topic orders retentionms")
    assert "Unknown topic config name: x" in tarry.refused("configs set --topic orders x=1")
    assert "nope" in tarry.refused("configs get --topic nope")


def test_changes_are_read_from_what_is_written() -> None:
    assert parse_changes(["a=1", "b+=2", "c-=3", "d="], ["e"]) == [
        ("a", SET, "1"),
        ("b", APPEND, "2"),
        ("c", SUBTRACT, "3"),
        ("d", SET, ""),
        ("e", DELETE, None),
    ]


# --- topics


def test_topics_are_altered_each_with_its_own_outcome(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.topic("logs")

    said = tarry.ok("topics alter orders logs -c retention.ms=5")
    refused = tarry.refused("topics alter orders -c no.such=5")
    tarry.ok("topics alter logs --unset retention.ms")

    assert said == "orders: changed\nlogs: changed\n"
    assert refused.startswith("tarry: orders: Unknown topic config name")
    assert cluster.settings == {
        (TOPIC, "orders"): {"retention.ms": "5"},
        (TOPIC, "logs"): {},
    }


def test_partitions_are_added(tarry: CommandRunner, cluster: GroupCluster) -> None:
    tried = tarry.ok("topics add-partitions orders -p 5 --validate-only")
    before = len(cluster.topics["orders"].logs)
    done = tarry.json("topics add-partitions orders -p 5")
    again = tarry.run("topics add-partitions orders nope -p 5")

    assert (tried, before) == ("orders: could have 5 partitions\n", 3)
    assert done == [{"topic": "orders", "done": True, "error": None}]
    assert len(cluster.topics["orders"].logs) == 5
    assert again.exit_code == 1
    assert "already has 5" in again.stderr
    assert "topic 'nope' does not exist" in again.stderr


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        ("--before end", [10, 10, 10]),
        ("--before 4", [4, 4, 4]),
        ("--before -2", [8, 8, 8]),
        ("--before -11", [0, 0, 0]),
        ("--before -200", [0, 0, 0]),
        ("--before 4 -p 0,2", [4, 0, 4]),
        ("--before 0=100,1=3", [0, 3, 0]),
        ("--before 1=3,2=end", [0, 3, 10]),
        ("--before s@2001-01-01", [0, 0, 0]),
        ("--before s@2099-01-01", [10, 10, 10]),
    ],
)
def test_records_before_a_place_are_deleted(
    tarry: CommandRunner, cluster: GroupCluster, options: str, begins: list[int]
) -> None:
    tarry.run(f"topics delete-records orders {options} -y")

    assert [log.start_offset for log in cluster.topics["orders"].logs] == begins


def test_what_was_deleted_is_shown_and_what_was_not_fails(tarry: CommandRunner) -> None:
    tarry.ok("topics delete-records orders --before 2 -y")

    result = tarry.run("topics delete-records orders --before 0=100,1=3 -y")
    told = tarry.json("topics delete-records orders --before 4 -p 1 -y")

    assert result.exit_code == 1
    assert result.stderr == "tarry: orders [0] ends before offset 100 (OFFSET_OUT_OF_RANGE)\n"
    assert result.stdout == (
        "topic   partition  first offset was  is\norders          1                 2   3\n"
    )
    assert told == [
        {
            "topic": "orders",
            "partition": 1,
            "begin_offset_before": 3,
            "begin_offset": 4,
            "error": None,
        }
    ]


def test_records_are_deleted_after_a_question_only(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    assert "Add --yes" in tarry.refused("topics delete-records orders --before end", code=2)
    assert [log.start_offset for log in cluster.topics["orders"].logs] == [0, 0, 0]


def test_partitions_and_topics_that_are_not_there_are_refused(tarry: CommandRunner) -> None:
    assert "topic 'nope' does not exist" in tarry.refused(
        "topics delete-records nope --before end -y"
    )
    assert "partitions 0 to 2, not 9" in tarry.refused(
        "topics delete-records orders --before end -p 9 -y"
    )


def test_a_partition_without_leader_is_named(tarry: CommandRunner, cluster: GroupCluster) -> None:
    cluster.topics["orders"].logs[1].leader_id = -1

    assert "orders [1]" in tarry.refused("topics delete-records orders --before end -y")
