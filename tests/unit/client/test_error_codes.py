"""Every error code in the answer to every request that a client makes by itself.

16 places of an answer that hold a code, Kafka's 134 codes and one that nobody knows, given once and
given for ever: 4,320 cells.  Nothing hangs and nothing is swallowed: what a code means to its user
stands in one table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest
from tests.support.client.group_member import PLACE, GroupScene
from tests.support.client.hand_face import perform
from tests.support.client.scripted_cluster import Seen, seeded_random

from tarry.base import errors
from tarry.client.core.consumer.lookup import LATEST
from tarry.client.core.operation import Operation
from tarry.client.core.producer.core import ProducerCore
from tarry.client.settings import ProducerSettings
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.wire.reader import window_of

UNKNOWN_CODE: Final = 9_999
CODES: Final = [*sorted(code for code in errors.ERRORS if code != errors.NONE), UNKNOWN_CODE]

WAIT_MS: Final = 3_000
LIMIT_MS: Final = 3 * WAIT_MS
ONCE: Final = 1
ALWAYS: Final = 1_000_000
QUICK: Final[dict[str, Any]] = {
    "bootstrap_servers": "10.0.0.1:9092",
    "retry_backoff_ms": 100,
    "retry_backoff_max_ms": 500,
    "request_timeout_ms": 1_000,
}

# --- Places of answers


def each_partition(topics: str, partitions: str) -> Callable[[Any, int], None]:
    def put(answer: Any, code: int) -> None:
        for topic in getattr(answer, topics):
            for partition in getattr(topic, partitions):
                partition.error_code = code
                if hasattr(partition, "records"):
                    partition.records = window_of(b"")

    return put


def at_the_top(answer: Any, code: int) -> None:
    answer.error_code = code


def each_of(name: str) -> Callable[[Any, int], None]:
    def put(answer: Any, code: int) -> None:
        for one in getattr(answer, name):
            one.error_code = code

    return put


def each_topic(answer: Any, code: int) -> None:
    for topic in answer.topics:
        topic.error_code, topic.partitions = code, []


def each_leader(answer: Any, code: int) -> None:
    for topic in answer.topics:
        for partition in topic.partitions:
            partition.error_code, partition.leader_id = code, -1


def each_offset(answer: Any, code: int) -> None:
    for group in answer.groups:
        each_partition("topics", "partitions")(group, code)


def empty_fetch(answer: Any, code: int) -> None:
    answer.error_code, answer.responses = code, []


# --- What a user does

Deed = Callable[["Trial", int], bool]

# The deed is done all the same.
DONE: Final = "done"
# A poll brought nothing in its time.
NOTHING: Final = "nothing"


class Trial:
    """One client whose broker answers with a code: once, or always."""

    def __init__(self, api_key: int, put: Callable[[Any, int], None], code: int) -> None:
        self.scene = GroupScene(**QUICK, auto_offset_reset="earliest", heartbeat_interval_ms=300)
        self.cluster = self.scene.cluster
        self.core = self.scene.core
        self.log = self.cluster.topics["t"].logs[0]
        self.log.add(b"0")
        self.api_key = api_key
        self._put = put
        self._code = code
        self._sound = self.cluster.answer_to
        self._left = 0
        # Requests before the first code was given.
        self.asked_before = -1
        self.cluster.answer_to = self._answer  # type: ignore[method-assign]

    def arm(self, count: int) -> None:
        """Give the code in the next answers."""
        self._left = count

    def _answer(self, seen: Seen) -> Any:
        made = self._sound(seen)
        if seen.api_key != self.api_key or self._left == 0:
            return made
        if self.asked_before < 0:
            self.asked_before = len(self.cluster.seen)
        self._left -= 1
        answer = made[1] if isinstance(made, tuple) else made
        self._put(answer, self._code)
        return answer

    def end(self, operation: Operation[Any]) -> Any:
        """Take an operation to its end, within its time."""
        began_ms = self.cluster.now_ms
        try:
            return perform(self.cluster, operation)
        finally:
            assert self.cluster.now_ms - began_ms <= LIMIT_MS

    def poll(self) -> bool:
        """Poll once; true if a record came."""
        return bool(self.end(self.core.begin_poll(10, WAIT_MS, self.cluster.now_ms)))

    def producer(self) -> ProducerCore:
        settings = ProducerSettings(**QUICK, delivery_timeout_ms=WAIT_MS, linger_ms=0)
        core = ProducerCore(settings, seeded_random(), self.cluster.now_ms)
        made: ProducerCore = self.cluster.attach(core)
        return made

    def asked_again(self) -> list[int]:
        """Return the APIs of the requests that followed the first code."""
        return [seen.api_key for seen in self.cluster.seen[self.asked_before :]]


def produce(trial: Trial, count: int) -> bool:
    core, cluster = trial.producer(), trial.cluster
    trial.end(core.begin_topic_query("t", WAIT_MS, cluster.now_ms))
    trial.arm(count)
    receipt = core.append("t", 0, 0, None, b"x", None, now_ms=cluster.now_ms)
    assert receipt is not None
    trial.end(core.begin_wait(receipt, 2 * WAIT_MS, cluster.now_ms))
    return True


def learn_a_topic(trial: Trial, count: int) -> bool:
    core = trial.producer()
    trial.arm(count)
    trial.end(core.begin_topic_query("t", WAIT_MS, trial.cluster.now_ms))
    return True


def produce_unknown(trial: Trial, count: int) -> bool:
    core, cluster = trial.producer(), trial.cluster
    trial.arm(count)
    record = ("t", 0, 0, None, b"x", None)
    receipt = trial.end(core.begin_send(record, WAIT_MS, cluster.now_ms))
    trial.end(core.begin_wait(receipt, 2 * WAIT_MS, cluster.now_ms))
    return True


def consume(trial: Trial, count: int) -> bool:
    trial.core.assign([PLACE])
    trial.core.seek(PLACE, 0)
    trial.arm(count)
    return trial.poll()


def look_up(trial: Trial, count: int) -> bool:
    trial.arm(count)
    trial.end(trial.core.begin_offsets({PLACE: LATEST}, WAIT_MS, trial.cluster.now_ms))
    return True


def follow_a_leader(trial: Trial, count: int) -> bool:
    consume(trial, 0)
    trial.arm(count)
    trial.log.leader_epoch += 1
    trial.core.want_refresh()
    trial.cluster.run_for(500)
    trial.log.add(b"1")
    return trial.poll()


def ask_what_is_committed(trial: Trial, count: int) -> bool:
    trial.scene.committed = 1
    trial.arm(count)
    found = trial.end(trial.core.begin_committed([PLACE], WAIT_MS, trial.cluster.now_ms))
    assert found[PLACE].offset == 1
    return True


def join(trial: Trial, count: int) -> bool:
    trial.arm(count)
    trial.core.subscribe(["t"])
    return trial.poll()


def stay(trial: Trial, count: int) -> bool:
    assert join(trial, 0)
    trial.arm(count)
    trial.cluster.run_for(1_000)
    trial.log.add(b"1")
    return trial.poll() or trial.poll()


def commit(trial: Trial, count: int) -> bool:
    assert join(trial, 0)
    trial.arm(count)
    trial.end(trial.core.begin_commit({PLACE: 1}, WAIT_MS, trial.cluster.now_ms))
    assert trial.scene.committed == 1
    return True


def leave(trial: Trial, count: int) -> bool:
    assert join(trial, 0)
    trial.arm(count)
    now_ms = trial.cluster.now_ms
    trial.end(trial.core.begin_close(WAIT_MS, now_ms, leave=None))
    return True


PLACES: Final[dict[str, tuple[int, Callable[[Any, int], None], Deed]]] = {
    "Produce": (api_keys.PRODUCE, each_partition("responses", "partition_responses"), produce),
    "Fetch": (api_keys.FETCH, each_partition("responses", "partitions"), consume),
    "Fetch, whole": (api_keys.FETCH, empty_fetch, consume),
    "ListOffsets": (api_keys.LIST_OFFSETS, each_partition("topics", "partitions"), look_up),
    "OffsetForLeaderEpoch": (
        api_keys.OFFSET_FOR_LEADER_EPOCH,
        each_partition("topics", "partitions"),
        follow_a_leader,
    ),
    "Metadata": (api_keys.METADATA, each_topic, learn_a_topic),
    "Metadata, partition": (api_keys.METADATA, each_leader, produce_unknown),
    "InitProducerId": (api_keys.INIT_PRODUCER_ID, at_the_top, produce),
    "FindCoordinator": (api_keys.FIND_COORDINATOR, each_of("coordinators"), ask_what_is_committed),
    "OffsetFetch": (api_keys.OFFSET_FETCH, each_of("groups"), ask_what_is_committed),
    "OffsetFetch, partition": (api_keys.OFFSET_FETCH, each_offset, ask_what_is_committed),
    "OffsetCommit": (api_keys.OFFSET_COMMIT, each_partition("topics", "partitions"), commit),
    "JoinGroup": (api_keys.JOIN_GROUP, at_the_top, join),
    "SyncGroup": (api_keys.SYNC_GROUP, at_the_top, join),
    "Heartbeat": (api_keys.HEARTBEAT, at_the_top, stay),
    "LeaveGroup": (api_keys.LEAVE_GROUP, at_the_top, leave),
}


# --- What a code means

PASSES: Final = frozenset(code for code, row in errors.ERRORS.items() if row.retriable)
STALE: Final = frozenset(code for code, row in errors.ERRORS.items() if row.refreshes)
EVERY: Final = frozenset(CODES)

# A group keeps the member out for good.
KEEPS_OUT: Final = dict.fromkeys(
    [
        errors.INCONSISTENT_GROUP_PROTOCOL,
        errors.INVALID_GROUP_ID,
        errors.INVALID_SESSION_TIMEOUT,
        errors.GROUP_AUTHORIZATION_FAILED,
        errors.GROUP_MAX_SIZE_REACHED,
        errors.FENCED_INSTANCE_ID,
    ],
    "GroupFailed",
)
# The member begins anew, or joins again.
JOINS_AGAIN: Final = frozenset(
    [errors.ILLEGAL_GENERATION, errors.UNKNOWN_MEMBER_ID, errors.REBALANCE_IN_PROGRESS]
)


class Meaning(NamedTuple):
    """What a user is told of the codes in one place of an answer: these `pass`, and end as `always`
    if they come for ever; `told` have an error of their own; any other is a BrokerError at once."""

    passing: frozenset[int]
    always: str
    told: dict[int, str] = {}


MEANINGS: Final = {
    "Produce": Meaning(
        # Counted anew: the broker lost the count of the sequences.
        PASSES | {errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID},
        "DeliveryTimedOut",
        {
            errors.MESSAGE_TOO_LARGE: "RecordTooLarge",
            errors.RECORD_LIST_TOO_LARGE: "RecordTooLarge",
            errors.INVALID_PRODUCER_EPOCH: "ProducerFailed",
            errors.PRODUCER_FENCED: "ProducerFailed",
            # The record is there.
            errors.DUPLICATE_SEQUENCE_NUMBER: DONE,
        },
    ),
    "Fetch": Meaning(PASSES | {errors.UNKNOWN_SERVER_ERROR, errors.OFFSET_OUT_OF_RANGE}, NOTHING),
    "Fetch, whole": Meaning(EVERY, NOTHING),
    "ListOffsets": Meaning(PASSES, "TimedOut"),
    "OffsetForLeaderEpoch": Meaning(PASSES, NOTHING),
    "Metadata": Meaning(PASSES | {UNKNOWN_CODE}, "UnknownTopic"),
    "Metadata, partition": Meaning(EVERY, "DeliveryTimedOut"),
    "InitProducerId": Meaning(PASSES, "DeliveryTimedOut"),
    "FindCoordinator": Meaning(PASSES, "TimedOut"),
    "OffsetFetch": Meaning(PASSES, "TimedOut"),
    "OffsetFetch, partition": Meaning(
        PASSES - {errors.UNKNOWN_TOPIC_OR_PARTITION},
        "TimedOut",
        {errors.UNKNOWN_TOPIC_OR_PARTITION: "UnknownTopic"},
    ),
    "OffsetCommit": Meaning(
        PASSES, "TimedOut", {**KEEPS_OUT, **dict.fromkeys(JOINS_AGAIN, "CommitFailed")}
    ),
    "JoinGroup": Meaning(PASSES | JOINS_AGAIN | {errors.MEMBER_ID_REQUIRED}, NOTHING, KEEPS_OUT),
    "SyncGroup": Meaning(PASSES | JOINS_AGAIN | {errors.MEMBER_ID_REQUIRED}, NOTHING, KEEPS_OUT),
    "Heartbeat": Meaning(PASSES | JOINS_AGAIN, DONE, KEEPS_OUT),
    # Who leaves has done with the group.
    "LeaveGroup": Meaning(EVERY, DONE),
}


def meaning_of(place: str, code: int, count: int) -> str:
    """What a user is told of a code."""
    meaning = MEANINGS[place]
    if code in meaning.told:
        return meaning.told[code]
    if code in meaning.passing:
        return DONE if count == ONCE else meaning.always
    return "BrokerError"


def outcome_of(place: str, code: int, count: int) -> str:
    """What became of a deed while the broker gave a code."""
    api_key, put, deed = PLACES[place]
    trial = Trial(api_key, put, code)
    try:
        is_done = deed(trial, count)
    except ClientError as error:
        assert str(error)
        return type(error).__name__
    assert trial.asked_before > 0, "the code was never given"
    if is_done:
        return DONE
    # A poll that brings nothing says why, where no broker does in its log.
    if place in ("Fetch", "OffsetForLeaderEpoch") and code != errors.OFFSET_OUT_OF_RANGE:
        assert errors.error_name(code) in trial.core.trouble(trial.cluster.now_ms)
    return NOTHING


@pytest.mark.parametrize("count", [ONCE, ALWAYS], ids=["once", "always"])
@pytest.mark.parametrize("place", PLACES)
def test_a_code_means_to_its_user_what_the_table_says(place: str, count: int) -> None:
    outcomes = {code: outcome_of(place, code, count) for code in CODES}

    assert outcomes == {code: meaning_of(place, code, count) for code in CODES}


@pytest.mark.parametrize("place", ["Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch"])
def test_a_code_that_calls_metadata_stale_has_it_asked_for(place: str) -> None:
    api_key, put, deed = PLACES[place]
    for code in sorted(STALE):
        trial = Trial(api_key, put, code)

        assert deed(trial, ONCE)
        assert api_keys.METADATA in trial.asked_again(), code


def test_every_code_of_every_place_is_in_the_table() -> None:
    assert list(MEANINGS) == list(PLACES)
    assert len(PLACES) * len(CODES) * 2 == 4_320
