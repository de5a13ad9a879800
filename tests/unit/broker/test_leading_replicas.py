"""A leader and what its followers tell: how far records count, who is in sync, who is refused."""

from __future__ import annotations

import logging

import pytest
from tests.support.broker.broker_user import User, a_batch, records_in
from tests.support.broker.leader_scene import (
    FETCH_VERSION,
    LIVES,
    SECOND,
    SHARED,
    THIRD,
    LeaderScene,
    parts_of,
)
from tests.support.metadata_stores import GivenChange

from tarry.base import errors
from tarry.broker.part import Part
from tarry.broker.replication.fetch_sessions import LATE_FETCH_MS
from tarry.broker.replication.leader import LOOK_MS, REST_LOOK_MS, ReplicaLeader
from tarry.cluster.decisions.isr_changes import ChangeIsr
from tarry.cluster.decisions.reassignments import begin_reassignment
from tarry.cluster.state.records import LifeEnded, PartitionChanged
from tarry.log.batch_walk import Flaw
from tarry.partition.followers import TURNED_TO_MS
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol import api_keys
from tarry.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tarry.protocol.messages.produce import ProduceResponse

LAG_MS = 30_000
# The broker epoch of the leader's next life.
NEW_LIFE = 21


def codes(scene: LeaderScene) -> list[int]:
    return [
        partition.error_code
        for answer in scene.operator.answers()
        if isinstance(answer, ProduceResponse)
        for topic in answer.responses
        for partition in topic.partition_responses
    ]


# --- The high watermark.


def test_records_count_once_all_in_sync_have_them_on_their_disks() -> None:
    scene = LeaderScene()
    scene.operator.send_produce(a_batch(b"a", b"b"), topic="shared")
    scene.hand.settle()
    seen = [scene.high_watermark]

    for broker_id, offset in ((SECOND, 2), (THIRD, 1), (THIRD, 2)):
        scene.has(broker_id, offset, last_epoch=0 if offset else -1)
        seen.append(scene.high_watermark)

    assert seen == [0, 0, 1, 2]
    assert codes(scene) == [errors.NONE]


def test_a_replica_reads_to_the_written_end_and_a_consumer_to_the_high_watermark() -> None:
    scene = LeaderScene()
    scene.write(b"a", b"b")

    copied = scene.has(SECOND, 0)
    read = scene.operator.fetch(0, topic="shared")

    assert [record.value for record in records_in(copied)] == [b"a", b"b"]
    assert (copied.high_watermark, copied.log_start_offset) == (0, 0)
    assert read.high_watermark == 0


def test_the_high_watermark_rests_below_the_floor() -> None:
    scene = LeaderScene(isr=(1,), min_insync_replicas="2")

    scene.write(b"a")

    assert scene.partition().leader_contribution() == 1
    assert scene.high_watermark == 0


def test_under_lazy_flushes_written_ends_count() -> None:
    scene = LeaderScene(isr=(1, 2), settings={"flush.policy": "os"})
    scene.operator.send_produce(a_batch(b"a"), topic="shared")
    scene.hand.turn()

    scene.has(SECOND, 1, last_epoch=0)

    assert scene.high_watermark == 1


# Who may not move an end: what is wrong with the fetch, and its answer.
REFUSED = [
    ("an epoch that was fenced", {"epoch": 0}, errors.FENCED_LEADER_EPOCH),
    ("an epoch to come", {"epoch": 2}, errors.UNKNOWN_LEADER_EPOCH),
    ("no epoch", {"epoch": -1}, errors.UNKNOWN_LEADER_EPOCH),
    ("a negative offset", {"epoch": 1, "offset": -1}, errors.OFFSET_OUT_OF_RANGE),
    ("past the end", {"epoch": 1, "offset": 9}, errors.OFFSET_OUT_OF_RANGE),
    ("another disk", {"epoch": 1, "directory": b"x" * 16}, errors.LOG_DIR_NOT_FOUND),
    ("no disk", {"epoch": 1, "directory": bytes(16)}, errors.LOG_DIR_NOT_FOUND),
    ("an unknown topic", {"epoch": 1, "topic_id": b"n" * 16}, errors.UNKNOWN_TOPIC_ID),
]


@pytest.mark.parametrize(
    ("terms", "code"), [(terms, code) for _, terms, code in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_a_fetch_that_is_refused_moves_no_end(terms: dict[str, object], code: int) -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.bring_row(leader_epoch=1)
    scene.write(b"a")
    given = dict(terms)
    offset = given.pop("offset", 1)
    assert isinstance(offset, int)

    answer = scene.has(SECOND, offset, **given)

    assert answer.error_code == code
    assert scene.high_watermark == 0
    followers = scene.partition().leadership.followers
    assert followers is not None
    assert followers.by_id[SECOND].copies[0].end == -1


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"broker_epoch": LIVES[SECOND] - 1}, errors.STALE_BROKER_EPOCH),
        ({"broker_epoch": LIVES[SECOND] + 1}, errors.STALE_BROKER_EPOCH),
        ({"broker_epoch": -1}, errors.STALE_BROKER_EPOCH),
        ({"cluster_id": "another"}, errors.INCONSISTENT_CLUSTER_ID),
        ({"session": (77, 1)}, errors.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
def test_a_fetch_that_is_refused_as_a_whole(terms: dict[str, object], code: int) -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a")

    answer = scene.fetch(SECOND, {0: 1}, **terms)

    assert (answer.error_code, answer.responses) == (code, [])
    assert scene.high_watermark == 0


def test_a_fetch_as_a_replica_through_another_listener_is_refused() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a")
    scene.broker.neighbours.replica_fetches._listener = "INTERNAL"  # type: ignore[union-attr]

    answer = scene.fetch(SECOND, {0: 1}, last_epoch=0)

    assert answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    assert scene.high_watermark == 0


def test_who_is_no_replica_is_refused_as_in_kafka() -> None:
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    scene.write(b"a")

    answer = scene.has(THIRD, 1, last_epoch=0)

    assert answer.error_code == errors.UNKNOWN_LEADER_EPOCH
    assert records_in(answer) == []


def test_a_dead_life_moves_nothing_though_its_fetch_comes_late() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a")
    scene.die(SECOND)

    answer = scene.fetch(SECOND, {0: 1}, last_epoch=0)

    assert answer.error_code == errors.STALE_BROKER_EPOCH
    assert scene.high_watermark in (0, 1)
    assert scene.isr() == [1]


# --- Divergence.  The leader has records 0 and 1 of epoch 0, 2 and 3 of epoch 2.

DIVERGING = """
# last-epoch  offset   answer

  2           4        -
  2           3        -
  2           5        2,4
  3           4        2,4
  1           3        0,2
  1           2        0,2
  0           2        -
  0           3        0,2
  -1          0        -
"""


@pytest.mark.parametrize(
    ("last_epoch", "offset", "expected"),
    [line.split() for line in DIVERGING.splitlines() if line.strip() and line[0] != "#"],
)
def test_a_log_that_diverges_is_told_where_and_counts_for_nothing(
    last_epoch: str, offset: str, expected: str
) -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a", b"b")
    scene.bring_row(leader_epoch=2)
    scene.write(b"c", b"d")

    answer = scene.has(SECOND, int(offset), last_epoch=int(last_epoch), epoch=2)

    found = answer.diverging_epoch
    told = "-" if found is None or found.epoch < 0 else f"{found.epoch},{found.end_offset}"
    assert (answer.error_code, told) == (errors.NONE, expected)
    followers = scene.partition().leadership.followers
    assert followers is not None
    assert followers.by_id[SECOND].copies[0].end == (int(offset) if expected == "-" else -1)


# --- Who is in sync.


def test_a_replica_that_has_everything_joins_and_counts_before_it_has_joined() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a")
    scene.has(SECOND, 1, last_epoch=0)

    scene.has(THIRD, 1, last_epoch=0)
    before = scene.isr()
    scene.hand.settle()

    assert (before, scene.isr()) in [([1, 2], [1, 2, 3]), ([1, 2, 3], [1, 2, 3])]
    scene.write(b"b")
    scene.has(SECOND, 2, last_epoch=0)
    assert scene.high_watermark == 1
    scene.has(THIRD, 2, last_epoch=0)
    assert scene.high_watermark == 2


def test_a_replica_joins_only_with_all_that_an_earlier_leader_may_have_committed() -> None:
    """J: not below the start of the leader epoch, though the high watermark lags behind it."""
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a", b"b")
    scene.bring_row(leader_epoch=1)
    assert scene.partition().epoch_start == 2

    scene.has(THIRD, 1, epoch=1, last_epoch=0)
    scene.hand.settle()
    early = scene.isr()
    scene.has(SECOND, 1, epoch=1, last_epoch=0)
    scene.has(THIRD, 2, epoch=1, last_epoch=0)
    scene.hand.settle()

    assert (early, scene.isr()) == ([1, 2], [1, 2, 3])


def test_a_replica_that_was_taken_away_and_comes_back_brings_no_old_offset() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a", b"b")
    scene.has(SECOND, 2, last_epoch=0)
    scene.has(THIRD, 0)

    for target in ([1, 2], [1, 2, 3]):
        # Row after row, as they are decided.
        before = scene.broker.cluster.topics["shared"].partitions[0]
        decision = begin_reassignment(scene.broker.cluster, before, target)
        assert decision is not None
        scene.change(PartitionChanged(topic_id=SHARED, index=0, row=decision.row))
    # Its log is empty by now, and this fetch was sent before.
    late = scene.has(THIRD, 2, epoch=0, last_epoch=0)
    after_late = scene.isr()
    scene.has(SECOND, 2, epoch=1, last_epoch=0)
    true = scene.has(THIRD, 0, epoch=1)

    assert late.error_code == errors.FENCED_LEADER_EPOCH
    assert (after_late, true.error_code, scene.isr()) == ([1, 2], errors.NONE, [1, 2])


@pytest.mark.parametrize("phase", ["starting", "leaving"])
def test_who_does_not_serve_does_not_join(phase: str) -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.live(THIRD, 13, phase)

    scene.has(THIRD, 0)
    scene.hand.settle()

    assert scene.isr() == [1, 2]


def test_an_ended_life_is_out_at_once_but_for_the_floor() -> None:
    scene = LeaderScene(min_insync_replicas="2")

    scene.die(THIRD)
    first = scene.isr()
    scene.die(SECOND)

    assert (first, scene.isr()) == ([1, 2], [1, 2])
    answer = scene.operator.produce(a_batch(b"a"), topic="shared")
    assert answer.error_code == errors.NOT_ENOUGH_REPLICAS


def test_who_stayed_for_the_floor_goes_when_another_has_joined() -> None:
    scene = LeaderScene(isr=(1, 3), min_insync_replicas="2")
    scene.die(THIRD)
    before = scene.isr()

    scene.has(SECOND, 0)
    scene.hand.settle()
    scene.pass_ms(1_500)

    assert (before, scene.isr()) == ([1, 3], [1, 2])
    scene.operator.send_produce(a_batch(b"a"), topic="shared")
    scene.has(SECOND, 0)
    scene.has(SECOND, 1, last_epoch=0)
    assert codes(scene) == [errors.NONE]


def test_who_lags_goes_after_the_time_that_is_allowed() -> None:
    scene = LeaderScene()
    session = {}
    for broker_id in (SECOND, THIRD):
        session[broker_id] = scene.fetch(broker_id, {0: 0}).session_id
    scene.write(b"a")
    number = 1
    waited = 0
    while waited < 2 * LAG_MS and THIRD in scene.isr():
        # The second one keeps up, the third one is silent.
        scene.fetch(SECOND, {0: 1}, last_epoch=0, session=(session[SECOND], number))
        number += 1
        scene.pass_ms(1_000)
        waited += 1_000

    assert scene.isr() == [1, 2]
    assert LAG_MS <= waited <= 1.6 * LAG_MS
    assert scene.high_watermark == 1


def test_a_follower_without_news_is_caught_up_as_long_as_its_session_fetches() -> None:
    scene = LeaderScene(isr=(1, 2), partitions=2)
    session = scene.fetch(SECOND, {0: 0, 1: 0}).session_id
    scene.write(b"a")
    for number in range(1, 70):
        scene.fetch(SECOND, {0: 1} if number == 1 else {}, last_epoch=0, session=(session, number))
        scene.pass_ms(1_000)

    assert (scene.isr(0), scene.isr(1)) == ([1, 2], [1, 2])


def test_who_has_lost_what_it_had_flushed_is_out_at_once_and_loudly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = LeaderScene(isr=(1, 2), min_insync_replicas="2")
    scene.write(b"a", b"b")
    session = scene.fetch(SECOND, {0: 2}, last_epoch=0).session_id
    assert scene.high_watermark == 2

    with caplog.at_level(logging.ERROR):
        scene.has(SECOND, 1, last_epoch=0, session=(session, 1))
        scene.hand.settle()

    assert scene.isr() == [1]
    assert "broker 2 has lost records of shared-0" in caplog.text
    # Below the floor nothing counts until it has joined again.
    scene.write(b"c")
    assert scene.high_watermark == 2
    scene.has(SECOND, 3, last_epoch=0)
    scene.hand.settle()
    scene.pass_ms(1_500)
    assert scene.isr() == [1, 2]
    assert scene.high_watermark == 3


def test_a_shrink_counts_only_when_it_is_applied() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a")
    scene.broker.store.change(GivenChange(LifeEnded(broker_id=SECOND)))
    scene.hand.turn()
    scene.hand.turn(*scene.hand.disk.complete_flushes())
    # The life is over and the row is asked for, and not written yet.
    scene.hand.turn()
    before = (scene.isr(), scene.high_watermark)
    scene.hand.settle()

    assert (before, scene.isr(), scene.high_watermark) == (([1, 2], 0), [1], 1)


def test_followers_get_nothing_behind_a_failed_write_before_its_cut_is_durable() -> None:
    """A crash could bring back what it left in the place of what they would have by then."""
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a")
    session = scene.fetch(SECOND, {0: 1}, last_epoch=0).session_id
    scene.hand.disk.fail_writes(1, "shared-0/")
    scene.operator.send_produce(a_batch(b"lost"), topic="shared", acks=1)
    scene.hand.turn()
    scene.operator.send_produce(a_batch(b"b"), topic="shared", acks=1)
    scene.hand.turn()
    assert scene.partition().log.written_end_offset == 2

    scene.link(SECOND).send(
        api_keys.FETCH, FETCH_VERSION, scene.request(SECOND, {}, session=(session, 1), wait_ms=500)
    )
    scene.hand.turn()
    early = scene.answered(SECOND)
    scene.hand.settle()
    (late,) = scene.answered(SECOND)

    assert early == []
    assert [record.value for record in records_in(parts_of(late)[0])] == [b"b"]


# --- Roles.


def test_what_waits_ends_when_another_one_leads() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.operator.send_produce(a_batch(b"a"), topic="shared")
    scene.hand.settle()
    assert codes(scene) == []

    scene.bring_row(leader_id=SECOND, leader_epoch=1, broker_epoch=LIVES[SECOND])

    assert codes(scene) == [errors.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("epoch", [1, 2])
def test_what_waits_goes_on_waiting_in_an_epoch_of_the_same_leader(epoch: int) -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.operator.send_produce(a_batch(b"a"), topic="shared")
    scene.hand.settle()

    # Another one may have led in the epoch between.
    scene.bring_row(leader_epoch=epoch, replicas=[1, 2])
    waiting = codes(scene)
    scene.has(SECOND, 1, epoch=epoch, last_epoch=0)

    assert waiting == ([] if epoch == 1 else [errors.NOT_LEADER_OR_FOLLOWER])
    assert scene.high_watermark == 1
    assert codes(scene) == ([errors.NONE] if epoch == 1 else [])


def test_who_asks_the_wrong_broker_is_told_the_right_one() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.bring_row(leader_id=SECOND, leader_epoch=1, broker_epoch=LIVES[SECOND])
    user = User(scene.hand)

    request = user.fetch_request(0, topic="shared", version=16)
    fetched = user.client.ask(api_keys.FETCH, 16, request)
    produced = user.client.ask(
        api_keys.PRODUCE, 10, user.produce_request(a_batch(b"a"), topic="shared")
    )

    leader = fetched.responses[0].partitions[0].current_leader  # type: ignore[attr-defined]
    assert (leader.leader_id, leader.leader_epoch) == (SECOND, 1)
    told = [(each.node_id, each.host) for each in fetched.node_endpoints]  # type: ignore[attr-defined]
    assert told == [(SECOND, "b2")]
    answer = produced.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    assert answer.error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (SECOND, 1)
    assert [each.node_id for each in produced.node_endpoints] == [SECOND]  # type: ignore[attr-defined]


def test_a_leader_whose_life_is_over_is_not_told() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.bring_row(leader_id=SECOND, leader_epoch=1, broker_epoch=LIVES[SECOND])
    scene.die(SECOND)

    answer = scene.operator.produce(a_batch(b"a"), topic="shared")

    assert answer.error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader is None


def test_a_new_leader_tells_no_end_until_it_knows_what_was_committed() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a", b"b")
    scene.has(SECOND, 1, last_epoch=0)
    scene.bring_row(leader_epoch=1)
    latest, earliest = -1, -2
    early = [scene.operator.list_offsets(at, topic="shared") for at in (latest, earliest)]

    scene.has(SECOND, 2, epoch=1, last_epoch=0)

    late = scene.operator.list_offsets(latest, topic="shared")
    assert [each.error_code for each in early] == [errors.OFFSET_NOT_AVAILABLE, errors.NONE]
    assert (late.error_code, late.offset) == (errors.NONE, 2)


def test_a_consumer_of_a_new_leader_is_not_told_that_it_is_at_the_end() -> None:
    """What an earlier leader acknowledged is there, and is told a moment later."""
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a", b"b")
    scene.has(SECOND, 1, last_epoch=0)
    scene.bring_row(leader_epoch=1)

    early = scene.operator.fetch(1, topic="shared")
    scene.has(SECOND, 2, epoch=1, last_epoch=0)
    late = scene.operator.fetch(1, topic="shared")

    assert (early.error_code, len(early.records or b"")) == (errors.NONE, 0)
    # A client takes its offset for the end when it is told that nothing lies behind it.
    assert (early.high_watermark, early.last_stable_offset) == (2, 2)
    assert (late.high_watermark, late.last_stable_offset) == (2, 2)
    assert len(late.records or b"") > 0


def test_ends_that_were_told_in_an_earlier_epoch_are_forgotten() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.has(SECOND, 0)
    scene.write(b"a")
    scene.bring_row(leader_epoch=1)
    followers = scene.partition().leadership.followers
    assert followers is not None
    assert followers.by_id[SECOND].copies[0].end == -1

    scene.write(b"b")

    assert scene.high_watermark == 0


# --- May act: (a) lease, (b) followers have turned to it, (c) alone in sync.

ACTS = """
# lease  isr  fetched-ms-ago  acts

  yes    1,2  -               yes
  no     1    -               yes
  no     1,2  -               no
  no     1,2  1000            yes
  no     1,2  2000            no
"""


@pytest.mark.parametrize(
    ("lease", "isr", "ago", "expected"),
    [line.split() for line in ACTS.splitlines() if line.strip() and line[0] != "#"],
)
def test_when_a_leader_may_act(lease: str, isr: str, ago: str, expected: str) -> None:
    scene = LeaderScene(isr=tuple(int(each) for each in isr.split(",")), replicas=(1, 2))
    if ago != "-":
        scene.follows(SECOND, 0)
    scene.is_alive = lease == "yes"
    scene.hand.turn(after_ms=0 if ago == "-" else int(ago))

    answers = [
        scene.operator.produce(a_batch(b"a"), topic="shared", acks=1).error_code,
        scene.operator.fetch(0, topic="shared").error_code,
        scene.operator.list_offsets(-2, topic="shared").error_code,
    ]

    code = errors.NONE if expected == "yes" else errors.NOT_LEADER_OR_FOLLOWER
    assert answers == [code, code, code]


def test_a_fetch_that_was_long_on_its_way_does_not_tell_that_its_sender_follows_still() -> None:
    """A link that was cut brings it when it is whole again; the follower may follow another."""
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    session = scene.fetch(SECOND, {0: 0}).session_id
    scene.is_alive = False
    scene.pass_ms(5_000)

    scene.fetch(SECOND, {}, session=(session, 1))
    late = scene.operator.fetch(0, topic="shared").error_code
    scene.pass_ms(LATE_FETCH_MS - 1)
    scene.fetch(SECOND, {}, session=(session, 2))
    soon = scene.operator.fetch(0, topic="shared").error_code

    assert (late, soon) == (errors.NOT_LEADER_OR_FOLLOWER, errors.NONE)


def test_the_first_fetch_of_a_session_does_not_tell_that_its_sender_follows_still() -> None:
    """A link that was cut may bring it late; the next one was sent after its answer."""
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    scene.is_alive = False
    scene.pass_ms(5_000)

    session = scene.fetch(SECOND, {0: 0}).session_id
    first = scene.operator.fetch(0, topic="shared").error_code
    scene.fetch(SECOND, {}, session=(session, 1))
    next_one = scene.operator.fetch(0, topic="shared").error_code

    assert (first, next_one) == (errors.NOT_LEADER_OR_FOLLOWER, errors.NONE)


def test_who_may_not_act_does_not_name_itself_as_the_leader() -> None:
    """librdkafka would believe it, and ask nobody else."""
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    scene.is_alive = False
    scene.hand.turn(after_ms=2_000)
    user = scene.operator
    produced = user.produce(a_batch(b"a"), topic="shared", version=11)
    request = user.fetch_request(0, topic="shared", version=16)
    fetched = user.client.ask(api_keys.FETCH, 16, request)

    assert produced.error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert produced.current_leader is None
    (answer,) = fetched.responses[0].partitions  # type: ignore[attr-defined]
    assert answer.error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader is None
    assert fetched.node_endpoints == []  # type: ignore[attr-defined]


class Moved(Part):
    """Names of partitions of which it was said that they moved."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_moved(self, partition: ReplicatedLog) -> None:
        self.names.append(partition.name)


def test_who_may_not_act_tells_nobody_that_it_leads() -> None:
    """Else a client that asks this broker alone stays with it for as long as it is cut off."""
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    scene.is_alive = False
    scene.hand.turn(after_ms=2_000)
    client = scene.operator.client

    request = MetadataRequest([MetadataRequestTopic(name="shared")])
    told = client.ask(api_keys.METADATA, 12, request)

    (answer,) = told.topics[0].partitions  # type: ignore[attr-defined]
    assert (answer.error_code, answer.leader_id) == (errors.LEADER_NOT_AVAILABLE, -1)


def test_who_leads_no_more_and_is_not_told_of_it_yet_tells_nobody_that_it_leads() -> None:
    """Its lease is gone, and the watch that would tell that its life is over lags."""
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    scene.is_alive = False
    hosting = scene.hand.broker.hosting
    scene.member.epoch = -1
    hosting.on_own_life()

    request = MetadataRequest([MetadataRequestTopic(name="shared")])
    told = scene.operator.client.ask(api_keys.METADATA, 12, request)

    (answer,) = told.topics[0].partitions  # type: ignore[attr-defined]
    assert (answer.error_code, answer.leader_id) == (errors.LEADER_NOT_AVAILABLE, -1)


def test_a_producer_that_waits_is_sent_away_by_a_leader_that_may_not_act_any_more() -> None:
    """Its followers may have turned to another: nothing that it waits for may ever come."""
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    scene.follows(SECOND, 0)
    scene.is_alive = False
    scene.operator.send_produce(a_batch(b"a"), topic="shared")
    scene.pass_ms(TURNED_TO_MS)
    early = codes(scene)
    scene.pass_ms(REST_LOOK_MS + 1)

    assert early == []
    assert codes(scene) == [errors.NOT_LEADER_OR_FOLLOWER]


def test_who_came_while_a_leader_might_act_for_a_moment_is_sent_away_too() -> None:
    """Between two looks a late follower lets it act, until the other one's fetch is too old."""
    scene = LeaderScene(isr=(1, 2, 3))
    scene.is_alive = False
    scene.pass_ms(2 * TURNED_TO_MS)
    scene.follows(SECOND, 0)
    for _ in range(TURNED_TO_MS // REST_LOOK_MS - 1):
        scene.hand.turn(after_ms=REST_LOOK_MS)
    scene.hand.turn(after_ms=REST_LOOK_MS - 10)
    scene.follows(THIRD, 0)
    scene.operator.send_produce(a_batch(b"a"), topic="shared")
    early = codes(scene)

    scene.hand.turn(after_ms=20)
    scene.hand.turn(after_ms=REST_LOOK_MS)

    assert early == []
    assert codes(scene) == [errors.NOT_LEADER_OR_FOLLOWER]


def test_who_rested_is_looked_at_when_the_leader_may_act_again() -> None:
    """A coordinator that heard nobody meanwhile gives its members time."""
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    moved = scene.hand.broker.parts.add(Moved())
    scene.is_alive = False
    scene.pass_ms(TURNED_TO_MS + REST_LOOK_MS)
    rested = len(moved.names)
    scene.follows(SECOND, 0)
    scene.hand.turn(after_ms=REST_LOOK_MS)
    turned_to = len(moved.names)
    scene.pass_ms(TURNED_TO_MS + REST_LOOK_MS)
    rested_again = len(moved.names)
    scene.is_alive = True
    scene.hand.turn(after_ms=1)
    alive = len(moved.names)

    assert 0 < rested < turned_to < rested_again < alive


def test_a_producer_that_waits_is_sent_away_by_a_leader_in_a_new_life() -> None:
    """The lease of the new life does not cover a partition whose row names the life before."""
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    scene.follows(SECOND, 0)
    scene.operator.send_produce(a_batch(b"a"), topic="shared")
    scene.member.epoch = NEW_LIFE
    scene.pass_ms(TURNED_TO_MS)
    early = codes(scene)
    scene.pass_ms(REST_LOOK_MS + 1)

    assert early == []
    assert codes(scene) == [errors.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("lease", [True, False])
def test_a_turn_is_due_while_a_led_partition_is_not_claimed(lease: bool) -> None:
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    scene.member.epoch = NEW_LIFE
    scene.is_alive = lease
    scene.pass_ms(2 * LOOK_MS)
    wait_ms = scene.broker.next_due_ms() - scene.hand.now_ms

    assert wait_ms <= REST_LOOK_MS


def test_a_partition_that_rested_is_looked_at_again_once_it_is_claimed() -> None:
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    scene.member.epoch = NEW_LIFE
    scene.pass_ms(TURNED_TO_MS + REST_LOOK_MS)
    before = scene.operator.produce(a_batch(b"a"), topic="shared", acks=1).error_code
    moved = scene.hand.broker.parts.add(Moved())

    scene.bring_row(broker_epoch=NEW_LIFE)
    scene.hand.turn(after_ms=1)

    after = scene.operator.produce(a_batch(b"a"), topic="shared", acks=1).error_code
    assert (before, after) == (errors.NOT_LEADER_OR_FOLLOWER, errors.NONE)
    assert "shared-0" in moved.names


def test_a_turn_is_due_when_the_lease_is_over() -> None:
    """However little happens, what waits is not left waiting for a look that comes by itself."""
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    scene.lease_ms = 300
    scene.pass_ms(LOOK_MS)
    assert scene.broker.next_due_ms() <= scene.hand.now_ms + 300


# --- DeleteRecords.


def test_deleted_records_are_gone_once_all_who_may_lead_have_deleted_them() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a", b"b")
    scene.has(SECOND, 2, last_epoch=0)
    scene.has(THIRD, 2, last_epoch=0)
    scene.hand.settle()
    request = scene.operator.deletion((0, 1), topic="shared")
    scene.operator.client.send(api_keys.DELETE_RECORDS, 2, request)
    scene.pass_ms(500)
    early = scene.operator.answers()

    for broker_id in (SECOND, THIRD):
        answer = scene.has(broker_id, 2, last_epoch=0, log_start=1)
        assert answer.log_start_offset == 1
    scene.hand.settle()

    late = scene.operator.answers()
    assert (len(early), len(late)) == (0, 1)


def test_deleted_records_are_gone_when_who_had_not_deleted_them_may_lead_no_more() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a", b"b")
    scene.has(SECOND, 2, last_epoch=0)
    # It lives and is behind, so no row changes when its life ends.
    scene.has(THIRD, 1, last_epoch=0)
    scene.hand.settle()
    request = scene.operator.deletion((0, 1), topic="shared")
    scene.operator.client.send(api_keys.DELETE_RECORDS, 2, request)
    scene.pass_ms(500)
    scene.has(SECOND, 2, last_epoch=0, log_start=1)
    scene.hand.settle()
    early = scene.operator.answers()

    scene.broker.store.change(GivenChange(LifeEnded(broker_id=THIRD)))
    scene.hand.settle()

    late = scene.operator.answers()
    assert (len(early), len(late)) == (0, 1)


# --- Changes whose outcome is not known.


class StoreAway:
    """A store that takes changes and says nothing, until a test does."""

    def __init__(self, scene: LeaderScene) -> None:
        self.scene = scene
        self.asked: list[ChangeIsr] = []
        leader = scene.broker.neighbours.leading
        assert isinstance(leader, ReplicaLeader)
        self.leader = leader
        self.store, leader._store = leader._store, self  # type: ignore[assignment]

    def change(self, change: ChangeIsr) -> None:
        self.asked.append(change)

    def lose_answer(self) -> list[object]:
        """Ask for the deed of the last change; its answer never comes."""
        change = self.asked[-1]
        records = change.decide(self.scene.broker.cluster)
        change.refusal = "unknown"
        self.leader.on_refused(change)
        return list(records)


def test_an_addition_whose_outcome_is_unknown_counts_until_the_row_has_moved_on() -> None:
    scene = LeaderScene(isr=(1, 2))
    store = StoreAway(scene)
    scene.has(SECOND, 0)
    scene.has(THIRD, 0)
    scene.hand.settle()
    assert store.lose_answer() != []
    # It stops, and its life ends: it is not about to join any more.
    scene.die(THIRD)
    scene.write(b"a")
    scene.has(SECOND, 1, last_epoch=0)
    before = scene.high_watermark

    scene.pass_ms(1_500)
    (record,) = store.lose_answer()
    # The leader gives it up: the row is written once more, as it is.
    assert record.row.isr == [1, 2]  # type: ignore[attr-defined]
    still = scene.high_watermark
    scene.change(record)  # type: ignore[arg-type]

    assert (before, still, scene.high_watermark) == (0, 0, 1)


@pytest.mark.parametrize(("isr", "follows"), [((1,), SECOND), ((1, 2), THIRD)])
def test_who_may_have_been_added_may_lead_by_now(isr: tuple[int, ...], follows: int) -> None:
    """In sync alone, or with others who turn to it, a leader without its lease is not sure."""
    scene = LeaderScene(isr=isr)
    store = StoreAway(scene)
    for broker_id in (SECOND, THIRD)[: len(isr)]:
        scene.follows(broker_id, 0)
    scene.hand.settle()
    assert store.lose_answer() != []
    scene.is_alive = False
    scene.hand.turn(after_ms=1_000)
    early = scene.operator.fetch(0, topic="shared").error_code
    scene.hand.turn(after_ms=1_000)
    if len(isr) > 1:
        scene.follows(SECOND, 0)
    late = scene.operator.fetch(0, topic="shared").error_code
    scene.follows(follows, 0)

    assert (early, late) == (errors.NONE, errors.NOT_LEADER_OR_FOLLOWER)
    assert scene.operator.fetch(0, topic="shared").error_code == errors.NONE


def test_an_addition_that_was_never_asked_for_counts_no_more() -> None:
    scene = LeaderScene(isr=(1, 2))
    store = StoreAway(scene)
    scene.has(SECOND, 0)
    scene.has(THIRD, 0)
    scene.hand.settle()
    (change,) = store.asked
    scene.die(THIRD)

    assert change.decide(scene.broker.cluster) == []
    store.leader.on_applied(0, [], change)
    scene.pass_ms(1_500)
    scene.write(b"a")
    scene.has(SECOND, 1, last_epoch=0)

    assert scene.high_watermark == 1


def test_a_change_that_is_refused_is_asked_for_again() -> None:
    scene = LeaderScene(isr=(1, 2))
    store = StoreAway(scene)
    scene.die(SECOND)
    (change,) = store.asked
    store.leader.on_refused(change)
    early = len(store.asked)
    scene.pass_ms(1_500)

    assert (early, len(store.asked)) == (1, 2)


def test_changes_of_many_partitions_share_a_transaction() -> None:
    scene = LeaderScene(isr=(1, 2, 3), partitions=100)
    store = StoreAway(scene)

    scene.die(SECOND)

    assert [len(change.wishes) for change in store.asked] == [42, 42, 16]


def test_a_high_watermark_whose_place_cannot_be_read_rests_and_nothing_stops() -> None:
    scene = LeaderScene()
    for value in (b"a", b"b", b"c"):
        scene.write(value)
    scene.has(SECOND, 2, last_epoch=0)
    partition = scene.partition()
    partition.log.note_flaw(Flaw("a bit has flipped", 1, 70))

    scene.bring_row(isr=[1, 2])

    assert partition.leadership.isr == [1, 2]
    assert scene.high_watermark == partition.high_watermark_position.offset == 0


@pytest.mark.interpreted
def test_of_the_dead_that_are_out_of_sync_nothing_is_looked_at_again() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.die(THIRD)
    leader = scene.broker.neighbours.leading
    looked: list[object] = []
    recount = leader._recount  # type: ignore[union-attr]
    leader._recount = lambda partition: (looked.append(partition), recount(partition))  # type: ignore[union-attr]

    scene.pass_ms(10_000)
    with_the_dead = len(looked)
    scene.live(THIRD, 20)
    scene.pass_ms(3_000)

    assert with_the_dead <= 1
    assert len(looked) >= 3


def test_a_floor_that_is_lowered_lets_records_count_at_once() -> None:
    scene = LeaderScene(isr=(1, 2), min_insync_replicas="2")
    scene.configure(min_insync_replicas="3")
    scene.write(b"a")
    scene.fetch(SECOND, {0: 0})
    scene.fetch(SECOND, {0: 1}, last_epoch=0)
    before = scene.high_watermark

    scene.configure(min_insync_replicas="2")

    assert (before, scene.high_watermark) == (0, 1)
