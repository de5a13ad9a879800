"""`tarry topics` over a scripted cluster: which topics, how large, and what a typo cannot do."""

from __future__ import annotations

import pytest
from tests.support.cli.command_runner import CommandRunner
from tests.support.client.scripted_cluster import WALL_MS
from tests.support.client.scripted_groups import GroupCluster

from tarry.base import errors


@pytest.fixture
def cluster() -> GroupCluster:
    cluster = GroupCluster()
    for name in ("orders", "orders-old", "refunds"):
        cluster.topic(name, partitions=2)
    cluster.topic("__consumer_offsets", partitions=1).is_internal = True
    for number in range(3):
        cluster.topics["orders"].logs[0].add(b"a", b"b", timestamp=WALL_MS + 1000 * number)
    cluster.topics["orders"].logs[0].start_offset = 1
    return cluster


@pytest.fixture
def tarry(cluster: GroupCluster, monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    return CommandRunner(cluster, monkeypatch)


def names_of(described: list[dict[str, object]]) -> list[object]:
    return [one["topic"] for one in described]


# --- Which topics


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("", ["orders", "orders-old", "refunds"]),
        ("--internal", ["__consumer_offsets", "orders", "orders-old", "refunds"]),
        ("__consumer_offsets", ["__consumer_offsets"]),
        ("orders*", ["orders", "orders-old"]),
        ("refunds ^orders$ refunds", ["refunds", "orders"]),
        ("*offsets --internal", ["__consumer_offsets"]),
    ],
)
@pytest.mark.parametrize("command", ["list", "describe"])
def test_topics_are_chosen_by_name_and_pattern(
    tarry: CommandRunner, command: str, arguments: str, names: list[str]
) -> None:
    assert names_of(tarry.json(f"topics {command} {arguments}")) == names


@pytest.mark.parametrize("command", ["list", "describe"])
def test_those_that_are_there_are_shown_before_one_that_is_not_fails(
    tarry: CommandRunner, command: str
) -> None:
    result = tarry.run(f"topics {command} orders refund x* refunds")

    assert result.exit_code == 1
    assert result.stdout.index("orders") < result.stdout.index("refunds")
    assert result.stderr == (
        "tarry: topic 'refund' does not exist; did you mean 'refunds'?\n"
        "tarry: no topic matches 'x*'\n"
    )


def test_a_pattern_that_is_none_is_wrong_usage(tarry: CommandRunner) -> None:
    assert "invalid pattern '^(': " in tarry.refused("topics list ^(", code=2)


# --- How large


def test_a_list_tells_records_and_bytes(tarry: CommandRunner) -> None:
    assert tarry.ok("topics list") == (
        "topic       partitions  replicas  records   size\n"
        "orders               2         0        5  500 B\n"
        "orders-old           2         0        0    0 B\n"
        "refunds              2         0        0    0 B\n"
    )
    (orders, *_) = tarry.json("topics list")
    assert (orders["records"], orders["size_bytes"]) == (5, 500)


def test_a_description_tells_records_and_bytes_of_each_partition(tarry: CommandRunner) -> None:
    (orders,) = tarry.json("topics describe orders")

    assert [(one["records"], one["size_bytes"]) for one in orders["partitions"]] == [
        (5, 500),
        (0, 0),
    ]
    assert (orders["records"], orders["size_bytes"]) == (5, 500)
    assert "5 records  500 B\n" in tarry.ok("topics describe orders")


def test_sizes_that_nobody_tells_are_unknown_and_the_rest_is_shown(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.disk_error = errors.KAFKA_STORAGE_ERROR
    cluster.topics["refunds"].logs[1].leader_id = -1

    told = {one["topic"]: one for one in tarry.json("topics list")}

    assert told["orders"]["size_bytes"] is None
    assert told["orders"]["records"] == 5
    assert told["refunds"]["records"] is None
    assert "refunds              2         0        ?  ?     no leader\n" in tarry.ok("topics list")


def test_a_damaged_partition_is_told_and_chosen_by_problems(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.topics["orders"].logs[1].is_damaged = True

    (damaged,) = tarry.json("topics describe --problems")

    assert [one["state"] for one in damaged["partitions"]] == ["ok", "damaged"]
    assert damaged["partitions"][1]["offline_replicas"] == [1]
    assert tarry.ok("topics describe --problems").splitlines()[2].endswith("damaged")
    assert tarry.ok("topics list orders").splitlines()[1].endswith("damaged")


def test_without_problems_nothing_is_shown(tarry: CommandRunner) -> None:
    result = tarry.run("topics describe --problems")

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "all partitions are ok\n"


# --- Offsets at a time


@pytest.mark.parametrize(
    ("place", "offsets"),
    [
        ("end", [6, 0]),
        ("beginning", [1, 0]),
        (f"{WALL_MS + 1500}", [4, None]),
        ("2099-01-01", [None, None]),
    ],
)
def test_offsets_are_found_at_a_time(
    tarry: CommandRunner, place: str, offsets: list[int | None]
) -> None:
    found = tarry.json(f"topics offsets orders --at {place}")

    assert [one["offset"] for one in found] == offsets


def test_offsets_of_single_partitions_come_as_lines_for_scripts(tarry: CommandRunner) -> None:
    assert tarry.ok("topics offsets orders:0 refunds:1 -q") == "orders:0:6\nrefunds:1:0\n"


def test_partitions_and_topics_without_offsets_fail_by_name(tarry: CommandRunner) -> None:
    result = tarry.run("topics offsets orders:0,7 refund -q")

    assert result.exit_code == 1
    assert result.stdout == "orders:0:6\n"
    assert "topic 'refund' does not exist; did you mean 'refunds'?" in result.stderr
    assert "topic 'orders' has partitions 0 to 1, not 7" in result.stderr


def test_a_place_that_is_none_is_wrong_usage(tarry: CommandRunner) -> None:
    assert "invalid place 'noon'" in tarry.refused("topics offsets orders --at noon", code=2)


# --- What a typo, or a habit, cannot destroy


@pytest.mark.parametrize(
    "line",
    [
        "topics delete __consumer_offsets -y",
        "topics delete orders __consumer_offsets -y",
        "topics delete-records __consumer_offsets --before end -y",
        "topics alter __consumer_offsets -c retention.ms=1",
        "topics add-partitions __consumer_offsets -p 60",
        "configs set --topic __consumer_offsets retention.ms=1",
        "configs unset --topic __consumer_offsets retention.ms",
    ],
)
def test_the_brokers_own_topics_are_not_touched_by_the_way(
    tarry: CommandRunner, cluster: GroupCluster, line: str
) -> None:
    cluster.topics["__consumer_offsets"].logs[0].add(b"commit")

    sentence = tarry.refused(line)

    assert "belongs to the broker and holds the committed offsets of all groups" in sentence
    assert "add --internal" in sentence
    assert sorted(cluster.topics) == ["__consumer_offsets", "orders", "orders-old", "refunds"]
    assert len(cluster.topics["__consumer_offsets"].logs) == 1
    assert cluster.topics["__consumer_offsets"].logs[0].start_offset == 0
    assert not cluster.settings


def test_the_brokers_own_topics_are_deleted_when_it_is_meant(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    assert tarry.ok("topics delete __consumer_offsets -y --internal") == (
        "__consumer_offsets: deleted\n"
    )
    assert "__consumer_offsets" not in cluster.topics


@pytest.mark.parametrize(
    "line",
    [
        "topics delete ordesr -y",
        "topics delete-records ordesr --before end -y",
        "topics alter ordesr -c retention.ms=1",
        "topics add-partitions ordesr -p 9",
        "configs get --topic ordesr",
        "configs set --topic ordesr retention.ms=1",
    ],
)
def test_a_mistyped_topic_is_told_with_the_name_that_was_meant(
    tarry: CommandRunner, line: str
) -> None:
    sentence = tarry.refused(line)

    assert sentence == "tarry: topic 'ordesr' does not exist; did you mean 'orders'?\n"


def test_a_topic_that_need_not_be_there_is_no_failure(tarry: CommandRunner) -> None:
    assert tarry.ok("topics delete ordesr -y --if-exists") == (
        "ordesr: does not exist, nothing deleted\n"
    )


def test_settings_of_a_new_topic_take_units(tarry: CommandRunner, cluster: GroupCluster) -> None:
    tarry.ok("topics create new -c retention.ms=7d -c segment.bytes=1GB -c cleanup.policy=compact")

    assert cluster.created["new"] == {
        "retention.ms": "604800000",
        "segment.bytes": "1000000000",
        "cleanup.policy": "compact",
    }
