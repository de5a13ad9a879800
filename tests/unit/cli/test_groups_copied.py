"""Offsets of groups: exported, taken over, and never given to a group by a typo."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli.command_runner import CommandRunner
from tests.support.client.scripted_groups import GroupCluster

from tarry.cli.group_files import BadOffsetsFile, offsets_csv, parse_offsets

BILLING = {("orders", 0): 10, ("orders", 1): 4}


@pytest.fixture
def cluster() -> GroupCluster:
    """Topics with ten records a partition; billing has read some of orders, audit nothing."""
    made = GroupCluster()
    for name in ("orders", "refunds"):
        for log in made.topic(name, partitions=2).logs:
            log.add(*[b"%d" % number for number in range(10)])
    made.group("billing").offsets.update(BILLING)
    made.group("audit")
    return made


@pytest.fixture
def tarry(cluster: GroupCluster, monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    return CommandRunner(cluster, monkeypatch)


# --- Copies


def test_an_export_is_what_kafkas_script_writes(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.group("other").offsets[("refunds", 1)] = 3

    assert tarry.ok("groups export billing") == "orders,0,10\norders,1,4\n"
    assert tarry.ok("groups export --all") == (
        "billing,orders,0,10\nbilling,orders,1,4\nother,refunds,1,3\n"
    )
    assert tarry.json("groups export other") == [
        {"group": "other", "topic": "refunds", "partition": 1, "offset": 3}
    ]


@pytest.mark.parametrize("options", ["billing", "--all"])
def test_a_group_is_copied_by_a_file(
    tarry: CommandRunner, cluster: GroupCluster, tmp_path: Path, options: str
) -> None:
    cluster.group("third").offsets[("refunds", 1)] = 3
    file = tmp_path / "offsets.csv"
    file.write_text(tarry.ok(f"groups export {options}"))

    if options == "billing":
        tarry.ok(f"groups reset-offsets new --from-file {file} --create --execute")
        assert cluster.groups["new"].offsets == BILLING
    else:
        cluster.groups["billing"].offsets.clear()
        tarry.ok(f"groups reset-offsets billing --from-file {file} --execute")
        assert cluster.groups["billing"].offsets == BILLING


def test_a_file_comes_through_stdin(tarry: CommandRunner, cluster: GroupCluster) -> None:
    result = tarry.run("groups reset-offsets audit --from-file - --execute", "orders,1,7\n")

    assert result.exit_code == 0, result.output
    assert cluster.groups["audit"].offsets == {("orders", 1): 7}


def test_a_group_is_copied_from_another(tarry: CommandRunner, cluster: GroupCluster) -> None:
    tarry.ok("groups reset-offsets audit --from-group billing --topic orders:1 --execute")

    assert cluster.groups["audit"].offsets == {("orders", 1): 4}


def test_a_plan_can_be_exported_and_changes_nothing(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    line = "groups reset-offsets billing --all-topics --to-earliest --export"

    assert tarry.ok(line) == "orders,0,0\norders,1,0\n"
    assert cluster.groups["billing"].offsets == BILLING


def test_to_current_is_what_is_committed_or_the_end(tarry: CommandRunner) -> None:
    plan = tarry.json("groups reset-offsets billing --topic orders --topic refunds --to-current")

    assert [one["after"] for one in plan["offsets"]] == [10, 4, 10, 10]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "has no offsets of group 'billing'"),
        ("orders,0\n", "line 1: write topic,partition,offset"),
        ("orders,0,5\norders,zero,5\n", "line 2: write topic,partition,offset"),
        ("orders,0,-5\n", "line 1: write topic,partition,offset"),
        (",0,5\n", "line 1: write topic,partition,offset"),
        ("orders,0,5\norders,0,6\n", "line 2: orders [0] has another offset further up"),
        ("x,orders,0,5\n", "has no offsets of group 'billing'; it has those of 'x'"),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_line(content: str, sentence: str) -> None:
    with pytest.raises(BadOffsetsFile) as refused:
        parse_offsets(content, "f.csv", "billing")

    assert sentence in str(refused.value)


def test_names_with_commas_and_quotes_survive_the_file() -> None:
    offsets = {'a,"b': {("orders", 0): 5}, "other": {("orders", 1): 6}}

    text = offsets_csv(offsets)

    assert parse_offsets(text, "f", 'a,"b') == {("orders", 0): 5}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"nosuch,0,5\n", "topic 'nosuch' does not exist"),
        (b"orders,9,5\n", "topic 'orders' has partitions 0 to 1, not 9"),
        (b"\xff,0,5\n", "is not text in UTF-8"),
    ],
)
def test_a_file_that_does_not_fit_the_cluster_changes_nothing(
    tarry: CommandRunner, cluster: GroupCluster, tmp_path: Path, content: bytes, sentence: str
) -> None:
    file = tmp_path / "offsets.csv"
    file.write_bytes(b"orders,0,1\n" + content)

    assert sentence in tarry.refused(f"groups reset-offsets billing --from-file {file} --execute")
    assert cluster.groups["billing"].offsets == BILLING


def test_a_file_that_is_not_there_is_one_sentence(tarry: CommandRunner) -> None:
    sentence = tarry.refused("groups reset-offsets billing --from-file /nosuch.csv")

    assert sentence == "tarry: /nosuch.csv: no such file or directory\n"


# --- Typos


def test_a_mistyped_group_is_not_made(tarry: CommandRunner, cluster: GroupCluster) -> None:
    line = "groups reset-offsets biling --topic orders --to-latest"

    planned = tarry.run(line)
    refused = tarry.refused(f"{line} --execute", code=2)

    meant = "group 'biling' does not exist; did you mean 'billing'?"
    assert f"tarry: {meant}; --execute --create makes it\n" in planned.stderr
    assert refused == f"tarry: {meant}; add --create to make it\n"
    assert sorted(cluster.groups) == ["audit", "billing"]


@pytest.mark.parametrize(("answer", "is_made"), [("y\n", True), ("n\n", False)])
def test_at_a_terminal_it_is_asked_whether_to_make_a_group(
    tarry: CommandRunner,
    cluster: GroupCluster,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    is_made: bool,
) -> None:
    monkeypatch.setattr("tarry.cli.group_reset.is_at_terminal", lambda: True)

    result = tarry.run("groups reset-offsets new --topic orders --to-latest --execute", answer)

    assert "Group 'new' does not exist. Make it? [y/N]" in result.output
    assert ("new" in cluster.groups) == is_made
    assert result.exit_code == (0 if is_made else 1)


@pytest.mark.parametrize(
    "line",
    [
        "groups describe biling",
        "groups why biling",
        "groups export biling",
        "groups delete biling -y",
        "groups delete-offsets biling --topic orders -y",
        "groups reset-offsets biling --all-topics --to-latest --execute",
        "groups reset-offsets audit --from-group biling --execute",
    ],
)
def test_a_mistyped_group_is_told_with_the_name_that_was_meant(
    tarry: CommandRunner, cluster: GroupCluster, line: str
) -> None:
    cluster.tarry_notes = {}

    sentence = tarry.refused(line)

    assert sentence == "tarry: group 'biling' does not exist; did you mean 'billing'?\n"
    assert sorted(cluster.groups) == ["audit", "billing"]


# --- Lag


@pytest.mark.parametrize(("limit", "code"), [("5", 1), ("6", 0), ("1k", 0)])
def test_the_exit_code_tells_of_lag(tarry: CommandRunner, limit: str, code: int) -> None:
    result = tarry.run(f"groups describe billing --state --fail-if-lag {limit}")

    assert result.exit_code == code
    told = "tarry: group 'billing' has a lag of 6, more than 5\n"
    assert result.stderr == (told if code else "")


def test_a_lag_that_is_not_known_fails_as_well(tarry: CommandRunner, cluster: GroupCluster) -> None:
    cluster.topics["orders"].logs[1].leader_id = -1

    result = tarry.run("groups describe billing --state --fail-if-lag 100")

    assert result.exit_code == 1
    assert "the lag of group 'billing' is not known for orders:1" in result.stderr


def test_the_lag_of_a_partition_without_a_commit_is_not_known(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.groups["billing"].join("app", ("orders", 0), ("refunds", 1))

    result = tarry.run("groups describe billing --state --fail-if-lag 100")

    assert result.exit_code == 1
    assert "the lag of group 'billing' is not known for refunds:1" in result.stderr


def test_an_export_of_nothing_named_is_wrong_usage(tarry: CommandRunner) -> None:
    assert "name groups, or add --all" in tarry.refused("groups export", code=2)
