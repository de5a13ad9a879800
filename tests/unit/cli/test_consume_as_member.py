"""`tarry consume --group`: what is printed, what is committed, and what happens in between."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.support.cli.scripted_member import MemberCluster, serve_members
from tests.support.client.scripted_cluster import ScriptedCluster, Seen

from tarry.base import errors
from tarry.cli.main import tarry
from tarry.client.core.consumer.lookup import LATEST
from tarry.link.events import Address
from tarry.protocol import api_keys
from tarry.protocol.messages.join_group import JoinGroupResponse


@pytest.fixture
def cluster() -> MemberCluster:
    """Topic orders: a1 a2 a3 in partition 0, b1 b2 in partition 1."""
    made = MemberCluster()
    logs = made.topic("orders", partitions=2).logs
    logs[0].add(b"a1", b"a2", b"a3")
    logs[1].add(b"b1", b"b2")
    return made


@pytest.fixture
def consume(cluster: MemberCluster, monkeypatch: pytest.MonkeyPatch) -> Any:
    serve_members(cluster, monkeypatch)

    def run(line: str = "") -> Result:
        arguments = ["consume", "orders", "--group", "g", *line.split()]
        return CliRunner().invoke(tarry, arguments, prog_name="tarry")

    return run


def printed(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return sorted(result.stdout.split())


def offsets(cluster: MemberCluster) -> list[int | None]:
    known = cluster.group("g").offsets
    return [known.get(("orders", index)) for index in range(2)]


def test_everything_is_printed_committed_and_not_printed_again(
    consume: Any, cluster: MemberCluster
) -> None:
    first = consume()
    again = consume()
    cluster.topics["orders"].logs[1].add(b"b3")
    more = consume()

    assert printed(first) == ["a1", "a2", "a3", "b1", "b2"]
    assert printed(again) == []
    assert printed(more) == ["b3"]
    assert offsets(cluster) == [3, 3]
    assert "g: reads orders:0-1 (generation 1, range)" in first.stderr
    # Each of them has said goodbye.
    assert len(cluster.requests(api_keys.LEAVE_GROUP)) == 3


def test_a_count_commits_what_was_printed_and_no_more(consume: Any, cluster: MemberCluster) -> None:
    result = consume("-c 2")

    assert len(printed(result)) == 2
    assert sum(offset or 0 for offset in offsets(cluster)) == 2


def test_reading_without_commits_leaves_no_trace(consume: Any, cluster: MemberCluster) -> None:
    first = consume("--no-commit")
    again = consume("--no-commit")

    assert printed(first) == printed(again) == ["a1", "a2", "a3", "b1", "b2"]
    assert offsets(cluster) == [None, None]


def test_partitions_without_a_commit_begin_where_the_offset_says(
    consume: Any, cluster: MemberCluster
) -> None:
    cluster.group("g").offsets["orders", 0] = 1

    result = consume("--offset end")

    assert printed(result) == ["a2", "a3"]


def test_whoever_began_at_the_end_goes_on_from_there(consume: Any, cluster: MemberCluster) -> None:
    nothing = consume("--offset end")
    cluster.topics["orders"].logs[1].add(b"b3")
    since_then = consume("--offset end")

    assert printed(nothing) == []
    assert printed(since_then) == ["b3"]


def test_the_assignor_is_what_was_asked(consume: Any, cluster: MemberCluster) -> None:
    for name in ("range", "roundrobin", "cooperative-sticky"):
        result = consume(f"--no-commit --assignor {name}")

        assert f"{name})" in result.stderr
        offered = cluster.requests(api_keys.JOIN_GROUP)[-1].request.protocols
        assert [one.name for one in offered] == [name]


def test_a_static_member_joins_under_its_name_and_does_not_leave(
    consume: Any, cluster: MemberCluster
) -> None:
    consume("--instance-id left-hand")

    assert cluster.requests(api_keys.JOIN_GROUP)[0].request.group_instance_id == "left-hand"
    assert cluster.requests(api_keys.LEAVE_GROUP) == []


def test_what_was_printed_is_committed_before_partitions_are_given_up(
    consume: Any, cluster: MemberCluster
) -> None:
    """Also what was printed since the last commit of all the while."""
    log = cluster.topics["orders"].logs[0]
    at_joins: list[list[int | None]] = []

    def then_more(cluster: ScriptedCluster, seen: Seen) -> Any:
        log.add(b"a4")
        return cluster.default(seen)

    def then_rebalance(cluster: ScriptedCluster, seen: Seen) -> Any:
        assert isinstance(cluster, MemberCluster)
        if log.end_offset == 4 and cluster.generation_id == 1:
            cluster.rebalance()
        return cluster.default(seen)

    def note(cluster: ScriptedCluster, seen: Seen) -> Any:
        assert isinstance(cluster, MemberCluster)
        at_joins.append(offsets(cluster))
        if cluster.generation_id == 1:
            log.add(b"a5")
        return cluster.default(seen)

    cluster.script(api_keys.OFFSET_COMMIT, then_more)
    cluster.rule(api_keys.FETCH, then_rebalance)
    cluster.rule(api_keys.JOIN_GROUP, note)

    result = consume("--follow -c 7 -X heartbeat.interval.ms=100")

    assert printed(result) == ["a1", "a2", "a3", "a4", "a5", "b1", "b2"]
    assert at_joins == [[None, None], [None, None], [4, 2]]
    assert offsets(cluster) == [5, 2]
    assert result.stderr.count("g: reads orders:0-1") == 2


def test_a_rebalance_is_no_end_though_nothing_is_ours_meanwhile(
    consume: Any, cluster: MemberCluster
) -> None:
    def nothing_yet(cluster: ScriptedCluster, seen: Seen) -> Any:
        assert isinstance(cluster, MemberCluster)
        if cluster.generation_id == 1:
            cluster.rebalance()
            return "silence"
        return cluster.default(seen)

    def slow_others(cluster: ScriptedCluster, seen: Seen) -> Any:
        assert isinstance(cluster, MemberCluster)
        wait_ms = 3_000 if cluster.generation_id == 1 else 1
        return wait_ms, cluster.default(seen)

    cluster.rule(api_keys.FETCH, nothing_yet)
    cluster.rule(api_keys.JOIN_GROUP, slow_others)

    assert printed(consume("-X request.timeout.ms=2000")) == ["a1", "a2", "a3", "b1", "b2"]


def test_what_comes_after_the_end_was_looked_up_is_left_for_the_next_time(
    consume: Any, cluster: MemberCluster
) -> None:
    logs = cluster.topics["orders"].logs

    def second_first(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.fetch(seen)
        for topic in answer.responses:
            topic.partitions = [one for one in topic.partitions if one.partition_index == 1]
        return answer

    def then_more(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.default(seen)
        if seen.request.topics[0].partitions[0].timestamp == LATEST:
            logs[0].add(b"late")
        return answer

    cluster.script(api_keys.FETCH, second_first)
    cluster.rule(api_keys.LIST_OFFSETS, then_more)

    result = consume()

    assert printed(result) == ["a1", "a2", "a3", "b1", "b2"]
    assert offsets(cluster) == [3, 2]


def test_partitions_that_went_to_others_are_not_committed_any_more(
    consume: Any, cluster: MemberCluster
) -> None:
    commits: list[list[int]] = []

    def then_forget(cluster: ScriptedCluster, seen: Seen) -> Any:
        assert isinstance(cluster, MemberCluster)
        answer = cluster.default(seen)
        cluster.forget()
        cluster.share = [("orders", 0)]
        return answer

    def note(cluster: ScriptedCluster, seen: Seen) -> Any:
        named = [one.partition_index for one in seen.request.topics[0].partitions]
        assert isinstance(cluster, MemberCluster)
        if cluster.generation_id == 2:
            commits.append(named)
        return cluster.default(seen)

    cluster.script(api_keys.SYNC_GROUP, then_forget)
    cluster.rule(api_keys.OFFSET_COMMIT, note)

    result = consume("--follow -c 8")

    assert printed(result).count("b1") == 1
    assert commits == [[0]]


def test_partitions_that_were_lost_are_told_and_not_committed(
    consume: Any, cluster: MemberCluster
) -> None:
    commits: list[list[int | None]] = []

    def then_forget(cluster: ScriptedCluster, seen: Seen) -> Any:
        assert isinstance(cluster, MemberCluster)
        answer = cluster.default(seen)
        cluster.forget()
        return answer

    def note(cluster: ScriptedCluster, seen: Seen) -> Any:
        assert isinstance(cluster, MemberCluster)
        commits.append(offsets(cluster))
        return cluster.default(seen)

    cluster.script(api_keys.SYNC_GROUP, then_forget)
    cluster.rule(api_keys.OFFSET_COMMIT, note)

    result = consume("--follow -c 10")

    # All of it came twice: nobody had committed it.
    assert printed(result) == sorted(["a1", "a2", "a3", "b1", "b2"] * 2)
    assert "orders:0-1 went to others" in result.stderr or "not committed" in result.stderr
    assert offsets(cluster) == [3, 2]


def test_a_topic_that_is_not_there_is_a_sentence(consume: Any, cluster: MemberCluster) -> None:
    cluster.topics.clear()

    result = consume()

    assert result.exit_code == 1
    assert "topic 'orders' does not exist" in result.stderr
    assert cluster.requests(api_keys.JOIN_GROUP) == []


def test_a_group_that_refuses_is_a_sentence(consume: Any, cluster: MemberCluster) -> None:
    cluster.rule(
        api_keys.JOIN_GROUP,
        lambda cluster, seen: JoinGroupResponse(error_code=errors.GROUP_MAX_SIZE_REACHED),
    )

    result = consume()

    assert result.exit_code == 1
    assert "GROUP_MAX_SIZE_REACHED" in result.stderr
    assert "Traceback" not in result.output


def test_a_group_that_waits_for_its_others_is_given_up_in_time(
    consume: Any, cluster: MemberCluster
) -> None:
    begin_ms = cluster.now_ms
    cluster.rule(api_keys.SYNC_GROUP, lambda cluster, seen: "silence")

    result = consume("-m 5")

    assert result.exit_code == 1
    assert "joining group 'g' timed out after 5 s" in result.stderr
    assert cluster.now_ms - begin_ms < 20_000


def test_a_coordinator_that_cannot_be_reached_is_named(
    consume: Any, cluster: MemberCluster
) -> None:
    address = cluster.brokers[2] = Address("10.0.0.2", 9092)
    cluster.group("g", coordinator_id=2)
    cluster.refused[address] = "connection refused"

    result = consume("-m 5")

    assert result.exit_code == 1
    assert f"tarry: waiting: cannot connect to {address}, which" in result.stderr
    assert "joining group 'g' timed out after 5 s: cannot connect to" in result.stderr
    assert "connection refused" in result.stderr.splitlines()[-1]


def test_a_search_commits_what_it_looked_at(consume: Any, cluster: MemberCluster) -> None:
    result = consume("--grep 2$")

    assert printed(result) == ["a2", "b2"]
    assert offsets(cluster) == [3, 2]
    assert result.stderr.startswith("g: joining the group\n")


def test_a_member_reads_topics_by_pattern(consume: Any, cluster: MemberCluster) -> None:
    cluster.topic("orders-2", partitions=1).logs[0].add(b"c1")
    cluster.topic("others", partitions=1).logs[0].add(b"d1")

    assert printed(consume("orders-*")) == ["a1", "a2", "a3", "b1", "b2", "c1"]


def test_records_come_as_json_too(consume: Any) -> None:
    result = consume("--json -c 1")

    assert '"topic":"orders"' in result.stdout


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("-p 0", "leave out --partition"),
        ("--from -10m", "leave out --partition"),
        ("--to -10m", "leave out --partition"),
        ("-o 5", "beginning or end, not 5"),
        ("-o -5", "beginning or end, not -5"),
        ("--assignor best", "is not one of"),
    ],
)
def test_what_a_group_decides_itself_is_refused(consume: Any, line: str, sentence: str) -> None:
    result = consume(line)

    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())


@pytest.mark.parametrize("option", ["--no-commit", "--assignor=range", "--instance-id=a"])
def test_what_is_for_members_needs_a_group(option: str) -> None:
    result = CliRunner().invoke(tarry, ["consume", "orders", option], prog_name="tarry")

    assert result.exit_code == 2
    assert "give --group too" in result.stderr


@pytest.mark.parametrize(
    ("line", "level", "rack"),
    [("", 0, ""), ("--isolation read_committed --rack b", 1, "b"), ("-X client.rack=a", 0, "a")],
)
def test_isolation_and_rack_go_into_the_fetches(
    consume: Any, cluster: MemberCluster, line: str, level: int, rack: str
) -> None:
    assert printed(consume(line)) == ["a1", "a2", "a3", "b1", "b2"]

    fetches = [seen.request for seen in cluster.requests(api_keys.FETCH)]
    assert {(one.isolation_level, one.rack_id) for one in fetches} == {(level, rack)}
