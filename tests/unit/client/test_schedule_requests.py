"""Questions about scheduled records: who is asked, how pages are merged, and what is unclear."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.support.client.scripted_admin import serve_admins
from tests.support.client.scripted_cluster import CUT, ScriptedCluster, Seen
from tests.support.client.scripted_groups import TOPIC, GroupCluster

from tarry.base import errors
from tarry.base.schedule_outcomes import ALREADY_RELEASED, CANCELLED, UNKNOWN
from tarry.client.errors import BrokerError, SchedulingUnsupported, UnknownTopic
from tarry.client.sync.admin import Admin
from tarry.protocol import api_keys
from tarry.protocol.messages.change_scheduled_records import (
    ChangeScheduledRecordsResponse,
    ScheduledChangeResult,
    SchedulePartitionResult,
    ScheduleTopicResult,
)
from tarry.protocol.messages.list_scheduled_records import (
    ListScheduledRecordsResponse,
    ScheduledBucket,
    ScheduledEntry,
    ScheduledPartition,
)

LIST = api_keys.LIST_SCHEDULED_RECORDS
CHANGE = api_keys.CHANGE_SCHEDULED_RECORDS


class ScheduleCluster(GroupCluster):
    """Two brokers with the topic t of two partitions; `due` is what waits in each."""

    def __init__(self) -> None:
        super().__init__(brokers=2)
        self.topic("t", partitions=2)
        self.topics["t"].logs[1].leader_id = 2
        self.settings[TOPIC, "t"] = {"delay.enable": "true"}
        # As our broker does: what ApiVersions does not name is asked for all the same.
        del self.ranges[LIST], self.ranges[CHANGE]
        self.due: list[list[int]] = [[], []]
        # By s-offset: expression and time zone of what recurs.
        self.crons: dict[int, tuple[str, str]] = {}
        # By partition: the error code and the outcome of a change.
        self.told: list[tuple[int, int]] = [(errors.NONE, UNKNOWN)] * 2
        self.rule(LIST, lambda _, seen: self._list(seen))
        self.rule(CHANGE, lambda _, seen: self._change(seen))

    def _list(self, seen: Seen) -> ListScheduledRecordsResponse:
        told = []
        for asked in seen.request.partitions:
            after = (asked.after_due_ms, asked.after_s_offset)
            places = list(enumerate(self.due[asked.partition_index]))
            behind = sorted((due, at) for at, due in places if (due, at) > after)
            edges = seen.request.bucket_edges_ms
            limit = seen.request.limit
            told.append(
                ScheduledPartition(
                    asked.partition_index,
                    entry_count=len(places),
                    scheduled=[ScheduledEntry(due, at, 1, 10) for due, at in behind[:limit]],
                    has_more=len(behind) > limit,
                    buckets=[
                        ScheduledBucket(sum(start <= due < end for due, _ in behind), 0)
                        for start, end in pairwise(edges)
                    ],
                )
            )
            for each in told[-1].scheduled:
                each.cron, each.time_zone = self.crons.get(each.s_offset, ("", ""))
        return ListScheduledRecordsResponse(partitions=told)

    def _change(self, seen: Seen) -> ChangeScheduledRecordsResponse:
        (topic,) = seen.request.topics
        partitions = []
        for asked in topic.partitions:
            code, outcome = self.told[asked.partition_index]
            result = ScheduledChangeResult(code, None, outcome)
            partitions.append(SchedulePartitionResult(asked.partition_index, [result]))
        return ChangeScheduledRecordsResponse(topics=[ScheduleTopicResult("t", partitions)])


@pytest.fixture
def cluster() -> ScheduleCluster:
    return ScheduleCluster()


@pytest.fixture
def admin(cluster: ScheduleCluster, monkeypatch: pytest.MonkeyPatch) -> Admin:
    return serve_admins(cluster, monkeypatch)()


def refuse_once(code: int) -> Any:
    def answer(cluster: ScriptedCluster, seen: Seen) -> Any:
        (topic,) = seen.request.topics
        partitions = [
            SchedulePartitionResult(each.partition_index, [ScheduledChangeResult(code)])
            for each in topic.partitions
        ]
        return ChangeScheduledRecordsResponse(topics=[ScheduleTopicResult("t", partitions)])

    return answer


# --- Who is asked


def test_a_broker_without_the_setting_is_not_asked(cluster: ScheduleCluster, admin: Admin) -> None:
    cluster.settings[TOPIC, "t"] = {"retention.ms": "5"}

    for ask in (admin.scheduled, admin.schedule_totals):
        with pytest.raises(SchedulingUnsupported, match="has no scheduled records"):
            ask("t")
    with pytest.raises(SchedulingUnsupported):
        admin.cancel_scheduled("t", "a")

    assert not cluster.requests(LIST)
    assert not cluster.requests(CHANGE)


def test_the_setting_is_asked_for_once(cluster: ScheduleCluster, admin: Admin) -> None:
    admin.scheduled("t")
    admin.cancel_scheduled("t", "a")

    assert len(cluster.requests(api_keys.DESCRIBE_CONFIGS)) == 1
    assert {seen.version for seen in cluster.requests(LIST)} == {0}


def test_each_leader_is_asked_about_its_own_partitions(
    cluster: ScheduleCluster, admin: Admin
) -> None:
    admin.scheduled("t")
    admin.cancel_scheduled("t", "a", partition=1)

    asked = [
        (seen.broker_id, [each.partition_index for each in seen.request.partitions])
        for seen in cluster.requests(LIST)
    ]
    assert sorted(asked) == [(1, [0]), (2, [1])]
    assert [seen.broker_id for seen in cluster.requests(CHANGE)] == [2]


def test_one_request_asks_for_no_more_buckets_than_one_answer_has_room_for(
    cluster: ScheduleCluster, admin: Admin
) -> None:
    cluster.topic("wide", partitions=600)
    cluster.settings[TOPIC, "wide"] = {"delay.enable": "true"}
    cluster.due = [[1], *[[]] * 599]

    totals = admin.schedule_totals("wide", edges=range(1_001))

    asked = [
        [each.partition_index for each in seen.request.partitions]
        for seen in cluster.requests(LIST)
    ]
    assert len(asked) == 2
    assert [index for indexes in asked for index in indexes] == list(range(600))
    assert totals.buckets[1].record_count == 1


def test_a_topic_that_is_not_there_is_unknown(admin: Admin) -> None:
    with pytest.raises(UnknownTopic):
        admin.scheduled("nowhere")


def test_what_recurs_has_its_expression_and_its_time_zone(
    cluster: ScheduleCluster, admin: Admin
) -> None:
    cluster.due = [[7, 5], []]
    cluster.crons = {1: ("@daily", "Europe/Berlin")}

    entries = admin.scheduled("t").entries

    assert [(each.due_ms, each.cron, each.time_zone) for each in entries] == [
        (5, "@daily", "Europe/Berlin"),
        (7, None, None),
    ]


# --- Pages


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_of_partitions_are_merged_by_due_time(
    cluster: ScheduleCluster, admin: Admin, limit: int
) -> None:
    cluster.due = [[5, 1, 1, 9, 30, 31, 32, 33], [2, 1, 40, 3]]

    seen = []
    after = None
    while True:
        page = admin.scheduled("t", limit=limit, after=after)
        assert len(page.entries) <= limit
        seen += [(each.due_ms, each.partition, each.s_offset) for each in page.entries]
        after = page.next
        if after is None:
            break

    expected = [
        (due, index, at) for index, dues in enumerate(cluster.due) for at, due in enumerate(dues)
    ]
    assert seen == sorted(expected)
    assert page.totals.entry_count == 12


def test_an_error_of_a_partition_is_raised(cluster: ScheduleCluster, admin: Admin) -> None:
    refusal = ScheduledPartition(0, errors.INVALID_REQUEST, "no delay.enable.")
    cluster.rule(LIST, lambda _, seen: ListScheduledRecordsResponse(partitions=[refusal]))

    with pytest.raises(BrokerError, match=r"no delay\.enable \(INVALID_REQUEST\)"):
        admin.scheduled("t", partitions=[0])


def test_a_damaged_log_is_told_beside_what_is_known(cluster: ScheduleCluster, admin: Admin) -> None:
    known = ScheduledPartition(0, error_message="t-0.schedule is damaged", entry_count=3)
    cluster.rule(LIST, lambda _, seen: ListScheduledRecordsResponse(partitions=[known]))

    totals = admin.schedule_totals("t", partitions=[0])

    assert totals.entry_count == 3
    assert totals.flaws == ("t-0.schedule is damaged",)


def test_a_schedule_that_is_being_read_is_asked_again(
    cluster: ScheduleCluster, admin: Admin
) -> None:
    loading = ScheduledPartition(0, errors.COORDINATOR_LOAD_IN_PROGRESS)
    cluster.script(LIST, lambda _, seen: ListScheduledRecordsResponse(partitions=[loading]))
    cluster.due[0] = [1]

    page = admin.scheduled("t", partitions=[0])

    assert [each.due_ms for each in page.entries] == [1]


# --- Outcomes


@pytest.mark.parametrize(
    ("told", "outcome", "partition"),
    [
        ([UNKNOWN, CANCELLED], "cancelled", 1),
        ([ALREADY_RELEASED, CANCELLED], "cancelled", 1),
        ([ALREADY_RELEASED, UNKNOWN], "already_released", 0),
        ([UNKNOWN, UNKNOWN], "unknown", -1),
    ],
)
def test_the_outcome_is_that_of_the_partition_that_knows_the_id(
    cluster: ScheduleCluster, admin: Admin, told: list[int], outcome: str, partition: int
) -> None:
    cluster.told = [(errors.NONE, each) for each in told]

    found = admin.cancel_scheduled("t", "a")

    assert (found.outcome, found.partition) == (outcome, partition)
    assert not found.is_repeated


def test_a_partition_that_refuses_leaves_it_open_whether_the_id_is_unknown(
    cluster: ScheduleCluster, admin: Admin
) -> None:
    cluster.told = [(errors.INVALID_TIMESTAMP, 0), (errors.NONE, UNKNOWN)]

    with pytest.raises(BrokerError, match="INVALID_TIMESTAMP"):
        admin.move_scheduled("t", 5, "a")

    cluster.told[1] = (errors.NONE, CANCELLED)
    assert admin.cancel_scheduled("t", "a").outcome == "cancelled"


@pytest.mark.parametrize(
    ("first", "is_repeated"),
    [
        (lambda cluster, seen: CUT, True),
        (refuse_once(errors.NOT_LEADER_OR_FOLLOWER), True),
        (refuse_once(errors.COORDINATOR_LOAD_IN_PROGRESS), False),
    ],
)
def test_unknown_behind_a_try_without_an_answer_may_be_its_doing(
    cluster: ScheduleCluster, admin: Admin, first: Any, is_repeated: bool
) -> None:
    cluster.script(CHANGE, first)

    found = admin.cancel_scheduled("t", "a", partition=0)

    assert (found.outcome, found.is_repeated) == ("unknown", is_repeated)
    assert len(cluster.requests(CHANGE)) == 2


# --- Arguments


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"schedule_id": ""},
        {"schedule_id": "a" * 1_025},
        {"schedule_id": "a", "partition": 0, "s_offset": 1},
        {"s_offset": 1},
        {"s_offset": -1, "partition": 0},
        {"schedule_id": "a", "partition": -1},
    ],
)
def test_a_name_that_cannot_be_meant_is_refused_before_anything_is_asked(
    cluster: ScheduleCluster, admin: Admin, terms: dict[str, Any]
) -> None:
    for call in (admin.cancel_scheduled, admin.find_scheduled):
        with pytest.raises(ValueError, match=call.__name__):
            call("t", **terms)

    assert not cluster.requests(CHANGE)


def test_times_limits_and_edges_are_checked(admin: Admin) -> None:
    with pytest.raises(TypeError, match="due_ms"):
        admin.move_scheduled("t", 1.5, "a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="due_from"):
        admin.scheduled("t", -1)
    with pytest.raises(ValueError, match="limit"):
        admin.scheduled("t", limit=0)
    with pytest.raises(ValueError, match="ascend"):
        admin.schedule_totals("t", edges=[2, 1])
    with pytest.raises(ValueError, match="1001 are the most"):
        admin.schedule_totals("t", edges=range(1_002))
    with pytest.raises(ValueError, match="empty"):
        admin.scheduled("t", partitions=[])
