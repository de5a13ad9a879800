"""Answers that no sound broker gives, to every request of a client.

The oracle: nothing but a ClientError ever leaves a turn or an operation, and each operation ends in
its time.  Fields of sound answers are set to what their types allow, and bytes are turned over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from tests.support.client.group_member import GroupScene
from tests.support.client.hand_face import perform
from tests.support.client.scripted_cluster import ScriptedCluster, Seen, seeded_random
from tests.support.client.scripted_groups import GroupCluster
from tests.support.message_fields import slots_of

from tarry.client.core.admin.calls import NewTopic
from tarry.client.core.admin.configs import SET, ConfigChange
from tarry.client.core.admin.core import AdminCore
from tarry.client.core.consumer.lookup import LATEST
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.operation import Operation
from tarry.client.core.producer.core import ProducerCore
from tarry.client.settings import ClientSettings, ConsumerSettings, ProducerSettings
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_response

SERVERS = "10.0.0.1:9092"
TIMEOUT_MS = 5_000
# Every wait, with the pauses between two looks at it.
LIMIT_MS = 4 * TIMEOUT_MS

# Values that an answer's numbers, texts and bytes are set to.
NUMBERS = [-(2**31), -2, -1, 0, 1, 2, 3, 15, 35, 2**15 - 1, 2**31 - 1]
TEXTS = ["", "t", "u", "g", "x" * 300, None]
BYTES = [b"", b"\xff" * 16, b"\0" * 16, b"\0\0\0\1\0\0\0\0"]

# Which answer (counted from the first), which of its fields, and what is done to it.
Attack = tuple[int, int, int]
attacks = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 60), st.integers(0, 20)), min_size=1, max_size=6
)


def other_value(value: Any, choice: int) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return NUMBERS[choice % len(NUMBERS)]
    if isinstance(value, str):
        return TEXTS[choice % len(TEXTS)]
    if isinstance(value, bytes):
        return BYTES[choice % len(BYTES)]
    if isinstance(value, list):
        return [[], value * 2, value[:1], value[1:], value[::-1]][choice % 5]
    return value


def twisted(seen: Seen, answer: Any, steps: list[Attack]) -> Any:
    """The answer with some of its fields changed; what cannot be encoded stays as it was."""
    for _, place, choice in steps:
        slots = list(slots_of(answer))
        if not slots:
            continue
        owner, name = slots[place % len(slots)]
        before = getattr(owner, name)
        try:
            setattr(owner, name, other_value(before, choice))
            encode_response(seen.api_key, seen.version, seen.correlation_id, answer)
        except (TypeError, ValueError, OverflowError, AttributeError):
            setattr(owner, name, before)
    return answer


def make_hostile(cluster: ScriptedCluster, steps: list[Attack]) -> None:
    """Have the cluster twist its answers, of every API."""
    count = 0
    sound = cluster.answer_to

    def answer(seen: Seen) -> Any:
        nonlocal count
        made = sound(seen)
        mine = [one for one in steps if one[0] == count]
        count += 1
        if isinstance(made, tuple):
            return made[0], twisted(seen, made[1], mine)
        return twisted(seen, made, mine) if hasattr(made, "encode") else made

    cluster.answer_to = answer  # type: ignore[method-assign]


def end_of(cluster: ScriptedCluster, operation: Operation[Any]) -> None:
    """Take an operation to its end: an answer or an error of ours, in its time."""
    began_ms = cluster.now_ms
    try:
        perform(cluster, operation)
    except ClientError as error:
        assert str(error)
    assert cluster.now_ms - began_ms <= LIMIT_MS


# --- What clients do


def produce(cluster: ScriptedCluster) -> None:
    given = ProducerSettings(
        bootstrap_servers=SERVERS,
        request_timeout_ms=1_000,
        delivery_timeout_ms=TIMEOUT_MS,
        retry_backoff_ms=400,
        linger_ms=0,
    )
    core = cluster.attach(ProducerCore(given, seeded_random(), cluster.now_ms))
    for number in range(3):
        record = ("t", -1, 5, None, b"%d" % number, None)
        end_of(cluster, core.begin_send(record, TIMEOUT_MS, cluster.now_ms))
    end_of(cluster, core.begin_flush(TIMEOUT_MS, cluster.now_ms))


def reader(cluster: ScriptedCluster) -> GroupConsumerCore:
    given = ConsumerSettings(
        bootstrap_servers=SERVERS, request_timeout_ms=1_000, auto_offset_reset="earliest"
    )
    made: GroupConsumerCore = cluster.attach(
        GroupConsumerCore(given, seeded_random(), cluster.now_ms)
    )
    return made


def consume(cluster: ScriptedCluster) -> None:
    core = reader(cluster)
    core.assign([("t", 0), ("t", 1)])
    for _ in range(3):
        end_of(cluster, core.begin_poll(500, 1_000, cluster.now_ms))
    core.seek(("t", 0), 1)
    for _ in range(2):
        end_of(cluster, core.begin_poll(500, 1_000, cluster.now_ms))


def look_up(cluster: ScriptedCluster) -> None:
    core = reader(cluster)
    end_of(cluster, core.begin_topic_query("t", TIMEOUT_MS, cluster.now_ms))
    end_of(cluster, core.begin_offsets({("t", 0): LATEST}, TIMEOUT_MS, cluster.now_ms))


Question = tuple[str, tuple[Any, ...], dict[str, Any]]


def question(name: str, *arguments: Any, **named: Any) -> Question:
    return name, arguments, named


def administration(
    cluster: ScriptedCluster, name: str, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[AdminCore, Any]:
    given = ClientSettings(bootstrap_servers=SERVERS, request_timeout_ms=1_000)
    core: AdminCore = cluster.attach(AdminCore(given, seeded_random(), cluster.now_ms))
    return core, getattr(core.requests, name)(*arguments, **named)


def administer(asked: Question) -> Callable[[ScriptedCluster], None]:
    def ask(cluster: ScriptedCluster) -> None:
        core, steps = administration(cluster, *asked)
        end_of(cluster, core.begin_errand(steps, TIMEOUT_MS, cluster.now_ms))

    return ask


CHANGES = [ConfigChange("retention.ms", SET, "1")]
QUESTIONS: dict[str, Question] = {
    "list topics": question("list_topics"),
    "describe topics": question("describe_topics", ["t"]),
    "create topics": question("create_topics", [NewTopic("new", 2)], validate_only=False),
    "delete topics": question("delete_topics", ["t"]),
    "create partitions": question("create_partitions", "t", 4, None, validate_only=False),
    "delete records": question("delete_records", {("t", 0): 1}),
    "describe configs": question("describe_topic_configs", "t", explain=True),
    "describe configs of a broker": question("describe_broker_configs", 1, explain=False),
    "change configs": question("change_topic_configs", "t", CHANGES, validate_only=False),
    "list groups": question("list_groups", [], []),
    "describe groups": question("describe_groups", ["g", "h"]),
    "delete groups": question("delete_groups", ["g", "h"]),
    "group memory": question("group_memory", "g"),
    "group offsets": question("group_offsets", ["g"], [("t", 0)]),
    "commit group offsets": question("commit_group_offsets", "h", {("t", 0): 1}),
    "delete group offsets": question("delete_group_offsets", "g", [("t", 0)]),
    "describe cluster": question("describe_cluster"),
    "api versions": question("api_versions", None),
    "describe log dirs": question("describe_log_dirs", {"t": [0]}),
    "describe producers": question("describe_producers", [("t", 0), ("t", 1)]),
}
CASES: dict[str, Callable[[ScriptedCluster], None]] = {
    "produce": produce,
    "consume": consume,
    "look up": look_up,
    **{case: administer(asked) for case, asked in QUESTIONS.items()},
}


def new_cluster() -> GroupCluster:
    cluster = GroupCluster(brokers=2)
    topic = cluster.topic("t", partitions=2)
    topic.logs[1].leader_id = 2
    for log in topic.logs:
        log.add(b"a", b"b")
        log.add(b"c")
    cluster.group("g").offsets["t", 0] = 1
    cluster.group("g").join("m-1", ("t", 0))
    cluster.group("h", coordinator_id=2)
    return cluster


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=40)
@given(steps=attacks)
# A negative partition in metadata, which a producer would write to.
@example(steps=[(1, 19, 0)])
def test_a_twisted_answer_ends_in_an_answer_or_an_error_of_ours(
    case: str, steps: list[Attack]
) -> None:
    cluster = new_cluster()
    make_hostile(cluster, steps)

    CASES[case](cluster)


@settings(max_examples=150)
@given(steps=attacks)
def test_a_member_survives_twisted_answers(steps: list[Attack]) -> None:
    scene = GroupScene(request_timeout_ms=1_000, auto_commit_interval_ms=500)
    scene.cluster.topics["t"].logs[0].add(b"a", b"b")
    make_hostile(scene.cluster, steps)
    core = scene.core

    core.subscribe(["t"])
    for _ in range(4):
        end_of(scene.cluster, core.begin_poll(500, 1_000, scene.cluster.now_ms))
    closing = core.begin_close(TIMEOUT_MS, scene.cluster.now_ms, leave=None)
    end_of(scene.cluster, closing)


def turned_over(frame: bytes, flips: list[tuple[int, int]]) -> bytes:
    """A frame with bits turned over, its length and correlation id spared."""
    made = bytearray(frame)
    for place, bit in flips:
        if len(made) > 8:
            made[8 + place % (len(made) - 8)] ^= 1 << bit
    return bytes(made)


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=15)
@given(
    number=st.integers(0, 8),
    flips=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 7)), min_size=1, max_size=4),
)
def test_bytes_that_were_turned_over_end_in_an_answer_or_an_error_of_ours(
    case: str, number: int, flips: list[tuple[int, int]]
) -> None:
    cluster = new_cluster()
    count = 0
    sound = cluster.answer_to

    def answer(seen: Seen) -> Any:
        nonlocal count
        made = sound(seen)
        count += 1
        if count - 1 != number or isinstance(made, str):
            return made
        message = made[1] if isinstance(made, tuple) else made
        chunks = encode_response(seen.api_key, seen.version, seen.correlation_id, message)
        return turned_over(b"".join(bytes(one) for one in chunks), flips)

    cluster.answer_to = answer  # type: ignore[method-assign]

    CASES[case](cluster)


LEFT_OUT: dict[str, int] = {
    "describe topics": api_keys.METADATA,
    "create topics": api_keys.CREATE_TOPICS,
    "delete topics": api_keys.DELETE_TOPICS,
    "create partitions": api_keys.CREATE_PARTITIONS,
    "describe configs": api_keys.DESCRIBE_CONFIGS,
    "change configs": api_keys.INCREMENTAL_ALTER_CONFIGS,
    "group memory": api_keys.DESCRIBE_CONFIGS,
    "commit group offsets": api_keys.OFFSET_COMMIT,
    "delete group offsets": api_keys.OFFSET_DELETE,
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_an_answer_leaves_out_has_not_been_done(case: str) -> None:
    cluster = new_cluster()
    sound = cluster.answer_to

    def answer(seen: Seen) -> Any:
        made = sound(seen)
        if seen.api_key == LEFT_OUT[case]:
            for name in ("topics", "results", "responses"):
                if hasattr(made, name):
                    setattr(made, name, [])
        return made

    cluster.answer_to = answer  # type: ignore[method-assign]
    core, steps = administration(cluster, *QUESTIONS[case])
    operation = core.begin_errand(steps, TIMEOUT_MS, cluster.now_ms)

    try:
        outcome = perform(cluster, operation)
    except ClientError as error:
        told = str(error)
    else:
        told = str(outcome)
    assert "leaves" in told or "cannot read" in told
