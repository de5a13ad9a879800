"""Operations: a face of one thread, without a lock, does all that clients do in their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.client.group_member import PLACE, GroupScene
from tests.support.client.hand_face import perform
from tests.support.client.producer_scene import producer
from tests.support.client.scripted_cluster import SILENCE, ScriptedCluster, Seen, seeded_random
from tests.support.client.scripted_groups import GroupCluster

from tarry.base import errors
from tarry.client.core.admin.calls import NewTopic
from tarry.client.core.admin.core import AdminCore
from tarry.client.core.consumer.lookup import LATEST
from tarry.client.core.consumer.record_group import RecordGroup
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.group.events import ASSIGNED, LOST, REVOKED, GroupEvent
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.core.operation import WAIT, Done
from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.core.producer.core import ProducerCore
from tarry.client.errors import (
    BufferFull,
    ClientClosed,
    ConcurrentUse,
    DeliveryFailed,
    UnknownTopic,
)
from tarry.client.settings import ClientSettings, ConsumerSettings
from tarry.link.errors import ClientError, TimedOut
from tarry.protocol import api_keys

SERVER = "10.0.0.1:9092"


def record(value: bytes, topic: str = "t") -> tuple[str, int, int, None, bytes, None]:
    return topic, -1, 1_700, None, value, None


def send(cluster: ScriptedCluster, value: bytes, topic: str = "t") -> RecordReceipt:
    core: ProducerCore = cluster.core
    receipt = core.append(*record(value, topic), now_ms=cluster.now_ms)
    return receipt or perform(cluster, core.begin_send(record(value, topic), 1_000, cluster.now_ms))


def values(groups: list[RecordGroup]) -> list[bytes | None]:
    return [one.value for group in groups for one in group.records]


# --- The whole of each client


def test_a_send_to_brokers_that_never_answer_times_out_and_says_so() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster)
    cluster.rule(api_keys.METADATA, lambda cluster, seen: SILENCE)

    with pytest.raises(TimedOut, match="no broker described topic 't' within 1 s: no answer has"):
        send(cluster, b"0")


def test_a_producer_sends_waits_and_flushes() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)

    first = send(cluster, b"0")
    perform(cluster, core.begin_wait(first, 10_000, cluster.now_ms))
    rest = [send(cluster, b"%d" % number) for number in (1, 2)]
    perform(cluster, core.begin_flush(10_000, cluster.now_ms))

    assert [one.offset for one in (first, *rest)] == [0, 1, 2]
    assert [one.value for one in log.records()] == [b"0", b"1", b"2"]
    assert perform(cluster, core.begin_topic_query("t", 1_000, cluster.now_ms)) == [0]


def test_a_member_is_told_reads_commits_and_leaves() -> None:
    scene = GroupScene(auto_offset_reset="earliest")
    scene.cluster.topics["t"].logs[0].add(b"0", b"1")
    cluster, core = scene.cluster, scene.core
    told: list[GroupEvent] = []

    core.subscribe(["t"])
    groups = perform(cluster, core.begin_poll(500, 5_000, cluster.now_ms), told.append)
    perform(cluster, core.begin_commit({PLACE: 1}, 5_000, cluster.now_ms))
    reached = perform(cluster, core.begin_committed([PLACE], 5_000, cluster.now_ms))
    ends = perform(cluster, core.begin_offsets({PLACE: LATEST}, 5_000, cluster.now_ms))
    perform(cluster, closing(core, cluster), told.append)

    assert values(groups) == [b"0", b"1"]
    assert told == [GroupEvent(ASSIGNED, [PLACE]), GroupEvent(REVOKED, [PLACE])]
    assert (reached, ends) == ({PLACE: CommittedOffset(1)}, {PLACE: 2})
    assert scene.committed == 1
    assert len(scene.requests(api_keys.LEAVE_GROUP)) == 1


def test_an_administrator_makes_describes_and_deletes() -> None:
    cluster = GroupCluster()
    core: AdminCore = cluster.attach(
        AdminCore(ClientSettings(bootstrap_servers=SERVER), seeded_random(), cluster.now_ms)
    )
    asked = core.requests

    def ask(steps: Any) -> Any:
        return perform(cluster, core.begin_errand(steps, 5_000, cluster.now_ms))

    (made,) = ask(asked.create_topics([NewTopic("made", 1)], validate_only=False))
    (found,) = ask(asked.describe_topics(["made"]))
    (gone,) = ask(asked.delete_topics(["made"]))
    with pytest.raises(UnknownTopic, match="'made' does not exist"):
        ask(asked.describe_topics(["made"]))

    assert (made.error, gone.error) == (None, None)
    assert list(found.partitions) == [0]


# --- Steps


def closing(core: GroupConsumerCore, cluster: ScriptedCluster, timeout_ms: int = 5_000) -> Any:
    return core.begin_close(timeout_ms, cluster.now_ms, leave=None)


def reading(**settings: Any) -> GroupScene:
    """A member that has read two records of its partition."""
    scene = GroupScene(auto_offset_reset="earliest", **settings)
    scene.cluster.topics["t"].logs[0].add(b"0", b"1")
    scene.core.subscribe(["t"])
    perform(scene.cluster, scene.core.begin_poll(500, 5_000, scene.cluster.now_ms))
    return scene


def test_a_notice_names_the_operation_that_may_go_on_and_comes_once() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster)
    receipts = [send(cluster, b"0"), send(cluster, b"1")]
    waits = [core.begin_wait(one, 10_000, cluster.now_ms) for one in receipts]
    steps = [one.step(cluster.now_ms) for one in waits]

    cluster.run_until(lambda: all(one.is_ready for one in waits))

    assert steps == [WAIT, WAIT]
    assert [one for one in cluster.notices if one in waits] == waits
    assert all(isinstance(one.step(cluster.now_ms), Done) for one in waits)


def test_a_wait_follows_its_record_into_the_half_of_a_batch() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)

    def too_large(cluster: ScriptedCluster, seen: Seen) -> Any:
        log.leader_id = 99
        response = cluster.produce(seen)
        log.leader_id = 1
        assert response is not None
        response.responses[0].partition_responses[0].error_code = errors.MESSAGE_TOO_LARGE
        return response

    cluster.script(api_keys.PRODUCE, too_large)
    receipts = [send(cluster, b"%d" % number) for number in range(4)]

    perform(cluster, core.begin_wait(receipts[3], 10_000, cluster.now_ms))

    assert [one.offset for one in receipts] == [0, 1, 2, 3]
    assert len(cluster.requests(api_keys.PRODUCE)) == 3


def test_what_is_revoked_is_committed_before_its_callback() -> None:
    scene = reading()
    committed_then: list[tuple[int, int]] = []

    scene.core.subscribe(["another"])
    perform(
        scene.cluster,
        scene.core.begin_poll(500, 100, scene.cluster.now_ms),
        lambda event: committed_then.append((event.kind, scene.committed)),
    )

    assert committed_then[0] == (REVOKED, 2)


def test_without_automatic_commits_nothing_is_committed_before_a_callback() -> None:
    scene = reading(enable_auto_commit=False)

    scene.core.subscribe(["another"])
    perform(scene.cluster, scene.core.begin_poll(500, 100, scene.cluster.now_ms))

    assert scene.requests(api_keys.OFFSET_COMMIT) == []


def test_a_callback_that_raises_ends_its_poll_and_is_not_called_again() -> None:
    scene = reading()
    told: list[int] = []

    def fail(event: GroupEvent) -> None:
        told.append(event.kind)
        raise ZeroDivisionError

    scene.core.subscribe(["another"])
    with pytest.raises(ZeroDivisionError):
        perform(scene.cluster, scene.core.begin_poll(500, 100, scene.cluster.now_ms), fail)
    perform(
        scene.cluster,
        scene.core.begin_poll(500, 100, scene.cluster.now_ms),
        lambda event: told.append(event.kind),
    )

    assert told.count(REVOKED) == 1


@pytest.mark.parametrize("begin", [lambda core, now: core.begin_poll(1, 0, now), "close"])
def test_a_callback_neither_polls_nor_closes(begin: Any) -> None:
    scene = GroupScene()

    def misuse(event: GroupEvent) -> None:
        if begin == "close":
            closing(scene.core, scene.cluster)
        else:
            begin(scene.core, scene.cluster.now_ms)

    scene.core.subscribe(["t"])
    with pytest.raises(ConcurrentUse, match="was called inside on_assigned"):
        perform(scene.cluster, scene.core.begin_poll(500, 5_000, scene.cluster.now_ms), misuse)


def test_the_callback_of_a_commit_is_called_in_a_poll_and_may_not_poll() -> None:
    scene = reading(enable_auto_commit=False)
    cluster, core = scene.cluster, scene.core

    def misuse(offsets: object, error: object) -> None:
        core.begin_poll(1, 0, cluster.now_ms)

    core.commit_async({PLACE: 1}, misuse, cluster.now_ms)
    poll = core.begin_poll(500, 100, cluster.now_ms)
    with pytest.raises(ConcurrentUse, match="poll was called inside the callback of commit_async"):
        perform(cluster, poll, lambda event: event.tell(None, None))

    assert perform(cluster, core.begin_poll(500, 100, cluster.now_ms)) == []
    assert scene.committed == 1


def test_what_begins_in_a_close_has_the_time_of_the_close() -> None:
    scene = reading()
    for key in (api_keys.OFFSET_FETCH, api_keys.HEARTBEAT):
        scene.cluster.rule(key, lambda cluster, seen: SILENCE)
    began_ms = scene.cluster.now_ms

    def ask(event: object) -> None:
        perform(scene.cluster, scene.core.begin_committed([PLACE], 60_000, scene.cluster.now_ms))

    with pytest.raises(TimedOut, match="did not tell the committed offsets"):
        perform(scene.cluster, closing(scene.core, scene.cluster, 300), ask)

    assert scene.cluster.now_ms <= began_ms + 310
    assert len(scene.requests(api_keys.LEAVE_GROUP)) == 1


def test_a_poll_that_is_given_up_loses_nothing_and_finishes_nothing() -> None:
    scene = GroupScene(auto_offset_reset="earliest")
    scene.join()
    cluster, core = scene.cluster, scene.core
    given_up = core.begin_poll(500, 5_000, cluster.now_ms)
    assert given_up.step(cluster.now_ms) is WAIT
    cluster.topics["t"].logs[0].add(b"0", b"1")
    cluster.run_until(lambda: given_up.is_ready)
    given_up.end(cluster.now_ms)

    assert core.finished_offsets()[PLACE].offset == 0
    groups = perform(cluster, core.begin_poll(500, 5_000, cluster.now_ms))
    assert values(groups) == [b"0", b"1"]


def test_a_poll_ends_in_time_and_when_it_is_woken() -> None:
    scene = reading()
    cluster, core = scene.cluster, scene.core
    began_ms = cluster.now_ms

    late = perform(cluster, core.begin_poll(500, 700, cluster.now_ms))
    took_ms = cluster.now_ms - began_ms
    core.is_woken = True
    woken = perform(cluster, core.begin_poll(500, 60_000, cluster.now_ms))

    assert (late, took_ms) == ([], 700)
    assert (woken, core.was_woken) == ([], True)
    assert cluster.now_ms < began_ms + 1_000


def test_what_is_lost_is_told_before_records_come() -> None:
    scene = reading()
    scene.codes[api_keys.HEARTBEAT] = [errors.UNKNOWN_MEMBER_ID]
    scene.cluster.run_until(lambda: scene.core.membership.has_event)
    scene.cluster.topics["t"].logs[0].add(b"2")
    told: list[int] = []

    groups = perform(
        scene.cluster,
        scene.core.begin_poll(500, 5_000, scene.cluster.now_ms),
        lambda event: told.append(event.kind),
    )

    assert told == [LOST, ASSIGNED]
    assert groups


@pytest.mark.parametrize("silent", [api_keys.OFFSET_COMMIT, api_keys.LEAVE_GROUP])
def test_a_close_whose_coordinator_is_silent_ends_in_time(silent: int) -> None:
    scene = reading()
    for key in (silent, api_keys.HEARTBEAT):
        scene.cluster.rule(key, lambda cluster, seen: SILENCE)
    began_ms = scene.cluster.now_ms

    perform(scene.cluster, closing(scene.core, scene.cluster, 300))

    assert scene.cluster.now_ms == began_ms + 300
    assert len(scene.requests(api_keys.LEAVE_GROUP)) == 1


# --- Time, and the end of a client


def test_a_record_without_room_waits_and_says_so_in_time() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster, buffer_memory=1_100, batch_size=500)
    cluster.rule(api_keys.PRODUCE, lambda cluster, seen: SILENCE)
    send(cluster, b"x" * 900)

    with pytest.raises(BufferFull, match="stayed full for 1000 ms"):
        send(cluster, b"y" * 900)
    given_up = core.begin_send(record(b"z"), 1_000, cluster.now_ms)
    given_up.end(cluster.now_ms)
    core.accumulator.fail_all(ClientError("the room is given back"))
    cluster.run_for(1_000)

    assert not core.has_work


def test_a_record_that_waits_for_room_leaves_in_the_turn_that_brings_it() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster, buffer_memory=1_100, batch_size=500, linger_ms=0)
    send(cluster, b"x" * 900)

    second = perform(cluster, core.begin_send(record(b"y" * 900), 1_000, cluster.now_ms))
    perform(cluster, core.begin_wait(second, 1_000, cluster.now_ms))

    assert second.offset == 1


def test_a_flush_raises_for_records_whose_receipts_nobody_asked() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster, delivery_timeout_ms=2_000, request_timeout_ms=1_000)
    cluster.rule(api_keys.PRODUCE, lambda cluster, seen: SILENCE)
    send(cluster, b"0")

    with pytest.raises(DeliveryFailed, match="1 record was not delivered"):
        perform(cluster, core.begin_flush(10_000, cluster.now_ms))


Begin = Callable[[Any, int], Any]


@pytest.mark.parametrize(
    "begin",
    [
        lambda core, now_ms: core.begin_poll(500, 60_000, now_ms),
        lambda core, now_ms: core.begin_topic_query("u", 60_000, now_ms),
        lambda core, now_ms: core.begin_offsets({("u", 0): LATEST}, 60_000, now_ms),
        lambda core, now_ms: core.begin_committed([("u", 0)], 60_000, now_ms),
        lambda core, now_ms: core.begin_commit({("u", 0): 1}, 60_000, now_ms),
    ],
)
def test_what_waits_when_a_client_is_closed_hears_of_it(begin: Begin) -> None:
    cluster = ScriptedCluster()
    cluster.refused[cluster.brokers[1]] = SILENCE
    settings = ConsumerSettings(bootstrap_servers=SERVER, group_id="g")
    core = cluster.attach(GroupConsumerCore(settings, seeded_random(), cluster.now_ms))
    operation = begin(core, cluster.now_ms)
    assert operation.step(cluster.now_ms) is WAIT
    cluster.run_for(100)

    core.close(cluster.now_ms)

    assert operation.is_ready
    with pytest.raises(ClientClosed):
        operation.step(cluster.now_ms)


def test_questions_that_nobody_answers_end_in_time_with_the_reason() -> None:
    cluster = ScriptedCluster()
    cluster.refused[cluster.brokers[1]] = "connection refused"
    settings = ConsumerSettings(bootstrap_servers=SERVER, group_id="g")
    core = cluster.attach(GroupConsumerCore(settings, seeded_random(), cluster.now_ms))
    began_ms = cluster.now_ms

    with pytest.raises(TimedOut, match="connection refused"):
        perform(cluster, core.begin_topic_query("t", 2_000, cluster.now_ms))
    with pytest.raises(TimedOut, match="committed offsets in time"):
        perform(cluster, core.begin_committed([("t", 0)], 2_000, cluster.now_ms))

    assert cluster.now_ms == began_ms + 4_000
