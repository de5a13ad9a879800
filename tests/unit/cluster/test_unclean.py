"""Unclean elections: when a replica leads that is not in sync, and what must hold then."""

from __future__ import annotations

import pytest
from tests.support.cluster.row_scene import TOPIC_ID, Rows

from tarry.base.settings import Settings
from tarry.cluster.decisions.row_changes import Place
from tarry.cluster.decisions.unclean import (
    CANDIDATE_MS,
    UNCLEAN_MS,
    ElectUncleanly,
    elected_uncleanly,
    unclean_successor,
)
from tarry.cluster.state.records import PartitionChanged


@pytest.fixture
def rows() -> Rows:
    """Of brokers 1, 2 and 3 the first, which was alone in sync, has died."""
    rows = Rows()
    for broker_id in (1, 2, 3):
        rows.live(broker_id)
    rows.configs = {"unclean.leader.election.enable": "true"}
    rows.topic([[1, 2, 3]])
    rows.part(0, leader=1, epoch=4, life=rows.epochs[1], isr=[1])
    rows.die(1)
    return rows


def elect(
    rows: Rows, broker_id: int = 2, doubts: tuple[Place, ...] = ()
) -> tuple[ElectUncleanly, list[PartitionChanged]]:
    rows.hear()
    change = ElectUncleanly(
        rows.known, broker_id, rows.epochs[broker_id], rows.settings, rows.spells, doubts
    )
    return change, rows.decide(change)


def elect_late(
    rows: Rows, broker_id: int = 2, doubts: tuple[Place, ...] = ()
) -> tuple[ElectUncleanly, list[PartitionChanged]]:
    elect(rows, broker_id, doubts)
    rows.turn.now_ms += UNCLEAN_MS
    return elect(rows, broker_id, doubts)


def test_after_ten_seconds_without_anybody_in_sync_a_replica_leads_alone(rows: Rows) -> None:
    assert elect(rows)[1] == []
    rows.turn.now_ms += UNCLEAN_MS - 1
    assert elect(rows)[1] == []
    rows.turn.now_ms += 1
    change, records = elect(rows)

    row = records[0].row
    assert (row.leader_id, row.leader_epoch, row.unclean_epoch) == (2, 5, 5)
    assert (row.isr, row.broker_epoch) == ([2], rows.epochs[2])
    assert rows.write(change, records)
    assert elect(rows)[1] == []


def test_the_next_candidate_waits_a_moment_longer(rows: Rows) -> None:
    assert elect_late(rows, 3)[1] == []
    rows.turn.now_ms += CANDIDATE_MS

    assert elect(rows, 3)[1][0].row.leader_id == 3


@pytest.mark.parametrize(
    ("broker", "topic", "elects"),
    [
        ("false", None, False),
        ("true", None, True),
        ("true", "false", False),
        ("false", "true", True),
    ],
)
def test_the_topics_setting_counts_before_the_brokers(
    rows: Rows, broker: str, topic: str | None, elects: bool
) -> None:
    rows.settings = Settings({"unclean.leader.election.enable": broker})
    rows.configs = {} if topic is None else {"unclean.leader.election.enable": topic}
    rows.topic([[1, 2, 3]])

    assert bool(elect_late(rows)[1]) == elects


def test_while_anybody_in_sync_lives_there_is_no_election(rows: Rows) -> None:
    rows.part(0, leader=1, epoch=4, life=rows.epochs[1], isr=[1, 3])

    assert elect_late(rows)[1] == []


def test_who_comes_back_for_a_moment_begins_the_wait_anew(rows: Rows) -> None:
    elect(rows)
    rows.turn.now_ms += UNCLEAN_MS - 1
    rows.live(1, "starting")
    assert elect(rows)[1] == []
    rows.die(1)
    rows.turn.now_ms += 10

    assert elect(rows)[1] == []


def test_who_led_again_between_two_looks_begins_the_wait_anew(rows: Rows) -> None:
    elect(rows)
    rows.live(1)
    rows.part(0, leader=1, epoch=5, life=rows.epochs[1], isr=[1])
    rows.die(1)
    rows.turn.now_ms += 2 * UNCLEAN_MS

    assert elect(rows)[1] == []
    rows.turn.now_ms += UNCLEAN_MS
    assert elect(rows)[1][0].row.leader_id == 2


def test_what_a_living_leader_leads_is_not_elected(rows: Rows) -> None:
    rows.part(0, leader=3, epoch=5, life=rows.epochs[3], isr=[1])

    assert elect_late(rows)[1] == []


def test_the_last_in_sync_that_doubts_its_log_elects_who_has_most_of_it(rows: Rows) -> None:
    rows.part(0, leader=2, epoch=4, life=1, isr=[2])

    assert elect_late(rows)[1] == []
    doubts = ((TOPIC_ID, 0),)
    # Its flushed records are gone, and its follower has most of them.
    change, records = elect_late(rows, doubts=doubts)
    assert records[0].row.leader_id == 3
    rows.die(3)
    assert not rows.write(change, records)
    assert elect_late(rows, doubts=doubts)[1][0].row.leader_id == 2
    # It has lost what a cache had.
    rows.live(3)
    rows.settings = Settings({"flush.policy": "os"})
    assert elect_late(rows, doubts=doubts)[1][0].row.leader_id == 2
    rows.configs["flush.messages"] = "1"
    rows.topic([[1, 2, 3]])
    assert elect_late(rows, doubts=doubts)[1][0].row.leader_id == 3


def test_an_election_fails_if_its_life_is_over(rows: Rows) -> None:
    change, records = elect_late(rows)
    rows.die(2)
    rows.live(2)

    assert not rows.write(change, records)


def test_an_election_fails_if_the_one_in_sync_has_come_back(rows: Rows) -> None:
    change, records = elect_late(rows)
    rows.live(1, "starting")

    assert not rows.write(change, records)


def test_an_election_fails_if_the_row_has_moved_on(rows: Rows) -> None:
    change, records = elect_late(rows)
    rows.part(0, leader=3, epoch=5, life=rows.epochs[3], isr=[3])

    assert not rows.write(change, records)


def test_an_election_done_unknown_to_its_broker_is_not_done_twice(rows: Rows) -> None:
    change, records = elect_late(rows)
    assert rows.write(change, records)
    rows.hear()

    assert rows.decide(change) == []
    assert rows.row().unclean_epoch == 5


def test_an_operator_gets_the_first_replica_that_serves(rows: Rows) -> None:
    rows.hear()
    assert unclean_successor(rows.state, rows.row()) == 2
    rows.die(2)
    rows.live(2, "starting")
    rows.hear()
    assert unclean_successor(rows.state, rows.row()) == 3

    row = elected_uncleanly(rows.state, rows.row(), 3)
    assert (row.leader_id, row.isr, row.unclean_epoch) == (3, [3], row.leader_epoch)
    rows.die(3)
    rows.hear()
    assert unclean_successor(rows.state, rows.row()) == -1
