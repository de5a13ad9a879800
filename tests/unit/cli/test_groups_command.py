"""`tarry groups`: what it prints for people and for programs, and how it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.support.cli.command_runner import CommandRunner
from tests.support.client.scripted_cluster import ScriptedCluster, Seen
from tests.support.client.scripted_groups import GroupCluster

from tarry.base import errors
from tarry.cli import group_describe
from tarry.protocol import api_keys


@pytest.fixture
def cluster() -> GroupCluster:
    """Topic orders with three partitions of ten records; billing reads it with two members."""
    made = GroupCluster(brokers=2)
    for log in made.topic("orders", partitions=3).logs:
        log.add(*[b"%d" % number for number in range(10)])
    billing = made.group("billing", coordinator_id=2)
    billing.join("app-1", ("orders", 0), ("orders", 1))
    billing.join("app-2", ("orders", 2), instance_id="left-hand")
    billing.offsets.update({("orders", 0): 10, ("orders", 1): 4})
    return made


@pytest.fixture
def tarry(cluster: GroupCluster, monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    return CommandRunner(cluster, monkeypatch)


def stopped(cluster: GroupCluster, name: str = "billing") -> None:
    cluster.groups[name].members.clear()
    cluster.groups[name].state = "Empty"


# --- list


def test_groups_are_listed_as_a_table_as_names_and_as_json(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.group("audit")

    assert tarry.ok("groups list") == (
        "group    state   type     protocol  coordinator\n"
        "audit    Empty   classic  consumer            1\n"
        "billing  Stable  classic  consumer            2\n"
    )
    assert tarry.ok("groups list -q --state Stable") == "billing\n"
    assert tarry.json("groups list")[1] == {
        "group": "billing",
        "state": "Stable",
        "type": "classic",
        "protocol_type": "consumer",
        "coordinator_id": 2,
    }


def test_no_groups_is_said_on_stderr_and_is_no_failure(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.groups.clear()

    result = tarry.run("groups list")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "tarry consume TOPIC --group NAME" in result.stderr
    assert "there are no groups" in tarry.run("groups describe --all").stderr
    assert tarry.json("groups describe --all") == []


# --- describe


def test_a_group_is_described_with_lag_and_readers(tarry: CommandRunner) -> None:
    assert tarry.ok("groups describe billing") == (
        "billing  Stable  consumer, range  2 members  lag 6  1 partition without a commit  "
        "coordinator 2 at 10.0.0.2:9092\n"
        "topic   partition  committed  end  lag  member     host\n"
        "orders          0         10   10    0  app-1      10.1.1.1\n"
        "orders          1          4   10    6  app-1      10.1.1.1\n"
        "orders          2          -   10    -  left-hand  10.1.1.1\n"
    )


def test_a_member_without_partitions_is_shown_all_the_same(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.groups["billing"].join("idle")

    assert tarry.ok("groups describe billing").splitlines()[-1] == (
        "-               -          -    -    -  idle       10.1.1.1"
    )


def test_a_group_is_described_member_by_member(tarry: CommandRunner) -> None:
    assert tarry.ok("groups describe billing --members").splitlines()[1:] == [
        "member     host      client  has",
        "app-1      10.1.1.1  app     orders:0-1",
        "left-hand  10.1.1.1  app     orders:2",
    ]


def test_groups_are_described_in_a_line_each(tarry: CommandRunner, cluster: GroupCluster) -> None:
    cluster.group("audit")

    assert tarry.ok("groups describe --all --state") == (
        "group    state   protocol  assignor  members  lag  coordinator\n"
        "audit    Empty   consumer  -               0    -  1 at 10.0.0.1:9092\n"
        "billing  Stable  consumer  range           2    6  2 at 10.0.0.2:9092\n"
    )


def test_a_description_in_json_has_everything(tarry: CommandRunner) -> None:
    described = tarry.json("groups describe billing")[0]

    assert described["coordinator"] == {"broker_id": 2, "host": "10.0.0.2", "port": 9092}
    assert (described["state"], described["assignor"], described["lag"]) == ("Stable", "range", 6)
    assert described["members"][1] == {
        "member_id": "app-2",
        "instance_id": "left-hand",
        "client_id": "app",
        "host": "10.1.1.1",
        "assignment": [{"topic": "orders", "partition": 2}],
    }
    assert described["offsets"][1:] == [
        {
            "topic": "orders",
            "partition": 1,
            "committed_offset": 4,
            "leader_epoch": -1,
            "metadata": "",
            "end_offset": 10,
            "lag": 6,
            "member_id": "app-1",
        },
        {
            "topic": "orders",
            "partition": 2,
            "committed_offset": None,
            "leader_epoch": None,
            "metadata": None,
            "end_offset": 10,
            "lag": None,
            "member_id": "app-2",
        },
    ]


def test_offsets_of_a_topic_that_is_gone_are_shown_at_once(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.groups["billing"].offsets["gone", 0] = 7
    begin_ms = cluster.now_ms

    shown = tarry.ok("groups describe billing")

    assert shown.splitlines()[2] == ("gone            0          7    -    -  -          -")
    assert cluster.now_ms - begin_ms < 1_000


def test_a_partition_without_leader_has_no_end_and_costs_no_time(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.topics["orders"].logs[0].leader_id = -1
    begin_ms = cluster.now_ms

    described = tarry.json("groups describe billing")[0]

    assert [one["end_offset"] for one in described["offsets"]] == [None, 10, 10]
    assert cluster.now_ms - begin_ms < 1_000


def test_groups_of_other_protocols_show_their_members(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    workers = cluster.group("connect-cluster")
    workers.protocol_type = "connect"
    workers.join("w-1", ("x", 0))

    shown = tarry.ok("groups describe connect-cluster")

    assert "connect, range  1 member " in shown
    assert "bytes that only its own kind reads" in shown
    assert tarry.json("groups describe connect-cluster")[0]["members"][0]["assignment"] is None


def test_a_group_that_rebalances_points_to_the_reason(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.groups["billing"].state = "PreparingRebalance"

    assert "tarry groups why billing" in tarry.run("groups describe billing").stderr


def test_groups_that_are_not_there_fail_after_the_others_were_shown(tarry: CommandRunner) -> None:
    result = tarry.run("groups describe nope billing --state")

    assert result.exit_code == 1
    assert "billing" in result.stdout
    assert result.stderr == "tarry: group 'nope' does not exist\n"


def test_all_groups_are_those_that_can_be_shown_and_are_still_there(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.group("newer").group_type = "consumer"
    cluster.group("short-lived", coordinator_id=2)

    def gone_meanwhile(cluster: ScriptedCluster, seen: Seen) -> Any:
        assert isinstance(cluster, GroupCluster)
        del cluster.groups["short-lived"]
        cluster.rule(api_keys.DESCRIBE_GROUPS, None)
        return cluster.default(seen)

    cluster.rule(api_keys.DESCRIBE_GROUPS, gone_meanwhile)

    result = tarry.run("groups describe --all --state")

    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["group", "billing"]
    assert result.stderr == "left out, being of newer kinds than classic: newer\n"


def test_watching_goes_on_through_what_passes_and_ends_with_ctrl_c(
    tarry: CommandRunner, cluster: GroupCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            # From now on nobody lists groups in time.
            cluster.rule(api_keys.LIST_GROUPS, unavailable)
        elif len(waits) == 2:
            cluster.rule(api_keys.LIST_GROUPS, None)
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr(group_describe.time, "sleep", wait)

    result = tarry.run("groups describe --all --watch 7 --json -m 1")

    assert result.exit_code == 130
    assert waits == [7.0, 7.0, 7.0]
    assert [line[:9] for line in result.stdout.splitlines()] == ['{"at_ms":'] * 2
    assert result.stderr.count("tarry: waiting: ") == 1


def unavailable(cluster: ScriptedCluster, seen: Seen) -> Any:
    answer = cluster.default(seen)
    answer.error_code = errors.COORDINATOR_LOAD_IN_PROGRESS
    return answer


# --- why


def note(kind: str, at_ms: int, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "at_ms": 1_700_000_000_000 + at_ms, **fields}


def removed(at_ms: int, member_id: str, reason: str, silent_ms: int) -> dict[str, Any]:
    return note(
        "MemberRemoved",
        at_ms,
        member_id=member_id,
        instance_id=None,
        client_id="app",
        client_host="/10.1.1.1",
        reason=reason,
        silent_ms=silent_ms,
        follows="the others rejoin",
    )


def generation(at_ms: int, number: int, count: int) -> list[dict[str, Any]]:
    return [
        note(
            "GenerationBegan",
            at_ms,
            generation_id=number,
            protocol_name="range",
            leader_id="app-1",
            member_count=count,
        ),
        note("BecameStable", at_ms + 5, generation_id=number, stood_ms=3_105),
    ]


STORY = [
    note("RebalanceBegan", 0, generation_id=0, reason="member app-1 joined"),
    note("RoundChanged", 50, generation_id=0, reason="member app-2 joined"),
    *generation(3_100, 1, 2),
    removed(60_000, "app-2", "its session ended", 45_003),
    note("RebalanceBegan", 60_000, generation_id=1, reason="member app-2 was removed: x"),
    *generation(63_100, 2, 1),
    removed(70_000, "app-9", "it did not come back with the id it was given", 45_000),
    removed(90_000, "app-1", "it left", 7),
    note("RebalanceBegan", 90_000, generation_id=2, reason="left: app-1"),
    note("BecameEmpty", 90_000, generation_id=3),
    note("RebalanceBegan", 95_000, generation_id=3, reason="member app-3 joined"),
]


def test_the_last_rebalances_are_told_with_who_and_why_and_how_long(
    tarry: CommandRunner, cluster: GroupCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarry.cli.group_history.time_text", lambda at_ms: f"{at_ms % 10**6:>6}")
    cluster.tarry_notes = {"billing": STORY}

    result = tarry.run("groups why billing")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "when    generation  took        silent   what happened",
        "     0  0 to 1      3.105 s              member app-1 joined",
        "                                         member app-2 joined",
        "                                         2 members joined, assignor range, leader app-1",
        " 60000  1 to 2      3.105 s     45.0 s   member app-2 of client app at 10.1.1.1 was "
        "removed: its session ended; the others rejoin",
        "                                         1 member joined, assignor range, leader app-1",
        " 70000  -           -           45.0 s   member app-9 of client app at 10.1.1.1 was "
        "removed: it did not come back with the id it was given; the others rejoin",
        " 90000  2 to 3      -           0.007 s  member app-1 of client app at 10.1.1.1 was "
        "removed: it left; the others rejoin",
        "                                         nobody is left",
        " 95000  3 to ...    since then           member app-3 joined",
    ]
    assert result.stderr == "4 rebalances remembered since      0\n"


def test_a_removal_while_the_others_rejoin_is_told_once(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.tarry_notes = {
        "billing": [
            note("RebalanceBegan", 0, generation_id=1, reason="member app-4 joined"),
            removed(10, "app-1", "it left", 7),
            note("RoundChanged", 10, generation_id=1, reason="left: app-1"),
            removed(20, "app-2", "its session ended", 45_000),
            note("RoundChanged", 20, generation_id=1, reason="member app-2 was removed: x"),
            removed(30, "app-3", "it left", 7),
            note("RoundChanged", 30, generation_id=1, reason="member app-5 joined"),
        ]
    }

    lines = tarry.run("groups why billing").stdout.splitlines()[1:]

    assert [re.findall("app-[0-9]", line) for line in lines] == [
        ["app-4"],
        ["app-1"],
        ["app-2"],
        ["app-3"],
        ["app-5"],
    ]


def test_the_story_in_json_keeps_every_note(tarry: CommandRunner, cluster: GroupCluster) -> None:
    cluster.tarry_notes = {"billing": STORY}

    told = tarry.json("groups why billing")
    last = tarry.json("groups why billing -n 1")

    assert told["since_ms"] == 1_700_000_000_000
    assert [
        (one["state"], one["generation_before"], one["generation"], one["stood_ms"])
        for one in told["rebalances"]
    ] == [
        ("stable", 0, 1, 3_105),
        ("stable", 1, 2, 3_105),
        ("no rebalance", None, None, None),
        ("empty", 2, 3, None),
        ("under way", 3, None, None),
    ]
    assert [one for each in told["rebalances"] for one in each["notes"]] == STORY
    assert last["rebalances"] == told["rebalances"][-1:]


def test_a_rebalance_whose_beginning_is_forgotten_is_told_from_where_it_is_known(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    """The broker keeps the last notes of a group."""
    cluster.tarry_notes = {"billing": STORY[1:4], "audit": STORY[2:4]}
    cluster.group("audit")

    changed = tarry.json("groups why billing")["rebalances"]
    began = tarry.json("groups why audit")["rebalances"]

    assert [(one["state"], one["generation_before"]) for one in changed] == [("stable", 0)]
    assert [(one["state"], one["generation_before"]) for one in began] == [("stable", None)]
    assert [one["generation"] for one in (*changed, *began)] == [1, 1]


def test_a_rebalance_of_many_members_is_told_in_few_lines(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    joined = [
        note("RoundChanged", number, generation_id=0, reason=f"member m-{number} joined")
        for number in range(40)
    ]
    cluster.tarry_notes = {"billing": [STORY[0], *joined, *generation(3_100, 1, 41)]}

    lines = tarry.ok("groups why billing").splitlines()

    assert len(lines) == 1 + 12
    assert lines[-2].strip() == "... 31 more, with --json"
    assert "41 members joined" in lines[-1]
    assert "member m-8 joined" in lines[-3]


def test_kinds_of_notes_that_this_client_does_not_know_are_told_by_their_reason(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.tarry_notes = {"billing": [note("Haunted", 0, reason="a ghost came"), note("Odd", 9)]}

    shown = tarry.ok("groups why billing")

    assert "a ghost came" in shown
    assert "Odd" in shown


def test_a_group_that_nothing_happened_in_is_no_failure(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.tarry_notes = {"billing": []}

    result = tarry.run("groups why billing")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing happened in group billing since" in result.stderr


def test_what_apache_kafka_cannot_tell_is_said_so(tarry: CommandRunner) -> None:
    sentence = tarry.refused("groups why billing")

    assert "keeps no memory of rebalances, as only Tarry's do" in sentence
    assert "10.0.0.1:9092, 10.0.0.2:9092" in sentence


# --- reset-offsets


def test_a_reset_shows_what_it_would_do_and_does_nothing(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    stopped(cluster)
    before = dict(cluster.groups["billing"].offsets)

    result = tarry.run("groups reset-offsets billing --topic orders --to-earliest")

    assert result.exit_code == 0
    assert result.stdout == (
        "topic   partition  before  after  change\n"
        "orders          0      10      0  -10\n"
        "orders          1       4      0  -4\n"
        "orders          2       -      0  -\n"
    )
    assert result.stderr == "nothing was changed; add --execute to do it\n"
    assert cluster.groups["billing"].offsets == before


@pytest.mark.parametrize(
    ("options", "after"),
    [
        ("--topic orders --to-earliest", [0, 0, 0]),
        ("--topic orders --to-latest", [10, 10, 10]),
        ("--topic orders --to-offset 7", [7, 7, 7]),
        ("--topic orders:1,2 --to-offset 7", [10, 7, 7]),
        ("--topic orders:0 --topic orders:2 --to-offset 1", [1, 4, 1]),
        ("--all-topics --shift-by -3", [7, 1, None]),
        ("--all-topics --shift-by 3", [10, 7, None]),
        ("--all-topics --to-time 2001-01-01", [0, 0, None]),
        ("--all-topics --to-time 2099-01-01", [10, 10, None]),
    ],
)
def test_a_reset_commits_what_was_asked(
    tarry: CommandRunner, cluster: GroupCluster, options: str, after: list[int | None]
) -> None:
    stopped(cluster)

    done = tarry.json(f"groups reset-offsets billing {options} --execute")

    offsets = cluster.groups["billing"].offsets
    assert [offsets.get(("orders", index)) for index in range(3)] == after
    assert done["executed"] is True
    assert all(one["after"] == offsets["orders", one["partition"]] for one in done["offsets"])


def test_a_reset_takes_what_the_partition_has_and_says_so(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    stopped(cluster)
    cluster.topics["orders"].logs[0].start_offset = 5

    low = tarry.run("groups reset-offsets billing --topic orders:0 --to-offset 2")
    high = tarry.run("groups reset-offsets billing --topic orders:0 --to-offset 99")

    assert "orders [0] has offsets 5 to 10, not 2: taking 5" in low.stderr
    assert "orders [0] has offsets 5 to 10, not 99: taking 10" in high.stderr


def test_a_group_that_is_not_there_can_be_given_offsets(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    tarry.ok("groups reset-offsets new --topic orders:2 --to-latest --execute --create")

    assert cluster.groups["new"].offsets == {("orders", 2): 10}


def test_a_group_with_members_is_planned_for_but_not_reset(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    before = dict(cluster.groups["billing"].offsets)
    line = "groups reset-offsets billing --topic orders --to-earliest"

    planned = tarry.run(line)
    refused = tarry.refused(f"{line} --execute")

    assert planned.exit_code == 0
    assert "billing has 2 members (10.1.1.1); stop them first" in planned.stderr
    assert "stop them first" in refused
    assert cluster.groups["billing"].offsets == before
    assert cluster.requests(api_keys.OFFSET_COMMIT) == []


def test_a_member_that_comes_in_between_is_refused_by_the_broker(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    stopped(cluster)

    def join(cluster: ScriptedCluster, seen: Seen) -> Any:
        assert isinstance(cluster, GroupCluster)
        cluster.groups["billing"].join("late", ("orders", 0))
        return cluster.default(seen)

    cluster.script(api_keys.OFFSET_COMMIT, join)

    result = tarry.run("groups reset-offsets billing --topic orders:0,1 --to-earliest --execute")

    assert result.exit_code == 1
    # Once, though it is told for each partition.
    assert result.stderr.count("group billing has members") == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--topic nope --to-latest", "topic 'nope' does not exist"),
        ("--topic orders:7 --to-latest", "topic 'orders' has partitions 0 to 2, not 7"),
        ("--topic orders:2 --shift-by 1", "nothing is committed for orders [2]"),
    ],
)
def test_a_reset_that_cannot_be_is_a_sentence(
    tarry: CommandRunner, cluster: GroupCluster, options: str, sentence: str
) -> None:
    stopped(cluster)

    assert sentence in tarry.refused(f"groups reset-offsets billing {options} --execute")


def test_all_topics_of_a_group_that_committed_nothing_are_none(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.group("audit")

    assert "has committed nothing" in tarry.refused(
        "groups reset-offsets audit --all-topics --to-latest"
    )
    assert "'nope' does not exist" in tarry.refused(
        "groups reset-offsets nope --all-topics --to-latest"
    )


# --- delete and delete-offsets


def test_groups_are_deleted_after_a_question_only(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    stopped(cluster)

    asked = tarry.refused("groups delete billing", code=2)
    kept = "billing" in cluster.groups
    done = tarry.ok("groups delete billing -y")

    assert "Add --yes" in asked
    assert kept
    assert (done, "billing" in cluster.groups) == ("billing: deleted\n", False)


def test_groups_that_cannot_be_deleted_fail_the_command_and_not_each_other(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.group("audit")

    result = tarry.run("groups delete billing audit nope -y")
    forgiven = tarry.ok("groups delete nope -y --if-exists")

    assert result.exit_code == 1
    assert result.stdout == "audit: deleted\n"
    assert "group billing has members; stop them first" in result.stderr
    assert "nope" in result.stderr
    assert forgiven == "nope: does not exist, nothing deleted\n"


def test_offsets_are_deleted_by_topic_and_partition(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    stopped(cluster)

    one = tarry.ok("groups delete-offsets billing --topic orders:1 -y")
    rest = tarry.json("groups delete-offsets billing --topic orders -y")
    none = tarry.refused("groups delete-offsets billing --topic orders -y")

    assert one == "orders [1]: deleted\n"
    assert rest == [{"partition": "orders [0]", "done": True, "error": None}]
    assert "has committed nothing for orders" in none
    assert cluster.groups["billing"].offsets == {}


def test_offsets_in_use_are_not_deleted(tarry: CommandRunner, cluster: GroupCluster) -> None:
    sentence = tarry.refused("groups delete-offsets billing --topic orders:1 -y")

    assert "group billing reads orders; stop its members first" in sentence
    assert cluster.groups["billing"].offsets["orders", 1] == 4
